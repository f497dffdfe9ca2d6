/** The sections that say whose tokens count, and which no longer do. */
import type { z } from 'zod';
import { fetchedUrl } from './address-schemas.js';
import { duration, filePath, flag, line, list, map, oneOrMore, size, text, time, visibleText } from './scalars.js';

const keyIdPattern = text(/^(?=.)[\x21-\x29\x2b-\x7e]*\*?$/, 'a key id, or its beginning and `*`', 256);

const keyIdsSchema = map({
  accept: list(keyIdPattern, 1, 'key ids')
    .prefault(['d-*'])
    .describe('Key ids that count: whole, or a beginning and `*`. The Core’s dynamic keys begin with `d-`.'),
  reject: list(keyIdPattern, 0, 'key ids')
    .prefault([])
    .describe('Key ids that do not count, though `accept` has them.'),
});

/** How keys are fetched and kept. */
export const jwksSchema = map({
  min_age: duration('0ms', '24h')
    .prefault('10s')
    .describe('Shortest lifetime of fetched keys, whatever the answer’s cache headers say; at most `max_age`.'),
  max_age: duration('100ms', '7d')
    .prefault('10m')
    .describe(
      'Longest lifetime of fetched keys, whatever the answer’s cache headers say; they are refreshed before it is over.',
    ),
  max_stale: duration('0ms', '30d')
    .nullable()
    .prefault(null)
    .describe(
      'How long keys serve beyond their lifetime while their source is out of reach, whatever the answer’s `must-revalidate` says. ' +
        'Left out: 5m where the answer has `must-revalidate`, `no-cache` or `no-store` (RFC 9111 §4.2.4), else 1h.',
    ),
  cooldown: duration('0ms', '1h')
    .prefault('5s')
    .describe(
      'Least time between fetches for unknown key ids, counted from the last attempt, failed or not. Whoever has a new key waits for it, 10s at most.',
    ),
  timeout: duration('10ms', '5m').prefault('5s').describe('For one fetch as a whole.'),
  max_bytes: size('1KiB', '16MiB').prefault('256KiB').describe('Largest answer that is read.'),
});

export const issuerSchema = map({
  issuer: visibleText(512).describe('Exact `iss`: the Core’s API domain.'),
  jwks_url: fetchedUrl()
    .nullable()
    .prefault(null)
    .describe('Where its keys are. Without it and `jwks_file`: `issuer` followed by `/auth/jwt/jwks.json`.'),
  jwks_url_because: text(
    /^(?=.*\S)[^\x00-\x1f\x7f-\x9f]+$/,
    'why another host speaks for the issuer: 1 to 500 characters in one line',
    500,
  )
    .nullable()
    .prefault(null)
    .describe(
      'Why `jwks_url` is on another host than `issuer`, such as the Core’s address in the cluster. `check` warns until it says so.',
    ),
  jwks_file: filePath()
    .nullable()
    .prefault(null)
    .describe('File with its keys, instead of `jwks_url`. Read again when it changes.'),
  audience: line(256).describe('Exact `aud`, one string: the name of the upstream.'),
  source: oneOrMore(line(256), 'texts').describe('Exact `source`; a list while names change.'),
  token_type: oneOrMore(line(256), 'texts').describe('Exact `token_type`; a list while names change.'),
  clock_skew: duration('0ms', '60s').prefault('5s').describe('How far the issuer’s clock may be from ours.'),
  max_lifetime: duration('1s', '24h').prefault('2h').describe('Longest life of a token that is accepted.'),
  key_ids: keyIdsSchema.prefault({}).describe('Which key ids count. Others are refused and never cause a fetch.'),
  jwks: jwksSchema.prefault({}).describe('How its keys are fetched and kept.'),
  ca_file: filePath()
    .nullable()
    .prefault(null)
    .describe('Authorities in PEM that vouch for `jwks_url`, instead of the system’s. Read again for each fetch.'),
  allow_http: flag()
    .prefault(false)
    .describe('Whether `jwks_url` may be http on another host than this: whoever can change the answer signs tokens.'),
});

/** Names are labels of metrics and parts of log lines. */
export const issuerName = text(
  /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
  '1 to 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit',
  64,
);

export const revokedSchema = map({
  key_ids: list(visibleText(256), 0, 'key ids').prefault([]).describe('Key ids whose tokens are refused.'),
  subjects: list(visibleText(256), 0, 'subjects').prefault([]).describe('Subjects whose tokens are refused.'),
  token_ids: list(visibleText(256), 0, 'token ids').prefault([]).describe('`jti`s of tokens that are refused.'),
  issued_before: time()
    .nullable()
    .prefault(null)
    .describe(
      'Tokens issued before this time (RFC 3339) are refused, and so are those that do not say when they were issued.',
    ),
});

export type IssuerFile = z.output<typeof issuerSchema>;
export type RevokedFile = z.output<typeof revokedSchema>;
