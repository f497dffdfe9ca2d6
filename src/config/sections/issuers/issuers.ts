/** The section that says whose tokens count. */
import { z } from 'zod';
import type { ParsedConfig, Entry } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import { always, towards, whenAdded, whenMore, whenRemoved, type KeyChanges } from '../../schema/key-changes.js';
import {
  duration,
  fetchedUrl,
  filePath,
  flag,
  line,
  list,
  map,
  oneOrMore,
  text,
  visibleText,
  word,
} from '../../schema/scalars.js';
import { type AbsolutePath, section } from '../../schema/section.js';
import { checkKeyAccess, compileKeyAccess, fetchesMetadata, jwksSchema, keyAccessKeys } from './key-access.js';
import {
  checkIntrospection,
  checkPrefixes,
  checkSingleUse,
  compileIntrospection,
  introspectionKeys,
  introspectionSchema,
} from './introspection.js';
import { checkOverlaps } from './overlaps.js';
import { checkProfile, compileProfile, profileKeys } from './issuer-profiles.js';
import type { IssuerSettings } from '../../types.js';
import type { IssuerRules } from '../../../decision/route/policy.js';
import { bindingNames } from '../../../decision/binding/confirmation.js';
import { profileNames, type Profile } from '../../../decision/token/profiles.js';

const keyIdPattern = text(/^(?=.)[\x21-\x29\x2b-\x7e]*\*?$/, 'a key id, or its beginning and `*`', 256);

const keyIdsSchema = map({
  accept: list(keyIdPattern, 1, 'key ids')
    .optional()
    .describe(
      'Key ids that count: whole, or a beginning and `*`. Default: `["d-*"]` with `profile: core`, whose dynamic keys begin so, else `["*"]`.',
    ),
  reject: list(keyIdPattern, 0, 'key ids')
    .prefault([])
    .describe('Key ids that do not count, though `accept` has them.'),
});

const issuerText = visibleText(512);
const name = line(256);
const names = oneOrMore(name, 'texts');

const bindingSchema = word(...bindingNames)
  .prefault('accept')
  .describe(
    'Tokens that are bound to a key or a certificate (`cnf`). `accept`: a proof is asked for where a token is bound. `require`: one that is not is ' +
      'refused. `none`: `cnf` says nothing, so that a stolen token counts: see [bound-tokens.md](bound-tokens.md).',
  );

/** What the schema says to editors: all but these profiles need the keys. */
function neededUnless(profiles: readonly Profile[], keys: readonly string[]): object {
  const isOne = { type: 'object', properties: { profile: { enum: profiles } }, required: ['profile'] };
  const hasKeys = { type: 'object', properties: Object.fromEntries(keys.map((key) => [key, {}])), required: keys };
  return { anyOf: [isOne, hasKeys] };
}

/** Every key that an issuer can have; which of them one has, its profile says. */
const issuerSchema = map({
  issuer: issuerText
    .optional()
    .describe(
      'Exact `iss`; of a Core its API domain. Required, but not with `profile: spiffe`: left out there, any `iss` is taken.',
    ),
  ...profileKeys,
  jwks_url: fetchedUrl()
    .nullable()
    .prefault(null)
    .describe(
      'Where its keys are. Without it and `jwks_file`: with `profile: core` `issuer` followed by `/auth/jwt/jwks.json`, else `discovery`.',
    ),
  jwks_url_because: text(
    /^(?=.*\S)[^\x00-\x1f\x7f-\x9f]+$/,
    'why another host speaks for the issuer: 1 to 500 characters in one line',
    500,
  )
    .nullable()
    .prefault(null)
    .describe(
      'Why `jwks_url` or `discovery_url` is on another host than `issuer`, such as the Core’s address in the cluster. `check` warns until it says so.',
    ),
  jwks_file: filePath()
    .nullable()
    .prefault(null)
    .describe('File with its keys, instead of `jwks_url`. Read again when it changes.'),
  audience: names.describe(
    'Exact `aud`: the name of the upstream. With `profile: core` one text, which `aud` has to be; else also a list, and an `aud` that is a list has ' +
      'to hold one of them.',
  ),
  source: names
    .optional()
    .describe('Exact `source`; a list while names change. Required with `profile: core`, and only there.'),
  token_type: names
    .optional()
    .describe('Exact `token_type`; a list while names change. Required with `profile: core`, and only there.'),
  clock_skew: duration('0ms', '60s').prefault('5s').describe('How far the issuer’s clock may be from ours.'),
  max_lifetime: duration('1s', '24h').prefault('2h').describe('Longest life of a token that is accepted.'),
  binding: bindingSchema,
  key_ids: keyIdsSchema.prefault({}).describe('Which key ids count. Others are refused and never cause a fetch.'),
  jwks: jwksSchema.prefault({}).describe('How its keys are fetched and kept.'),
  introspection: introspectionSchema
    .nullable()
    .prefault(null)
    .describe(
      'How the issuer is asked about its opaque tokens (RFC 7662): those that are no JWTs. Only with `profile: oauth`.',
    ),
  ca_file: filePath()
    .nullable()
    .prefault(null)
    .describe(
      'Authorities in PEM that vouch for where keys and metadata are fetched, instead of the system’s. Read again for each fetch. With ' +
        '`profile: kubernetes` and no `discovery_url` or `jwks_url`: those of the pod.',
    ),
  allow_http: flag()
    .prefault(false)
    .describe(
      'Whether keys and metadata may be fetched over http from another host than this: whoever can change the response signs tokens.',
    ),
}).meta({
  allOf: [
    neededUnless(['oauth', 'kubernetes', 'spiffe'], ['source', 'token_type']),
    neededUnless(['spiffe'], ['issuer']),
  ],
});

/** With what a profile always has. */
const schemas: Readonly<Record<Profile, z.ZodType<IssuerFile>>> = {
  core: issuerSchema.extend({
    issuer: issuerText,
    audience: name.transform((audience) => [audience]),
    source: names,
    token_type: names,
  }),
  oauth: issuerSchema.extend({ issuer: issuerText }),
  kubernetes: issuerSchema.extend({ issuer: issuerText }),
  spiffe: issuerSchema.extend({ trust_domain: profileKeys.trust_domain.unwrap() }),
};

/** The schema of an issuer with this `profile`, as it stands in the file; of what is none, every key is known. */
export function issuerSchemaFor(profile: unknown): z.ZodType<IssuerFile> {
  if (profile === undefined || profile === null) return schemas.core;
  const known = profileNames.find((candidate) => candidate === profile);
  return known === undefined ? issuerSchema : schemas[known];
}

/** Names are labels of metrics and parts of log lines. */
export const issuerName = text(
  /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
  '1 to 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit',
  64,
);

export type IssuerFile = z.output<typeof issuerSchema>;

/** In the order of the file: the audience of the first is part of what users’ idempotency keys are counted by. */
export type Issuers = ReadonlyMap<string, IssuerFile>;

export const issuers = section({
  schema: z
    .record(issuerName, issuerSchema, 'a map of issuers')
    .prefault({})
    .describe('Whose tokens count, by a name of your choice.'),
  check: checkIssuers,
  compile: (_file, { absolute, values }): { readonly issuers: readonly IssuerSettings[] } => ({
    issuers: [...values.issuers].map(([name, issuer]) => compileIssuer(name, issuer, absolute)),
  }),
  // `issuerKeys`, for each of them.
  keys: {},
});

/** What a change of each key of an issuer means. */
export const issuerKeys: KeyChanges<IssuerSettings> = {
  profile: { of: ({ rules }) => rules.profile, widens: always },
  issuer: { of: ({ rules }) => rules.issuer, widens: always },
  audience: { of: ({ rules }) => rules.audiences, widens: always },
  source: { of: ({ rules }) => rules.sources, widens: whenAdded },
  token_type: { of: ({ rules }) => rules.tokenTypes, widens: whenAdded },
  clock_skew: { of: ({ rules }) => rules.clockSkewS, widens: whenMore },
  max_lifetime: { of: ({ rules }) => rules.maxLifetimeS, widens: whenMore },
  algorithms: { of: ({ rules }) => rules.algorithms, widens: whenAdded },
  token_typ: { of: ({ rules }) => rules.headerTypes, widens: whenAdded },
  trust_domain: { of: ({ rules }) => rules.trustDomain, widens: always },
  claims: { of: ({ rules }) => rules.claims, widens: always, whole: true },
  'key_ids.accept': { of: ({ rules }) => rules.keyIds.accept, widens: whenAdded },
  'key_ids.reject': { of: ({ rules }) => rules.keyIds.reject, widens: whenRemoved },
  ...keyAccessKeys,
  binding: { of: ({ rules }) => rules.binding, widens: towards('require', 'accept', 'none') },
  ...introspectionKeys,
};

function compileIssuer(name: string, file: IssuerFile, absolute: AbsolutePath): IssuerSettings {
  const rules: IssuerRules = {
    name,
    ...compileProfile(file),
    audience: file.audience[0] ?? '',
    clockSkewS: file.clock_skew / 1_000,
    maxLifetimeS: file.max_lifetime / 1_000,
    binding: file.binding,
  };
  const keys = compileKeyAccess(file, rules.algorithms, absolute);
  return { rules, introspection: compileIntrospection(file, keys.caFile, absolute), keys, allowsHttp: file.allow_http };
}

/** Milliseconds. The Core's tokens live an hour or two; a longer life is longer use of a stolen one. */
const usualLifetimeMs = 7_200_000;

/** Checks what each issuer's settings say together. */
function checkIssuers(parts: ParsedConfig, report: Report): void {
  for (const entry of parts.issuers.values()) {
    if (entry.parsed === null) continue;
    const isPresent = (key: string): boolean => parts.isPresent([...entry.path, key]);
    checkProfile(entry, entry.parsed.value, isPresent, report);
    checkKeyAccess(entry, entry.parsed.value, parts, report);
    checkIntrospection(entry, entry.parsed.value, fetchesMetadata(entry.parsed.value), report);
    checkExactness(entry, entry.parsed.value, report);
    checkLifetime(entry, entry.parsed.value, report);
    checkBinding(entry, entry.parsed.value, report);
  }
  checkOverlaps(parts, report);
  checkPrefixes([...parts.issuers.values()], report);
  checkSingleUse(parts, report);
}

/** The specification has one value of each: every further one lets another kind of token in. */
function checkExactness({ path }: Entry<IssuerFile>, issuer: IssuerFile, report: Report): void {
  for (const key of ['source', 'token_type'] as const) {
    const at = [...path, key];
    const count = new Set(issuer[key] ?? []).size;
    if (count > 1) {
      report.warning(
        at,
        `${nameOf(at)} has ${String(count)} values: tokens with any of them count, with every permission that they have`,
        'one value; a list only while names change; an issuer of its own for what stays different',
      );
    }
  }
}

function checkLifetime({ path }: Entry<IssuerFile>, issuer: IssuerFile, report: Report): void {
  if (issuer.max_lifetime <= usualLifetimeMs) return;
  const at = [...path, 'max_lifetime'];
  report.warning(at, `${nameOf(at)} is long: a stolen token is of use for ${report.show(at)}`, '2h or less');
}

/** A token whose issuer bound it is to be worth nothing to a thief. */
function checkBinding({ path }: Entry<IssuerFile>, { binding }: IssuerFile, report: Report): void {
  if (binding !== 'none') return;
  const at = [...path, 'binding'];
  report.warning(
    at,
    `${nameOf(at)} is none: a stolen token counts, though its issuer bound it to what its client has`,
    'accept, once clients prove it',
  );
}
