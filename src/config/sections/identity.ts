/** The section that says what the upstream learns of the caller. */
import type { z } from 'zod';
import type { ParsedConfig } from '../load/parse-sections.js';
import type { Report } from '../load/report.js';
import { always, saidByAnother, whenReplaced } from '../schema/key-changes.js';
import { duration, filePath, flag, line, map, text } from '../schema/scalars.js';
import { type AbsolutePath, section } from '../schema/section.js';
import type { AssertionSettings } from '../types.js';
import { lookAlikeKey } from '../../decision/http/header-names.js';
import { mayNameIdentity } from '../../decision/http/header-rules.js';
import type { IdentityHeaders } from '../../decision/route/policy.js';

const headersSchema = map({
  subject: header('X-Auth-Subject', 'the verified `sub`'),
  issuer: header('X-Auth-Issuer', 'the verified `iss`'),
  permissions: header('X-Auth-Permissions', 'the permissions in the token’s order, one space between'),
  token_id: header('X-Auth-Token-Id', 'the `jti`, where the token has one'),
  kind: header('X-Auth-Kind', 'the kind of credential, `service` or `session`'),
  client_certificate: headerName(', or null to leave it out')
    .nullable()
    .prefault(null)
    .describe(
      'Header with the name of the caller’s certificate, where one was verified: its SPIFFE ID, else its subject. Such as `X-Auth-Client-Certificate`.',
    ),
});

const assertionSchema = map({
  key_file: filePath().describe(
    'P-256 private keys in PEM: the first one signs, all are published. Read again when it changes.',
  ),
  audience: line(256).describe('`aud`: the upstream, by a name that no other one has.'),
  ttl: duration('1s', '60s').prefault('30s').describe('How long one holds.'),
  header: headerName().prefault('X-Auth-Assertion').describe('Header that carries it.'),
  issuer: line(256).prefault('sallyport').describe('`iss`: who signs.'),
});

const identitySchema = map({
  headers: headersSchema.prefault({}).describe('Names of the headers that only Sallyport can set.'),
  forward_authorization: flag()
    .prefault(false)
    .describe('Whether protected routes pass the caller’s `Authorization` on. A route may set its own.'),
  assertion: assertionSchema
    .nullable()
    .prefault(null)
    .describe(
      'A signed JWT beside the headers, for upstreams that others can reach too. See [assertion.md](assertion.md).',
    ),
});

type IdentityFile = z.output<typeof identitySchema>;

export const identity = section({
  schema: identitySchema.prefault({}).describe('What the upstream learns of the caller.'),
  check: checkIdentity,
  compile: (file, { absolute }) => ({
    identity: compileIdentity(file),
    /** `null` where the upstream gets no signed assertion. */
    assertion: compileAssertion(file, absolute),
  }),
  keys: {
    // Under its old name a header is the caller's to send from now on.
    headers: { of: ({ identity }) => identity, widens: always, shownAs: '', whole: true },
    forward_authorization: saidByAnother,
    assertion: { of: ({ assertion }) => assertion, widens: whenReplaced, whole: true },
  },
});

function compileIdentity({ headers }: IdentityFile): IdentityHeaders {
  return {
    subject: headers.subject,
    issuer: headers.issuer,
    permissions: headers.permissions,
    tokenId: headers.token_id,
    kind: headers.kind,
    clientCertificate: headers.client_certificate,
  };
}

function compileAssertion({ assertion }: IdentityFile, absolute: AbsolutePath): AssertionSettings | null {
  if (assertion === null) return null;
  const { key_file: keyFile, audience, ttl, header, issuer } = assertion;
  return { keyFile: absolute(keyFile), audience, ttlS: Math.floor(ttl / 1_000), header, issuer };
}

function header(name: string, holds: string): z.ZodPrefault<z.ZodNullable<z.ZodString>> {
  return headerName(', or null to leave it out')
    .nullable()
    .prefault(name)
    .describe(`Header with ${holds}; null leaves it out.`);
}

function headerName(or = ''): z.ZodString {
  return text(/^[A-Za-z][A-Za-z0-9-]*$/, `a header name of at most 64 letters, digits and \`-\`${or}`, 64);
}

/**
 * Checks that each identity header is one that nothing else has a use for, and that no two can be taken for one
 * another.
 */
function checkIdentity({ identity }: ParsedConfig, report: Report): void {
  if (identity === null) return;
  const holders = new Map<string, string>();
  const { headers, assertion } = identity.value;
  const names = Object.entries(headers).map(([key, name]) => ({
    key: `headers.${key}`,
    path: ['identity', 'headers', key],
    name,
  }));
  if (assertion !== null) {
    names.push({ key: 'assertion.header', path: ['identity', 'assertion', 'header'], name: assertion.header });
  }
  for (const { key, path, name } of names) {
    if (name === null) continue;
    if (!mayNameIdentity(name)) {
      report.error(
        path,
        `identity.${key} is ${report.show(path)}, which has another meaning`,
        'a name of its own, such as X-Auth-Subject',
      );
      continue;
    }
    const other = holders.get(lookAlikeKey(name));
    if (other === undefined) holders.set(lookAlikeKey(name), key);
    else report.error(path, `identity.${key} is ${report.show(path)}, too much like identity.${other}`, 'another name');
  }
}
