/** The section that says what the receiving service learns of the caller. */
import type { z } from 'zod';
import { flag, map, text } from './schema-scalars.js';
import { notYet } from './unsupported.js';

const headersSchema = map({
  subject: header('X-Auth-Subject', 'the verified `sub`'),
  issuer: header('X-Auth-Issuer', 'the verified `iss`'),
  permissions: header('X-Auth-Permissions', 'the permissions in the token’s order, one space between'),
  token_id: header('X-Auth-Token-Id', 'the `jti`, where the token has one'),
  kind: header('X-Auth-Kind', 'the kind of credential, `service` or `session`'),
});

export const identitySchema = map({
  headers: headersSchema.prefault({}).describe('Names of the fields that only Sallyport can set.'),
  forward_authorization: flag().prefault(false).describe('Whether protected routes pass the caller’s `Authorization` on. A route may set its own.'),
  assertion: notYet(),
});

export type IdentityFile = z.output<typeof identitySchema>;

function header(name: string, holds: string): z.ZodPrefault<z.ZodNullable<z.ZodString>> {
  return text(/^[A-Za-z][A-Za-z0-9-]*$/, 'a field name of at most 64 letters, digits and `-`, or null to leave it out', 64)
    .nullable().prefault(name).describe(`Header field with ${holds}; null leaves it out.`);
}
