import { parseCompactJws, readPayload, verifySignature } from '../../decision/token/compact-jws.js';
import { headerProblem } from '../../decision/token/service-header.js';
import { namesAudience } from '../../decision/token/profile-claims.js';
import { isAbsentOr, isNumericDate, keyIdOf } from '../../decision/token/service-token.js';
import type { IssuerRules } from '../../decision/route/policy.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { defaultMaxDepth, isJsonObject, parseStrictJson, type JsonObject } from '../../lib/strict-json.js';
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
  asked: Asked,
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
  const { iss, aud, token_introspection: members } = claims.value;
  if (iss !== issuer.expectedIssuer) return refuse('the response is signed as another issuer’s');
  if (!namesAudience(aud, new Set([clientId]))) {
    return refuse('the response is for another client');
  }
  if (!isOfNow(claims.value, issuer.clockSkewS * 1_000, asked)) {
    return refuse('the response was not made when it was asked for, or does not count now: its iat, exp or nbf');
  }
  return isJsonObject(members) ? accept(members) : refuse('the response has no token_introspection');
}

/** Made after the question and not ahead. `exp` and `nbf` may be missing, and count as anywhere (RFC 7519 §4.1). */
function isOfNow({ iat, exp, nbf }: JsonObject, skewMs: number, { fromMs, untilMs }: Asked): boolean {
  // `iat` is in whole seconds: what was made in that second may be up to one later.
  if (!isNumericDate(iat) || (iat + 1) * 1_000 + skewMs <= fromMs || iat * 1_000 - skewMs > untilMs) return false;
  if (!isAbsentOr(isNumericDate, exp) || (exp !== undefined && untilMs >= exp * 1_000 + skewMs)) return false;
  return isAbsentOr(isNumericDate, nbf) && (nbf === undefined || nbf * 1_000 <= untilMs + skewMs);
}
