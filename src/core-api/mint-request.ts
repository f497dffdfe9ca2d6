/** What a service token is minted with (docs/specification.md 2.1, 4.1). */
import type { Confirmation } from '../decision/binding/confirmation.js';
import { isGrant, maxPermissions } from '../decision/token/service-token.js';
import { maxSubjectLength } from '../decision/token/principal.js';
import { accept, refuse, type Result } from '../lib/result.js';
import { isVisibleAscii } from '../lib/text.js';

/** The claims that whoever asks for a token may choose: these and no other. */
export interface MintClaims {
  /** The receiving service. */
  readonly aud: string;
  /** The calling service. Visible ASCII. */
  readonly sub: string;
  readonly source: string;
  readonly token_type: string;
  /** RFC 6749 §3.3 scope-tokens, in the order that the token will have. */
  readonly permissions: readonly string[];
}

export interface MintRequest {
  readonly claims: MintClaims;
  /** The API domain, which becomes `iss`. */
  readonly issuer: string;
  /** Whole seconds, 1 to 7,200. */
  readonly validityS: number;
  /** The `jti` of a single-use token; made here, never taken from outside. */
  readonly tokenId: string | null;
  /** What its holder has to prove (RFC 7800 §3); left out where it counts for whoever has it. */
  readonly confirmation?: Confirmation;
}

/** A dynamic key verifies for two hours more than it signs, so a longer token could outlive its key. */
export const maxValidityS = 7_200;

/** Random bytes of a `jti`: 144 bits are beyond guessing and fill whole base64url characters. */
export const tokenIdBytes = 18;

const maxTextLength = 256;

/** As verifiers compare them: a text of one line. */
const oneLine = /^[^\x00-\x1f\x7f-\x9f]+$/;

/** Claims that a caller may try to set, and where they come from. On newer Cores the payload would win. */
const notChosen: ReadonlyMap<string, string> = new Map([
  ['jti', 'it is made for single-use tokens, here and at random'],
  ['iss', 'it is the issuer that was named'],
  ['exp', 'it follows from the validity'],
  ['iat', 'the Core sets it'],
  ['nbf', 'tokens are valid at once'],
]);

/**
 * Reads the claims of a request. The schema is fixed: a refusal says, in words, which member is missing, wrong or too
 * much.
 */
export function readMintClaims(members: Readonly<Record<string, unknown>>): Result<MintClaims, string> {
  const { aud, sub, source, token_type: tokenType, permissions, ...others } = members;
  const [other] = Object.keys(others);
  if (other !== undefined) return refuse(tooMuch(other));
  if (!isLine(aud)) return refuse(wrongText('aud'));
  if (!isVisibleAscii(sub, maxSubjectLength)) {
    return refuse(`sub must be a text of 1 to ${maxSubjectLength} visible ASCII characters`);
  }
  if (!isLine(source)) return refuse(wrongText('source'));
  if (!isLine(tokenType)) return refuse(wrongText('token_type'));
  if (!isPermissions(permissions)) {
    return refuse(
      `permissions must be a list of at most ${maxPermissions} texts of visible ASCII without space, " and \\ (it may be empty)`,
    );
  }
  return accept({ aud, sub, source, token_type: tokenType, permissions: [...permissions] });
}

/**
 * The body of `POST /recipe/jwt`. Nothing is left to a default: those are the static key and, in the SDK, a hundred
 * years.
 */
export function mintBody({
  claims,
  issuer,
  validityS,
  tokenId,
  confirmation,
}: MintRequest): Readonly<Record<string, unknown>> {
  return {
    payload: {
      ...claims,
      ...(tokenId === null ? {} : { jti: tokenId }),
      ...(confirmation === undefined ? {} : { cnf: cnfOf(confirmation) }),
    },
    useStaticSigningKey: false,
    algorithm: 'RS256',
    jwksDomain: issuer,
    validity: validityS,
  };
}

/** The claim that says what a token is bound to. */
export function cnfOf({ certificate, key }: Confirmation): Readonly<Record<string, string>> {
  return {
    ...(certificate === null ? {} : { 'x5t#S256': certificate }),
    ...(key === null ? {} : { jkt: key }),
  };
}

/**
 * Says why a `cdi-version` cannot mint; `null` where it can. Below 2.21 the Core ignores the wish for a dynamic key.
 */
export function cdiVersionProblem(version: string): string | null {
  const [, major, minor] = /^(\d{1,4})\.(\d{1,4})$/.exec(version) ?? [];
  if (major === undefined || minor === undefined) return 'is no version such as 5.4';
  if (Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 21)) return null;
  return 'is older than 2.21: the Core would silently sign with the static key, which never rotates';
}

function tooMuch(name: string): string {
  const reason = notChosen.get(name);
  const allowed = 'allowed: aud, sub, source, token_type, permissions';
  if (reason !== undefined) return `${name} cannot be chosen: ${reason}; ${allowed}`;
  // A member's name may be anything: what looks like a word is shown.
  return `${/^[A-Za-z][A-Za-z0-9_]{0,31}$/.test(name) ? name : 'a member'} is not part of a service token; ${allowed}`;
}

function wrongText(name: string): string {
  return `${name} must be a text of 1 to ${maxTextLength} characters without controls`;
}

function isLine(value: unknown): value is string {
  return (
    typeof value === 'string' && value.length <= maxTextLength && oneLine.test(value) && !/\p{Surrogate}/u.test(value)
  );
}

function isPermissions(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) &&
    value.length <= maxPermissions &&
    value.every((item) => typeof item === 'string' && isGrant(item))
  );
}
