import { isMeantFor, verifyTokenClaims } from '../../../decision/token/profile-claims.js';
import { headerProblem, nearestProblem } from '../../../decision/token/service-header.js';
import { parseTokenForm } from '../../../decision/token/service-token.js';
import { readPayload, type SignedToken } from '../../../decision/token/compact-jws.js';
import { denial, type Denial, type Reason } from '../../../decision/denial.js';
import { principalName, type Principal } from '../../../decision/token/principal.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import type { KeyAsker, KeyLookup, VerificationKey } from '../../../ports/auth.js';
import type { ActiveIssuer } from '../active-config.js';
import { checkSignature, type SignatureVerdict } from '../signature-queue.js';
import { verifyOpaqueToken } from './opaque-token.js';
import type { VerifiedToken, VerifiedTokens } from '../verified-token-cache.js';

type Verdict = Result<Principal, Denial>;

/**
 * Verifies a service token against every issuer that accepts its header, or those of them that its claims name
 * (`meantAmong`); where none accepts it, nothing is fetched. Claims are judged only after a signature held. Issuers may
 * share a key set, so a signature that holds for an issuer whose claims do not match settles nothing: the first issuer
 * whose claims match as well wins, in the order of the config where the keys are known.
 *
 * Where an issuer whose key is known accepts, nothing is fetched and nobody waits. Otherwise this answers at once
 * unless some key has to be fetched, or is slow to verify with; then it answers as soon as one issuer accepts, so that
 * another one's slow key server delays no good token. Of an opaque token only one issuer is asked.
 *
 * @param verified where tokens that were verified by these issuers are remembered; `null` verifies each time.
 * @param asker who is ready to wait for a key that may be new; `null` waits for a fetch that is allowed now, and no
 *   longer.
 * @param digest by which `verified` knows the token, where that was worked out before.
 */
export function verifyCredential(
  encoded: string,
  issuers: readonly ActiveIssuer[],
  nowMs: number,
  verified: VerifiedTokens | null = null,
  asker: KeyAsker | null = null,
  digest: string | null = null,
): Verdict | Promise<Verdict> {
  const known = verified?.find(encoded, nowMs, digest) ?? null;
  if (known !== null) return accept(known);
  const token = parseTokenForm(encoded);
  if (!token.ok) return verifyOpaqueToken(encoded, issuers, nowMs, asker, digest) ?? token;
  const { header } = token.value;
  const accepting = issuers.filter(({ rules }) => headerProblem(header, rules) === null);
  if (accepting.length === 0) {
    return refuse(
      denial(
        nearestProblem(
          header,
          issuers.map(({ rules }) => rules),
        ),
      ),
    );
  }
  const candidates = meantAmong(accepting, token.value);

  // Where several may accept the token, who wins may change with their keys: that is judged anew each time.
  const remember =
    candidates.length > 1 || verified === null
      ? null
      : (found: VerifiedToken): void => {
          verified.keep(encoded, found, digest);
        };
  const [only] = candidates;
  if (candidates.length === 1 && only !== undefined) {
    const lookup = only.keys.find(token.value.keyId, asker ?? 'fetch');
    return lookup instanceof Promise
      ? judgeLater(lookup, (found) => judge(token.value, only, found, asker?.now() ?? nowMs, asker, remember))
      : judge(token.value, only, lookup, nowMs, asker, remember);
  }
  return verifyByAny(token.value, candidates, nowMs, asker);
}

/**
 * Narrows the issuers down to those that the token says, unverified, that it is from. Providers choose key ids as they
 * like, so key ids alone do not tell their issuers apart. The issuers left out would refuse the token for its claims,
 * whatever key verified it, so this only saves asking them. All are asked where the token names none of them, and where
 * all are Cores, whose key ids the operator keeps apart.
 */
export function meantAmong(accepting: readonly ActiveIssuer[], token: SignedToken): readonly ActiveIssuer[] {
  if (accepting.length === 1 || accepting.every(({ rules }) => rules.profile === 'core')) return accepting;
  const payload = readPayload(token);
  const meant = payload.ok ? accepting.filter(({ rules }) => isMeantFor(payload.value, rules)) : [];
  return meant.length === 0 ? accepting : meant;
}

function verifyByAny(
  token: SignedToken,
  candidates: readonly ActiveIssuer[],
  nowMs: number,
  asker: KeyAsker | null,
): Verdict | Promise<Verdict> {
  const refused: Denial[] = [];
  const pending: Promise<Verdict>[] = [];
  const withoutKey: ActiveIssuer[] = [];
  for (const issuer of candidates) {
    const lookup = issuer.keys.find(token.keyId, 'now');
    if (lookup instanceof Promise || lookup.kind !== 'found') {
      // A key source must answer `now` at once. One that does not is asked again, and then waited for.
      if (lookup instanceof Promise) lookup.catch(() => undefined);
      withoutKey.push(issuer);
      continue;
    }
    const verdict = judge(token, issuer, lookup, nowMs, asker, null);
    if (verdict instanceof Promise) pending.push(verdict);
    else if (verdict.ok) return verdict;
    else refused.push(verdict.error);
  }
  if (pending.length === 0) return verifyAfterFetch(token, withoutKey, refused, nowMs, asker);
  return firstAccepted(pending, refused).then((verdict) =>
    verdict.ok ? verdict : verifyAfterFetch(token, withoutKey, [verdict.error], asker?.now() ?? nowMs, asker),
  );
}

/** Waits for the keys of issuers whose key is not known, where none of the others accepts the token. */
function verifyAfterFetch(
  token: SignedToken,
  withoutKey: readonly ActiveIssuer[],
  refusedBefore: readonly Denial[],
  nowMs: number,
  asker: KeyAsker | null,
): Verdict | Promise<Verdict> {
  const refused = [...refusedBefore];
  let isOver = false;
  // Once one issuer has accepted, nobody waits for the others.
  const wait = asker === null ? 'fetch' : { ...bound(asker), isGone: () => isOver || asker.isGone() };
  const pending: Promise<Verdict>[] = [];
  for (const issuer of withoutKey) {
    const lookup = issuer.keys.find(token.keyId, wait);
    const verdict =
      lookup instanceof Promise
        ? judgeLater(lookup, (found) => judge(token, issuer, found, asker?.now() ?? nowMs, asker, null))
        : judge(token, issuer, lookup, nowMs, asker, null);
    if (verdict instanceof Promise) pending.push(verdict);
    else if (verdict.ok) return verdict;
    else refused.push(verdict.error);
  }
  if (pending.length === 0) return refuse(mostSpecificDenial(refused));
  return firstAccepted(pending, refused).finally(() => {
    isOver = true;
  });
}

function bound(asker: KeyAsker): KeyAsker {
  return {
    address: () => asker.address(),
    hasAuthenticated: () => asker.hasAuthenticated(),
    isGone: () => asker.isGone(),
    now: () => asker.now(),
  };
}

/** A key source must not reject; if it does, answer 503. */
function judgeLater(
  lookup: Promise<KeyLookup>,
  judged: (found: KeyLookup) => Verdict | Promise<Verdict>,
): Promise<Verdict> {
  return lookup.then(judged, () => refuse(denial('keys_unavailable')));
}

type Remember = (found: VerifiedToken) => void;

/** What one issuer's key and rules say of the token: at once, unless the key is slow to verify with. */
function judge(
  token: SignedToken,
  issuer: ActiveIssuer,
  lookup: KeyLookup,
  nowMs: number,
  asker: KeyAsker | null,
  remember: Remember | null,
): Verdict | Promise<Verdict> {
  if (lookup.kind !== 'found') return refuse(missingKey(lookup.kind));
  const { key } = lookup;
  // The algorithm is the key's, whatever the header says; no library puts another one there by mistake.
  if (token.header['alg'] !== key.algorithm) return refuse(denial('algorithm_refused'));
  const checked = checkSignature(token, key, asker);
  return checked instanceof Promise
    ? checked.then((verdict) => judgeSigned(token, issuer, key, verdict, asker?.now() ?? nowMs, remember))
    : judgeSigned(token, issuer, key, checked, nowMs, remember);
}

function judgeSigned(
  token: SignedToken,
  issuer: ActiveIssuer,
  { key }: VerificationKey,
  signature: SignatureVerdict,
  nowMs: number,
  remember: Remember | null,
): Verdict {
  const { rules } = issuer;
  const problem = signatureProblem(signature);
  if (problem !== null) return refuse(problem);
  const payload = readPayload(token);
  if (!payload.ok) return payload;
  const claims = verifyTokenClaims(payload.value, rules, nowMs, token.header['typ']);
  if (!claims.ok) return claims;
  const { subject, permissions, tokenId, expiresAtS, issuedAtS, confirmation } = claims.value;
  // Each by its name: what is behind a spread is copied member by member, in a microsecond and more.
  const bearer: Principal = {
    kind: 'service',
    issuerName: rules.name,
    issuer: rules.issuer,
    keyId: token.keyId,
    name: principalName({ kind: 'service', issuer: rules.issuer, subject }),
    subject,
    permissions,
    tokenId,
    expiresAtS,
    issuedAtS,
  };
  const principal = confirmation === undefined ? bearer : { ...bearer, confirmation };
  remember?.({ principal, issuer, key, atMs: nowMs });
  return accept(principal);
}

/** Why a token is refused for its signature; `null` where that holds. */
export function signatureProblem(signature: SignatureVerdict): Denial | null {
  if (signature === 'holds') return null;
  return denial(signature === 'busy' ? 'overloaded' : 'signature_invalid');
}

/** Why a token cannot be verified whose key is not there. */
export function missingKey(kind: Exclude<KeyLookup['kind'], 'found'>): Denial {
  switch (kind) {
    case 'unknown':
      return denial('key_unknown');
    case 'unavailable':
      return denial('keys_unavailable');
    case 'busy':
      return denial('overloaded');
  }
}

/** Waits until one verdict accepts, or until all are in. The promises never reject. */
function firstAccepted(pending: readonly Promise<Verdict>[], refused: readonly Denial[]): Promise<Verdict> {
  return new Promise((resolve) => {
    const denials = [...refused];
    const expected = refused.length + pending.length;
    for (const verdict of pending) {
      void verdict.then((settled) => {
        if (settled.ok) {
          resolve(settled);
          return;
        }
        denials.push(settled.error);
        if (denials.length === expected) resolve(refuse(mostSpecificDenial(denials)));
      });
    }
  });
}

/**
 * How far a token came before it was refused, in the order of the checks; a reason that is not listed comes after all
 * of these, when the issuer has matched. Keys that cannot be had rank above a signature that failed under other keys,
 * and below anything that was found in claims whose signature held.
 */
const progress: readonly Reason[] = [
  'key_unknown',
  'algorithm_refused',
  'signature_invalid',
  'overloaded',
  'keys_unavailable',
  'issuer_mismatch',
  'audience_mismatch',
  'source_mismatch',
  'token_type_mismatch',
];

/** The refusal of the issuer that the token was most likely meant for. */
function mostSpecificDenial(denials: readonly Denial[]): Denial {
  return denials.reduce((best, next) => (progressOf(next) > progressOf(best) ? next : best));
}

function progressOf({ reason }: Denial): number {
  const at = progress.indexOf(reason);
  return at < 0 ? progress.length : at;
}
