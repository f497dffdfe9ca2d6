import { acceptsKeyId } from '../../decision/token/kid-filter.js';
import {
  parseCompactJws,
  peekHeader,
  readPayload,
  type SignedToken,
  verifySignature,
} from '../../decision/token/compact-jws.js';
import { subjectOf } from '../../decision/token/profile-claims.js';
import { denial, type Denial } from '../../decision/denial.js';
import type { IssuerRules, KeyIdRules, Revocations } from '../../decision/route/policy.js';
import type { RequestFields } from '../../decision/http/request-headers.js';
import { accept } from '../../lib/result.js';
import { isRevoked, revokesClaims, signedClaims, tokenDigest } from '../../decision/revocation/match.js';
import { readSessionFields } from '../../decision/session/headers.js';
import type { KeySource } from '../../ports/auth.js';
import type { ActiveConfig, ActiveIssuer } from './active-config.js';
import { askedIssuer, findRevokedClaims } from './verify-opaque-token.js';
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
 * Looks up the revocation of a token that was refused for another reason, or `null`: one that is expired as well must
 * not pass in shadow mode where it would not pass alone. A revoked key id counts as the
 * header has it, whoever the issuer, for the key may have left its set by now; a digest stands for this token alone.
 * Subject, id and time count where the signature holds: tokens of others, who may have the same names, are not meant.
 * Tokens are looked for however they are spelt: the request goes on as it came, to a service that may be less strict.
 */
export function findRevokedToken(
  { authorization, passed }: Pick<RequestFields, 'authorization' | 'passed'>,
  activeConfig: ActiveConfig,
): Found | Promise<Found> {
  const { sessions } = activeConfig;
  const revoked = activeConfig.revocations();
  const credentials = [authorization ?? '', ...(sessions === null ? [] : readSessionFields(passed).accessTokens)];
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
  // Whatever is wrong with a token besides: it may be one of those that every other proxy refuses.
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
  return findAmong(tokens, sources, activeConfig);
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
 * The same with the signature spelt as it should be: lax readers take either alphabet, and any bits in what is left
 * over.
 */
function canonicalSpelling(token: string): string {
  const end = token.lastIndexOf('.') + 1;
  return `${token.slice(0, end)}${Buffer.from(token.slice(end), 'base64').toString('base64url')}`;
}

function namesRevokedKey(token: string, revoked: readonly Revocations[]): boolean {
  const keyId = peekHeader(token)?.['kid'];
  return typeof keyId === 'string' && revoked.some(({ keyIds }) => keyIds.has(keyId));
}

async function findAmong(
  tokens: readonly string[],
  sources: readonly Keys[],
  { revocations }: Pick<ActiveConfig, 'revocations'>,
): Promise<Found> {
  for (const token of tokens) {
    const signed = parseCompactJws(canonicalSpelling(token), ({ kid }) => accept(typeof kid === 'string' ? kid : ''));
    if (!signed.ok) continue;
    const asked = sources.filter(({ keyIds }) => acceptsKeyId(keyIds, signed.value.keyId));
    for (const { keys, rules } of asked) {
      const found = (await holds(signed.value, keys)) ? revokedClaims(signed.value, revocations(), rules) : null;
      if (found !== null) return found;
    }
  }
  return null;
}

async function holds(token: SignedToken, keys: KeySource): Promise<boolean> {
  try {
    const lookup = await keys.find(token.keyId);
    return lookup.kind === 'found' && verifySignature(token, lookup.key.key, lookup.key.algorithm);
  } catch {
    // A source that breaks its word: nothing is known of the token, as when it was refused.
    return false;
  }
}

function revokedClaims(token: SignedToken, revoked: readonly Revocations[], rules: IssuerRules | null): Found {
  const payload = readPayload(token);
  if (!payload.ok) return null;
  const claimed = signedClaims(token.keyId, payload.value);
  // What is withdrawn is named as callers are: by the subject that the profile reads, and its issuer.
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
