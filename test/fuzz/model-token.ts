/** docs/contract.md 3.5 and 3.6, docs/issuers.md: what a service token is worth. */
import { askedAbout, callerBy, isOpaque, type Oracle } from './introspection/model-answers.js';
import { readObject, type Json } from './model-json.js';
import type { Policy, PolicyIssuer } from './model-policy.js';
import { decodePart } from './model-text.js';
import { isMeantFor, readClaims, type Caller } from './profiles/model-claims.js';
import type { ModelKeys } from './profiles/model-keys.js';
import { fitsHeader } from './profiles/model-profiles.js';
import { isSignedBy } from './profiles/model-signatures.js';

/** A token taken apart. */
interface Opened {
  readonly header: ReadonlyMap<string, Json>;
  /** `null` where it is no object. */
  readonly claims: ReadonlyMap<string, Json> | null;
  readonly input: string;
  readonly signature: Buffer;
}

/** What one issuer makes of it. */
type Verdict = Caller | 'keys away' | 'not signed' | 'signed, and worth nothing';

/** Who calls, by a token, or with what it is refused. */
export function readCaller(
  token: string,
  policy: Policy,
  keys: ReadonlyMap<string, ModelKeys>,
  nowMs: number,
  said: Oracle | null = null,
): Caller | 401 | 503 {
  if (isOpaque(token)) {
    const asked = askedAbout(token, policy);
    return asked === null || said === null ? 401 : callerBy(said(token, asked.name), asked, keys, nowMs);
  }
  const opened = open(token);
  if (opened === null) return 401;
  const fitting = Object.entries(policy.issuers).filter(([, issuer]) => fitsHeader(opened.header, issuer));
  const asked = meantAmong(fitting, opened.claims);
  const someAway = asked.some(([name]) => (keys.get(name) ?? null) === null);
  const verdicts = asked.map(([name, issuer]) =>
    judgeFor(opened, name, issuer, keys.get(name) ?? null, nowMs, someAway),
  );
  const caller = verdicts.find((verdict) => typeof verdict === 'object');
  if (caller !== undefined) return caller;
  // Whoever signed it has said its word; else one whose keys are away might have been meant.
  return verdicts.includes('keys away') && !verdicts.includes('signed, and worth nothing') ? 503 : 401;
}

/** docs/contract.md 3.6. */
export function isWithdrawn(
  { revoked }: Policy,
  caller: Pick<Caller, 'keyId' | 'subject' | 'tokenId' | 'issuedAtS'>,
): boolean {
  const tooOld =
    revoked.issuedBeforeS !== null && (caller.issuedAtS === null || caller.issuedAtS < revoked.issuedBeforeS);
  return (
    tooOld ||
    revoked.key_ids.includes(caller.keyId) ||
    revoked.subjects.includes(caller.subject) ||
    (caller.tokenId !== null && revoked.token_ids.includes(caller.tokenId))
  );
}

function open(token: string): Opened | null {
  const parts = token.split('.');
  if (token.length > 8192 || parts.length !== 3) return null;
  const [header, payload, signature] = parts.map(decodePart);
  if (!header || !payload || !signature) return null;
  const members = readObject(header);
  if (members === null) return null;
  return { header: members, claims: readObject(payload), input: `${parts[0] ?? ''}.${parts[1] ?? ''}`, signature };
}

/** docs/issuers.md, "Several issuers": those that `iss` and `aud` name, if any; all where all are Cores. */
function meantAmong(
  fitting: readonly (readonly [string, PolicyIssuer])[],
  claims: ReadonlyMap<string, Json> | null,
): readonly (readonly [string, PolicyIssuer])[] {
  if (claims === null || fitting.every(([, { profile }]) => (profile ?? 'core') === 'core')) return fitting;
  const meant = fitting.filter(([, issuer]) => isMeantFor(claims, issuer));
  return meant.length === 0 ? fitting : meant;
}

/** `everySignature`: whether it matters who signed what is worth nothing. A signature takes milliseconds here. */
function judgeFor(
  opened: Opened,
  name: string,
  issuer: PolicyIssuer,
  keys: ModelKeys,
  nowMs: number,
  everySignature: boolean,
): Verdict {
  const { header, claims, input, signature } = opened;
  if (keys === null) return 'keys away';
  const keyId = header.get('kid');
  const key = typeof keyId === 'string' ? keys.get(keyId) : undefined;
  if (key === undefined || typeof keyId !== 'string' || key.algorithm !== header.get('alg')) return 'not signed';
  const signed = { issuerName: name, keyId, type: header.get('typ') };
  const caller = claims === null ? null : readClaims(claims, signed, issuer, nowMs);
  if (caller === null && !everySignature) return 'not signed';
  return isSignedBy(key, input, signature) ? (caller ?? 'signed, and worth nothing') : 'not signed';
}
