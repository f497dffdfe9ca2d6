import { acceptsKeyId } from '../../decision/token/kid-filter.js';
import { parseCompactJws, peekHeader, readPayload, type SignedToken } from '../../decision/token/compact-jws.js';
import { subjectOf } from '../../decision/token/profile-claims.js';
import { denial, type Denial } from '../../decision/denial.js';
import type { IssuerRules, KeyIdRules, Revocations } from '../../decision/route/policy.js';
import type { RequestHeaders } from '../../decision/http/request-headers.js';
import { accept } from '../../lib/result.js';
import { isRevoked, revokesClaims, signedClaims, tokenDigest } from '../../decision/revocation/match.js';
import { readSessionHeaders } from '../../decision/session/headers.js';
import type { KeyAsker, KeySource, VerificationKey } from '../../ports/auth.js';
import type { ActiveConfig, ActiveIssuer } from './active-config.js';
import { checkSignature, type SignatureVerdict } from './signature-queue.js';
import { askedIssuer, findRevokedClaims } from './credentials/opaque-token.js';
import { sessionKeyIds } from '../../decision/session/token.js';

/** Keys, and for which key ids they are asked. */
interface Keys {
  readonly keys: KeySource;
  readonly keyIds: KeyIdRules;
  /** Of an issuer, which say who calls; `null` of sessions. */
  readonly rules: IssuerRules | null;
}

type Found = Denial | null;

/**
 * Looks for a revocation of a token that was refused for another reason; `null` where there is none. Otherwise shadow
 * mode would let a revoked token pass as soon as it has expired as well.
 *
 * A revoked key id counts as the header has it, whoever the issuer, for the key may have left its set by now. A digest
 * stands for this token alone. Subject, id and time count only where the signature holds: tokens of other issuers may
 * bear the same names, and are not meant. A token is found however it is spelt: the request goes on as it came, to a
 * service that may be less strict.
 *
 * @param asker who waits for a signature that is slow to check.
 */
export function findRevokedToken(
  { authorization, passed }: Pick<RequestHeaders, 'authorization' | 'passed'>,
  activeConfig: ActiveConfig,
  asker: KeyAsker | null = null,
): Found | Promise<Found> {
  const { sessions } = activeConfig;
  const revoked = activeConfig.revocations();
  const credentials = [authorization ?? '', ...(sessions === null ? [] : readSessionHeaders(passed).accessTokens)];
  const tokens = [...new Set(credentials.flatMap(tokensIn))];
  if (tokens.some((token) => namesRevokedKey(token, revoked))) return denial('key_revoked');
  const opaque = opaqueTokensIn(authorization ?? '', activeConfig.issuers);
  if (
    [...tokens, ...opaque].some((token) =>
      revoked.some(({ tokenDigests }) => tokenDigests.size > 0 && tokenDigests.has(tokenDigest(token))),
    )
  ) {
    return denial('token_revoked');
  }
  // Whatever else is wrong with the token, it may be one that every other proxy refuses as revoked.
  if (tokens.length + opaque.length > 0 && !activeConfig.knowsRevocations()) return denial('revocations_unknown');
  if (!revoked.some(revokesClaims)) return null;
  for (const token of opaque) {
    const found = findRevokedClaims(token, activeConfig.issuers, revoked);
    if (found !== null) return found;
  }
  const sources: readonly Keys[] = [
    ...activeConfig.issuers.map(({ keys, rules }) => ({ keys, keyIds: rules.keyIds, rules })),
    ...(sessions === null ? [] : [{ keys: sessions.keys, keyIds: sessionKeyIds, rules: null }]),
  ];
  return findAmong(tokens, sources, activeConfig, asker);
}

/** Everything in a credential that an issuer may be asked about, whatever stands around it. */
function opaqueTokensIn(credential: string, issuers: readonly ActiveIssuer[]): readonly string[] {
  return credential.split(/[^\w.~+/=-]+/).filter((part) => part !== '' && askedIssuer(part, issuers) !== null);
}

/** Everything in a credential that has the form of a token, whatever stands around it. */
function tokensIn(credential: string): readonly string[] {
  return credential.split(/[^\w.+/-]+/).filter((part) => part.split('.').length === 3);
}

/**
 * The token with its signature in canonical base64url: lax readers take either alphabet, and ignore the bits that are
 * left over at its end.
 */
function canonicalSpelling(token: string): string {
  const end = token.lastIndexOf('.') + 1;
  return `${token.slice(0, end)}${Buffer.from(token.slice(end), 'base64').toString('base64url')}`;
}

function namesRevokedKey(token: string, revoked: readonly Revocations[]): boolean {
  const keyId = peekHeader(token)?.['kid'];
  return typeof keyId === 'string' && revoked.some(({ keyIds }) => keyIds.has(keyId));
}

/** Tokens of one request whose signatures are checked: callers send one, and some a session beside it. */
const maxVerified = 4;

/** A token that the keys of these may have signed. */
interface Candidate {
  readonly token: SignedToken;
  readonly sources: readonly Keys[];
}

async function findAmong(
  tokens: readonly string[],
  sources: readonly Keys[],
  { revocations }: Pick<ActiveConfig, 'revocations'>,
  asker: KeyAsker | null,
): Promise<Found> {
  const candidates = tokens.flatMap((token) => candidateOf(token, sources) ?? []);
  // Checking so many signatures would keep everybody else waiting.
  if (candidates.length > maxVerified) return denial('credential_ambiguous');
  for (const { token, sources: asked } of candidates) {
    const checked: (readonly [VerificationKey, SignatureVerdict])[] = [];
    for (const { keys, rules } of asked) {
      const found = await keyFor(token, keys);
      if (found === null) continue;
      // Issuers may have one key set.
      const same = checked.find(([{ key, algorithm }]) => algorithm === found.algorithm && key.equals(found.key));
      const verdict = same?.[1] ?? (await checkSignature(token, found, asker));
      checked.push([found, verdict]);
      if (verdict === 'busy') return denial('overloaded');
      const revoked = verdict === 'holds' ? revokedClaims(token, revocations(), rules) : null;
      if (revoked !== null) return revoked;
    }
  }
  return null;
}

function candidateOf(token: string, sources: readonly Keys[]): Candidate | null {
  const signed = parseCompactJws(canonicalSpelling(token), ({ kid }) => accept(typeof kid === 'string' ? kid : ''));
  if (!signed.ok) return null;
  const asked = sources.filter(({ keyIds }) => acceptsKeyId(keyIds, signed.value.keyId));
  return asked.length === 0 ? null : { token: signed.value, sources: asked };
}

/** The key that may have signed it, by its id and its algorithm. */
async function keyFor({ keyId, header }: SignedToken, keys: KeySource): Promise<VerificationKey | null> {
  try {
    const lookup = await keys.find(keyId);
    return lookup.kind === 'found' && lookup.key.algorithm === header['alg'] ? lookup.key : null;
  } catch {
    // A key source must not reject; if it does, nothing is known of the token.
    return null;
  }
}

function revokedClaims(token: SignedToken, revoked: readonly Revocations[], rules: IssuerRules | null): Found {
  const payload = readPayload(token);
  if (!payload.ok) return null;
  const claimed = signedClaims(token.keyId, payload.value);
  // What is revoked is named as callers are: by the subject that the profile reads, and its issuer.
  const named =
    rules === null || rules.profile === 'core'
      ? claimed
      : {
          ...claimed,
          issuer: rules.expectedIssuer === null ? rules.issuer : claimed.issuer,
          subject: subjectOf(payload.value, rules) ?? '',
        };
  return isRevoked(named, revoked, () => '');
}
