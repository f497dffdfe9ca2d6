import { acceptsKeyId } from '../../decision/token/kid-filter.js';
import { peekHeader, readPayload, type SignedToken } from '../../decision/token/compact-jws.js';
import { claimedSubject } from '../../decision/token/profile-claims.js';
import { denial, type Denial } from '../../decision/denial.js';
import type { IssuerRules, KeyIdRules, Revocations } from '../../decision/route/policy.js';
import type { RequestHeaders } from '../../decision/http/request-headers.js';
import {
  claimsAsRead,
  isAmong,
  isRevoked,
  revokesClaims,
  signedClaims,
  tokenDigest,
} from '../../decision/revocation/match.js';
import { namesKey } from '../../decision/revocation/named-keys.js';
import { plainAccessTokens } from '../../decision/session/headers.js';
import { isSessionHeader, sessionKeyIds } from '../../decision/session/token.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/strict-json.js';
import type { KeyAsker, KeyLookup, KeySource, VerificationKey } from '../../ports/auth.js';
import type { ActiveConfig, ActiveIssuer } from './active-config.js';
import { checkSignature, type SignatureVerdict } from './signature-queue.js';
import { askedIssuer, findRevokedClaims } from './credentials/opaque-token.js';
import { meantAmong, missingKey } from './credentials/service-token.js';

/** Keys, and for which tokens they are asked. */
interface Keys {
  readonly keys: KeySource;
  readonly keyIds: KeyIdRules;
  readonly algorithms: ReadonlySet<unknown>;
  /** The issuer, which says who calls; `null` of sessions. */
  readonly issuer: ActiveIssuer | null;
}

type Found = Denial | null;

/**
 * Looks for a revocation of a token that was refused for another reason; `null` where there is none. Otherwise shadow
 * mode would let a revoked token pass as soon as it has expired as well.
 *
 * A revoked key id counts as the header has it, whoever the issuer, for the key may have left its set by now. A digest
 * stands for this token alone. Subject, id and time count only where the signature holds: tokens of other issuers may
 * bear the same names, and are not meant. A token is found however it is spelt and however long it is: the request goes
 * on as it came, to a service that may be less strict.
 *
 * @param asker who waits for a signature that is slow to check.
 */
export function findRevokedToken(
  { authorization, passed }: Pick<RequestHeaders, 'authorization' | 'passed'>,
  activeConfig: ActiveConfig,
  asker: KeyAsker | null = null,
): Found | Promise<Found> {
  const { sessions, issuers } = activeConfig;
  const revoked = activeConfig.revocations();
  const isKnown = activeConfig.knowsRevocations();
  const keyIds = revoked.map((rules) => rules.keyIds).filter(({ size }) => size > 0);
  const digests = revoked.map(({ tokenDigests }) => tokenDigests).filter(({ size }) => size > 0);
  const byClaims = revoked.filter(revokesClaims);
  if (isKnown && keyIds.length === 0 && digests.length === 0 && byClaims.length === 0) return null;
  const bearer = authorization ?? '';
  const cookies = sessions === null ? [] : plainAccessTokens(passed);
  // Nobody knows which token the service has of them; and looking many up would keep everybody else waiting.
  if (cookies === null || cookies.length > maxTokens) {
    return denial(isKnown ? 'credential_ambiguous' : 'revocations_unknown');
  }
  if (namesRevokedKey([bearer, ...cookies], keyIds)) return denial('key_revoked');
  if (isKnown && digests.length === 0 && byClaims.length === 0) return null;
  const tokens = [...new Set([...tokensIn(bearer), ...cookies])];
  const words = wordsIn(bearer, issuers);
  // Looking each of them up would keep everybody else waiting.
  if ((digests.length > 0 || byClaims.length > 0) && (tokens.length > maxTokens || words.length > maxWords)) {
    return denial('credential_ambiguous');
  }
  const whole = tokensIn(inOnePiece(bearer.replace(scheme, ''))).filter(
    (token) => !tokens.includes(token) && readLaxly(token) !== null,
  );
  const opaque = words.filter((word) => askedIssuer(word, issuers) !== null);
  if (digests.length > 0) {
    const found = [...tokens, ...whole, ...opaque].map(tokenDigest);
    if (digests.some((known) => found.some((digest) => known.has(digest)))) return denial('token_revoked');
  }
  // Whatever else is wrong with the token, it may be one that every other proxy refuses as revoked.
  if (!isKnown && tokens.length + whole.length + opaque.length > 0) return denial('revocations_unknown');
  if (byClaims.length === 0) return null;
  for (const token of opaque) {
    const found = findRevokedClaims(token, issuers, revoked);
    if (found !== null) return found;
  }
  // Of an issuer that is not in the config nobody knows with whose keys it signs.
  const isMeant = ({ rules }: ActiveIssuer): boolean =>
    byClaims.some(
      ({ issuer }) => issuer === null || issuer === rules.issuer || issuers.every((one) => one.rules.issuer !== issuer),
    );
  const sources: readonly Keys[] = [
    ...issuers.filter(isMeant).map((issuer) => ({
      keys: issuer.keys,
      keyIds: issuer.rules.keyIds,
      algorithms: issuer.rules.algorithms,
      issuer,
    })),
    ...(sessions === null
      ? []
      : [{ keys: sessions.keys, keyIds: sessionKeyIds, algorithms: sessionAlgorithms, issuer: null }]),
  ];
  return findAmong(tokens, whole, sources, activeConfig, asker);
}

const sessionAlgorithms = new Set(['RS256']);

/** What has the form of a token in one request, and is looked up. */
const maxTokens = 16;

/** Words that an issuer may be asked about: schemes with signed parameters have some 40 of them. */
const maxWords = 128;

function namesRevokedKey(credentials: readonly string[], known: readonly ReadonlySet<string>[]): boolean {
  if (known.length === 0) return false;
  return credentials.some((credential) =>
    namesKey(credential, (keyId) => known.some((keyIds) => isAmong(keyIds, keyId))),
  );
}

/** What an issuer may be asked about, whatever stands around it; nothing where no issuer is asked. */
function wordsIn(credential: string, issuers: readonly ActiveIssuer[]): readonly string[] {
  const prefixes = issuers.flatMap(({ introspection }) => introspection?.rules.tokenPrefix ?? []);
  if (prefixes.length === 0) return [];
  const words = new Set(credential.split(/[^\w.~+/=-]+/));
  return [...words].filter((word) => word !== '' && prefixes.some((prefix) => word.startsWith(prefix)));
}

/**
 * Everything in a credential that has the form of a token, whatever stands around it. Some readers take padded parts,
 * and some leave out what follows the third: Java splits `a.b.c.` in three.
 */
function tokensIn(credential: string): readonly string[] {
  const padded = credential.replace(/=+(\.?)/g, (padding, dot: string) => (dot === '' ? ' ' : padding));
  return padded.split(/[^\w.+/=-]+/).flatMap((part) => {
    const parts = part.split('.', 4);
    if (parts.length < 3) return [];
    return parts.length === 3 ? [part] : [parts.slice(0, 3).join('.'), part];
  });
}

const scheme = /^\s*[\w-]+\s+/;

/** As readers have it that pass over what is no base64: nothing of a signature is cut off by a blank in it. */
function inOnePiece(credential: string): string {
  return credential.replace(/[^\w.+/-]+/g, '');
}

/** Tokens of one request whose signatures are checked: callers send one, and some a session beside it. */
const maxVerified = 4;

/** A token that the keys of these may have signed. */
interface Candidate {
  readonly token: SignedToken;
  readonly sources: readonly Keys[];
}

/** @param whole `Authorization` in one piece: another reading of one of the tokens, which is not counted. */
async function findAmong(
  tokens: readonly string[],
  whole: readonly string[],
  sources: readonly Keys[],
  { revocations }: Pick<ActiveConfig, 'revocations'>,
  asker: KeyAsker | null,
): Promise<Found> {
  const candidatesIn = (among: readonly string[]): readonly Candidate[] =>
    among.flatMap((token) => candidateOf(token, sources) ?? []);
  const candidates = candidatesIn(tokens);
  // Checking so many signatures would keep everybody else waiting.
  if (candidates.length > maxVerified) return denial('credential_ambiguous');
  let undecided: Found = null;
  for (const { token, sources: asked } of [...candidates, ...candidatesIn(whole)]) {
    const checked: (readonly [VerificationKey, SignatureVerdict])[] = [];
    const missing = new Map<Keys, Denial>();
    for (const source of asked) {
      const found = await lookUp(token, source.keys);
      if (found.kind !== 'found') {
        if (found.kind !== 'unknown') missing.set(source, missingKey(found.kind));
        continue;
      }
      const { key } = found;
      if (key.algorithm !== token.header['alg']) continue;
      // Issuers may have one key set.
      const same = checked.find(([other]) => other.algorithm === key.algorithm && other.key.equals(key.key));
      const verdict = same?.[1] ?? (await checkSignature(token, key, asker));
      checked.push([key, verdict]);
      if (verdict === 'busy') return denial('overloaded');
      const revoked = verdict === 'holds' ? revokedClaims(token, revocations(), source.issuer?.rules ?? null) : null;
      if (revoked !== null) return revoked;
    }
    // A token whose signature held is that issuer's, and no other's.
    if (missing.size === 0 || checked.some(([, verdict]) => verdict === 'holds')) continue;
    undecided ??= meantBy(token, asked).flatMap((source) => missing.get(source) ?? [])[0] ?? null;
  }
  return undecided;
}

function candidateOf(token: string, sources: readonly Keys[]): Candidate | null {
  const signed = readLaxly(token);
  if (signed === null) return null;
  const { keyId, header } = signed;
  const asked = sources.filter(
    ({ keyIds, algorithms }) => acceptsKeyId(keyIds, keyId) && algorithms.has(header['alg']),
  );
  return asked.length === 0 ? null : { token: signed, sources: asked };
}

/**
 * Takes a token apart as a lax reader does, who takes either alphabet of base64, ignores the bits that are left over
 * and goes by the last of two names: the signature tells whether it is an issuer's.
 */
function readLaxly(token: string): SignedToken | null {
  const [encodedHeader = '', encodedPayload = '', signature = '', ...more] = token.split('.', 4);
  const header = more.length > 0 ? null : (peekHeader(token, Infinity) ?? parseLaxly(encodedHeader));
  if (header === null) return null;
  const { kid } = header;
  return {
    keyId: typeof kid === 'string' || typeof kid === 'number' ? String(kid) : '',
    header,
    signingInput: Buffer.from(token.slice(0, token.lastIndexOf('.')), 'latin1'),
    signature: Buffer.from(signature, 'base64'),
    encodedPayload,
  };
}

function parseLaxly(encoded: string): JsonObject | null {
  const json = Buffer.from(encoded, 'base64').toString('utf8');
  try {
    const value = JSON.parse(json) as JsonValue;
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

/**
 * Those without whose keys nobody knows of the token: as where a token is verified, sessions of a session's access
 * token, and else the issuers that it says it is from.
 */
function meantBy(token: SignedToken, asked: readonly Keys[]): readonly Keys[] {
  const ofSessions = asked.filter(({ issuer }) => issuer === null);
  if (isSessionHeader(token.header) && ofSessions.length > 0) return ofSessions;
  const meant = meantAmong(
    asked.flatMap(({ issuer }) => issuer ?? []),
    token,
  );
  return asked.filter(({ issuer }) => issuer !== null && meant.includes(issuer));
}

async function lookUp({ keyId }: SignedToken, keys: KeySource): Promise<KeyLookup> {
  try {
    return await keys.find(keyId);
  } catch {
    // A key source must not reject; if it does, nothing is known of the token.
    return { kind: 'unknown' };
  }
}

/** What its issuer says of the caller; where two readers may take that differently, it may be somebody revoked. */
function revokedClaims(token: SignedToken, revoked: readonly Revocations[], rules: IssuerRules | null): Found {
  const payload = readPayload(token);
  if (!payload.ok) return payload.error;
  for (const claims of claimsAsRead(payload.value)) {
    const claimed = signedClaims(token.keyId, claims);
    // What is revoked is named as callers are: by the subject that the profile reads, and its issuer.
    const named =
      rules === null || rules.profile === 'core'
        ? claimed
        : {
            ...claimed,
            issuer: rules.expectedIssuer === null ? rules.issuer : claimed.issuer,
            subject: claimedSubject(claims, rules),
          };
    const found = isRevoked(named, revoked, () => '');
    if (found !== null) return found;
  }
  return null;
}
