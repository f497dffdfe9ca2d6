import { json, text, type Message } from '../http/messages.js';
import type { Call } from '../context.js';
import { isFrom } from '../cdi-version.js';
import { boolean, object, optional, readFields, string, whole } from '../http/body.js';
import { signToken } from '../keys/signing-keys.js';

const shape = {
  algorithm: string,
  jwksDomain: string,
  payload: object,
  validity: whole,
  useStaticSigningKey: optional(boolean),
};

/** `POST /recipe/jwt`. The caller's `iss`, `iat` and `exp` win over those of the request, as from Core 6.0 on. */
export async function mintJwt({ core, fields, version }: Call): Promise<Message> {
  const asked = readFields(fields, shape);
  if ('refused' in asked) return text(400, asked.refused);
  // The Core says "or equal" and refuses 0 all the same.
  if (asked.validity <= 0) return text(400, 'validity must be greater than or equal to 0');
  if (asked.algorithm.toUpperCase() !== 'RS256') return json(200, { status: 'UNSUPPORTED_ALGORITHM_ERROR' });
  // Below CDI 2.21 the field is not read: the static key signs.
  const isDynamic = asked.useStaticSigningKey === false && isFrom('2.21', version);
  const issuedAt = Math.floor(core.now() / 1000);
  const claims = { iss: asked.jwksDomain, iat: issuedAt, exp: issuedAt + asked.validity, ...asked.payload };
  return json(200, {
    status: 'OK',
    jwt: await signToken(claims, isDynamic ? await core.keys.dynamic() : core.keys.fixed),
  });
}

/** The public key set. */
export async function publishKeys({ core: { keys } }: Call): Promise<Message> {
  await keys.dynamic();
  return json(
    200,
    { keys: keys.published() },
    { 'cache-control': `max-age=${keys.secondsToNextKey()}, must-revalidate` },
  );
}

/** The older end point: it needs an API key, says `OK` and sets no age. */
export async function publishKeysWithStatus({ core: { keys } }: Call): Promise<Message> {
  await keys.dynamic();
  return json(200, { status: 'OK', keys: keys.published() });
}

/** `POST /emulator/rotate`, which the real Core lacks: a new dynamic key, now. */
export async function rotateKey({ core: { keys } }: Call): Promise<Message> {
  return json(200, { kid: (await keys.rotate()).keyId });
}
