import { readConfirmation, type Confirmation } from '../decision/binding/confirmation.js';
import { isNumericDate, parseServiceToken } from '../decision/token/service-token.js';
import { maxTokenBytes, readPayload } from '../decision/token/compact-jws.js';
import type { MintClaims, MintRequest } from './mint-request.js';
import { accept, refuse, type Result } from '../lib/result.js';
import { isJsonArray, type JsonObject, type JsonValue } from '../lib/strict-json.js';

/** A token that is what was asked for. */
export interface MintedToken {
  readonly token: string;
  readonly keyId: string;
  readonly claims: MintClaims;
  readonly issuer: string;
  readonly tokenId: string | null;
  /** Seconds since the epoch. */
  readonly issuedAtS: number;
  /** Seconds since the epoch. */
  readonly expiresAtS: number;
}

/** When the call was made, milliseconds since the epoch. */
interface MintTimes {
  readonly startedMs: number;
  readonly endedMs: number;
}

/** Keys that rotate; static ones are `s-…`, or a bare UUID from Cores before 5.0. */
const dynamicKeyId = /^d-/;

/** Receivers allow 60 s at most between clocks: a token of a clock further off is of no use to anybody. */
const maxClockDifferenceS = 60;

const expectedClaims: ReadonlySet<string> = new Set([
  'aud',
  'sub',
  'source',
  'token_type',
  'permissions',
  'jti',
  'iss',
  'iat',
  'exp',
  'cnf',
]);

/**
 * Holds a token that the Core answered with to what was asked: RS256, a dynamic key, these claims and no other, this
 * lifetime. The signature is left to receivers, who have the issuer's keys. A refusal says what differs, without
 * quoting it.
 */
export function checkMinted(token: string, request: MintRequest, times: MintTimes): Result<MintedToken, string> {
  if (token.length > maxTokenBytes) {
    return refuse(`it is longer than the ${maxTokenBytes} bytes that receivers read; ask for fewer permissions`);
  }
  const parsed = parseServiceToken(token);
  if (!parsed.ok) return refuse(formProblems[parsed.error.reason] ?? 'it is no well-formed token');
  const { keyId } = parsed.value;
  if (!dynamicKeyId.test(keyId)) {
    return refuse(
      'it is signed with a key that is not dynamic: its kid does not begin with d-; old Cores have static keys only',
    );
  }
  const payload = readPayload(parsed.value);
  if (!payload.ok) return refuse('its claims are no duplicate-free JSON object');
  const problem = claimProblem(payload.value, request);
  if (problem !== null) return refuse(problem);
  const { iat, exp } = payload.value;
  if (!isNumericDate(iat) || !isNumericDate(exp)) return refuse('its iat or exp is missing or no whole number');
  const late = timeProblem(iat, exp, request.validityS, times);
  if (late !== null) return refuse(late);
  return accept({
    token,
    keyId,
    claims: request.claims,
    issuer: request.issuer,
    tokenId: request.tokenId,
    issuedAtS: iat,
    expiresAtS: exp,
  });
}

const formProblems: Readonly<Record<string, string>> = {
  algorithm_refused: 'it is signed with another algorithm than RS256',
  key_id_refused: 'it names no key (kid)',
};

function claimProblem(payload: JsonObject, { claims, issuer, tokenId, confirmation }: MintRequest): string | null {
  if (payload['iss'] !== issuer) return 'its iss is not the issuer that was asked for';
  for (const name of ['aud', 'sub', 'source', 'token_type'] as const) {
    if (payload[name] !== claims[name]) return `its ${name} is not what was asked for`;
  }
  if (!isSameList(payload['permissions'], claims.permissions)) return 'its permissions are not what was asked for';
  if (payload['jti'] !== (tokenId ?? undefined)) {
    return tokenId === null ? 'it has a jti, which was not asked for' : 'its jti is not what was asked for';
  }
  if (!isBoundTo(payload['cnf'], confirmation)) {
    return confirmation === undefined ? 'it has a cnf, which was not asked for' : 'its cnf is not what was asked for';
  }
  return Object.keys(payload).every((name) => expectedClaims.has(name))
    ? null
    : 'it has claims that were not asked for';
}

function isBoundTo(cnf: JsonValue | undefined, asked: Confirmation | undefined): boolean {
  if (cnf === undefined || asked === undefined) return cnf === asked;
  const read = readConfirmation(cnf);
  return read !== null && read.certificate === asked.certificate && read.key === asked.key;
}

function isSameList(value: JsonValue | undefined, expected: readonly string[]): boolean {
  return (
    isJsonArray(value) && value.length === expected.length && value.every((item, index) => item === expected[index])
  );
}

/** Rounding to seconds may take one off. */
function timeProblem(iat: number, exp: number, validityS: number, { startedMs, endedMs }: MintTimes): string | null {
  const lifetimeS = exp - iat;
  if (lifetimeS > validityS || lifetimeS < validityS - 1) {
    return `it lives for ${lifetimeS} s, and ${validityS} s were asked for`;
  }
  const aheadS = Math.max(iat - endedMs / 1000, startedMs / 1000 - 1 - iat);
  if (aheadS <= maxClockDifferenceS) return null;
  const direction = iat * 1000 > endedMs ? 'ahead of' : 'behind';
  return `the clock of the Core is ${Math.round(aheadS)} s ${direction} the one here; receivers would refuse its tokens`;
}
