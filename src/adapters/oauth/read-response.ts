import { parseCompactJws, readPayload, verifySignature } from '../../decision/token/compact-jws.js';
import { headerProblem } from '../../decision/token/service-header.js';
import { isNumericDate, keyIdOf } from '../../decision/token/service-token.js';
import type { IssuerRules } from '../../decision/route/policy.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { defaultMaxDepth, isJsonArray, isJsonObject, parseStrictJson, type JsonObject } from '../../lib/strict-json.js';
import type { KeySource } from '../../ports/auth.js';
import { acceptedTypes } from './ask-issuer.js';

/** What is needed to believe a response. */
interface ResponseRules {
  readonly form: keyof typeof acceptedTypes;
  readonly clientId: string;
  readonly issuer: Pick<IssuerRules, 'expectedIssuer' | 'algorithms' | 'keyIds' | 'clockSkewS'>;
  readonly keys: Pick<KeySource, 'find'>;
}

/** When the question was put and when the response came, milliseconds since the epoch. */
interface Asked {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The type of RFC 9701 §5. */
const jwtTypes: ReadonlySet<string> = new Set(['token-introspection+jwt']);

/**
 * Reads what an issuer says of a token (RFC 7662 §2.2, RFC 9701 §5): its members where it is active, `null` where it is
 * not. Refuses, in words that quote nothing, what is no such response: `active` is a truth value, and no text.
 */
export async function readResponse(
  { type, bytes }: { readonly type: string; readonly bytes: Buffer },
  rules: ResponseRules,
  asked: Asked,
): Promise<Result<JsonObject | null, string>> {
  if (type !== acceptedTypes[rules.form]) {
    const named = /^[a-z0-9.+-]+\/[a-z0-9.+-]+$/.test(type) && type.length <= 100 ? type : 'of no known type';
    return refuse(`the response is ${named}, and no ${acceptedTypes[rules.form]}`);
  }
  const members = rules.form === 'json' ? readJson(bytes) : await readJwt(bytes.toString('latin1'), rules, asked);
  if (!members.ok) return members;
  const { active } = members.value;
  if (typeof active !== 'boolean') return refuse('the response does not say in `active` whether the token is');
  return accept(active ? members.value : null);
}

function readJson(bytes: Buffer): Result<JsonObject, string> {
  const parsed = parseStrictJson(bytes, { maxDepth: defaultMaxDepth });
  return parsed.ok ? parsed : refuse('the response is no JSON object, or names a member twice');
}

/**
 * RFC 9701 §5 and §8.1: signed by the issuer, for this client and lately. A response from before the question is one
 * that somebody kept.
 */
async function readJwt(
  text: string,
  { clientId, issuer, keys }: ResponseRules,
  { fromMs, untilMs }: Asked,
): Promise<Result<JsonObject, string>> {
  const token = parseCompactJws(text, (header) => {
    const problem = headerProblem(header, { ...issuer, profile: 'oauth', headerTypes: jwtTypes });
    return problem === null ? accept(keyIdOf(header)) : refuse(problem);
  });
  if (!token.ok) return refuse(`the response is a JWT that is refused: ${token.error.reason}`);
  const found = await Promise.resolve(keys.find(token.value.keyId)).catch(() => null);
  if (found?.kind !== 'found') return refuse('the key that signed the response is not among the issuer’s');
  const { key, algorithm } = found.key;
  if (token.value.header['alg'] !== algorithm) {
    return refuse('the response is signed by another algorithm than its key’s');
  }
  if (!verifySignature(token.value, key, algorithm)) return refuse('the signature of the response does not hold');
  const claims = readPayload(token.value);
  if (!claims.ok) return refuse('the response’s claims are no JSON object');
  const { iss, aud, iat, token_introspection: members } = claims.value;
  if (iss !== issuer.expectedIssuer) return refuse('the response is signed as another issuer’s');
  if (aud !== clientId && !(isJsonArray(aud) && aud.includes(clientId))) {
    return refuse('the response is for another client');
  }
  const skewMs = issuer.clockSkewS * 1_000;
  // `iat` is in whole seconds, and so up to one before the question.
  if (!isNumericDate(iat) || (iat + 1) * 1_000 + skewMs < fromMs || iat * 1_000 - skewMs > untilMs) {
    return refuse('the response was not made when it was asked for: its iat is another time');
  }
  return isJsonObject(members) ? accept(members) : refuse('the response has no token_introspection');
}
