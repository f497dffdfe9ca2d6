/** docs/tokens.md and docs/issuers.md: what the claims of a token have to say, by profile. From their words alone. */
import type { Json } from '../model-json.js';
import { secondsOf, type PolicyIssuer } from '../model-policy.js';
import { confirmationOf } from '../model-bound-tokens.js';
import { isVisible } from '../model-text.js';
import { issuerTextOf, mediaType, standardOf } from './model-profiles.js';

type Members = ReadonlyMap<string, Json>;

/** Whom a token speaks for. */
export interface Caller {
  readonly issuerName: string;
  readonly issuer: string;
  readonly subject: string;
  readonly permissions: readonly string[];
  readonly tokenId: string | null;
  readonly keyId: string;
  readonly issuedAtS: number | null;
  /** What its token is bound to; `undefined` is nothing, and `ignored` whatever it is. */
  readonly confirmation: Members | 'ignored' | undefined;
}

type Signed = Pick<Caller, 'issuerName' | 'keyId'> & {
  /** `typ` of the header. */
  readonly type: Json | undefined;
};

/** Who calls, by claims that the issuer signed; `null` where they are worth nothing. */
export function readClaims(claims: Members, signed: Signed, issuer: PolicyIssuer, nowMs: number): Caller | null {
  const profile = issuer.profile ?? 'core';
  const [iat, jti] = [claims.get('iat'), claims.get('jti')];
  if (['sessionHandle', 'refreshTokenHash1', 'stt'].some((name) => claims.has(name))) return null;
  if (!isMeantFor(claims, issuer) || !holdsInTime(claims, issuer, nowMs / 1000)) return null;
  if (jti !== undefined && (typeof jti !== 'string' || !isVisible(jti, 256))) return null;
  if (profile === 'core' && !isOfCore(claims, issuer)) return null;
  const confirmation = boundTo(claims.get('cnf'), issuer);
  if (confirmation === null) return null;
  if (profile === 'oauth' && !isAccessToken(claims, signed.type)) return null;
  if (profile === 'kubernetes' && iat === undefined) return null;
  const required = Object.entries(issuer.claims?.require ?? {});
  if (required.some(([path, wanted]) => !isOneOf(valueAt(claims, path), wanted))) return null;
  const subject = subjectOf(claims, issuer);
  const permissions = permissionsOf(claims, issuer);
  if (subject === null || permissions === null) return null;
  return {
    issuerName: signed.issuerName,
    keyId: signed.keyId,
    issuer: issuerTextOf(issuer),
    subject,
    permissions: permissions.filter((name) => isVisible(name, 8192) && !/["\\]/.test(name)),
    tokenId: jti ?? null,
    issuedAtS: typeof iat === 'number' ? iat : null,
    confirmation,
  };
}

/** docs/bound-tokens.md, the table of `binding`; `null` where the token is refused. */
export function boundTo(cnf: Json | undefined, { binding = 'accept' }: PolicyIssuer): Caller['confirmation'] | null {
  if (binding === 'none') return 'ignored';
  if (cnf === undefined) return binding === 'require' ? null : undefined;
  return confirmationOf(cnf);
}

/** Whether `iss`, `aud` and the trust domain of a JWT-SVID name the issuer and this service. */
export function isMeantFor(claims: Members, issuer: PolicyIssuer): boolean {
  const sub = claims.get('sub');
  if (issuer.profile === 'spiffe' && !(typeof sub === 'string' && isWorkload(sub, issuer.trust_domain ?? ''))) {
    return false;
  }
  if (issuer.issuer !== undefined && claims.get('iss') !== issuer.issuer) return false;
  const ours = typeof issuer.audience === 'string' ? [issuer.audience] : issuer.audience;
  const audience = claims.get('aud');
  if ((issuer.profile ?? 'core') === 'core') return typeof audience === 'string' && ours.includes(audience);
  return namesService(audience, ours);
}

/** One of these names, or a list of at most 100 texts that holds one. */
export function namesService(audience: Json | undefined, ours: readonly string[]): boolean {
  if (typeof audience === 'string') return ours.includes(audience);
  if (!Array.isArray(audience) || audience.length > 100) return false;
  const names = audience as readonly Json[];
  return names.every((name) => typeof name === 'string') && names.some((name) => ours.some((our) => our === name));
}

export function holdsInTime(claims: Members, issuer: PolicyIssuer, now: number): boolean {
  const [exp, nbf, iat] = ['exp', 'nbf', 'iat'].map((name) => claims.get(name));
  const [skew, cap] = [secondsOf(issuer.clock_skew ?? '5s'), secondsOf(issuer.max_lifetime ?? '2h')];
  if (!isInteger(exp) || now >= exp + skew || exp - now > cap + skew) return false;
  if (nbf !== undefined && (!isInteger(nbf) || nbf > now + skew)) return false;
  return iat === undefined || (isInteger(iat) && iat <= now + skew && exp - iat <= cap);
}

function isOfCore(claims: Members, { source = [], token_type: type = [] }: PolicyIssuer): boolean {
  return isOneOf(claims.get('source'), source) && isOneOf(claims.get('token_type'), type);
}

/** No ID token; and by RFC 9068 §2.2 whole, where it says that it follows that. */
function isAccessToken(claims: Members, type: Json | undefined): boolean {
  if (['at_hash', 'c_hash', 's_hash', 'events'].some((name) => claims.has(name))) return false;
  if (typeof type !== 'string' || mediaType(type) !== 'at+jwt') return true;
  // RFC 6749 appendix A.1: what a client id is made of.
  const isName = (value: Json | undefined): boolean =>
    typeof value === 'string' && isVisible(value.replaceAll(' ', '.'), 1024);
  return isName(claims.get('sub')) && isName(claims.get('client_id')) && claims.has('iat') && claims.has('jti');
}

function subjectOf(claims: Members, issuer: PolicyIssuer): string | null {
  if (issuer.profile === 'kubernetes') return accountOf(claims);
  const subject = valueAt(claims, issuer.claims?.subject ?? 'sub');
  if (typeof subject !== 'string' || !isVisible(subject, 1024)) return null;
  return issuer.profile === 'spiffe' && !isWorkload(subject, issuer.trust_domain ?? '') ? null : subject;
}

/** SPIFFE-ID §2: scheme, trust domain, and a path of segments that are neither empty nor dots. */
function isWorkload(id: string, trustDomain: string): boolean {
  const [scheme, nothing, domain, ...segments] = id.split('/');
  return (
    scheme === 'spiffe:' &&
    nothing === '' &&
    domain === trustDomain &&
    segments.length > 0 &&
    segments.every((segment) => /^[a-zA-Z0-9._-]+$/.test(segment) && !/^\.\.?$/.test(segment))
  );
}

/** The names of `sub` and of `kubernetes.io`, which have to be the same ones. */
function accountOf(claims: Members): string | null {
  const [sub, bound] = [claims.get('sub'), claims.get('kubernetes.io')];
  if (typeof sub !== 'string' || !(bound instanceof Map)) return null;
  const [system, kind, namespace, name, ...more] = sub.split(':');
  if (system !== 'system' || kind !== 'serviceaccount' || more.length > 0) return null;
  if (!isLabel(namespace) || namespace.length > 63 || !isSubdomain(name)) return null;
  const account = (bound as Members).get('serviceaccount');
  if ((bound as Members).get('namespace') !== namespace || !(account instanceof Map)) return null;
  return (account as Members).get('name') === name ? `${namespace}/${name}` : null;
}

/** RFC 1123 names, as the Kubernetes API validates those of namespaces and of service accounts. */
function isLabel(text: string | undefined): text is string {
  return text !== undefined && /^[a-z0-9-]+$/.test(text) && !text.startsWith('-') && !text.endsWith('-');
}

function isSubdomain(text: string | undefined): text is string {
  return text !== undefined && text.length <= 253 && text.split('.').every(isLabel);
}

/** A text with blanks between, or a list of texts; nothing where the token has no such claim. */
export function permissionsOf(claims: Members, issuer: PolicyIssuer): readonly string[] | null {
  const path = issuer.claims?.permissions ?? standardOf(issuer).permissions;
  const value = path === null ? undefined : valueAt(claims, path);
  const isCore = (issuer.profile ?? 'core') === 'core';
  if (value === undefined) return isCore ? null : [];
  const names = typeof value === 'string' && !isCore ? value.split(' ').filter((name) => name !== '') : value;
  if (!Array.isArray(names) || names.length > 1000) return null;
  const texts = (names as readonly Json[]).filter((name) => typeof name === 'string');
  return texts.length === names.length ? texts : null;
}

/** Names with dots between, from the payload inwards; a backslash makes the next character part of a name. */
export function namesOf(path: string): readonly string[] {
  const names = [''];
  for (let at = 0; at < path.length; at++) {
    if (path[at] === '.') {
      names.push('');
      continue;
    }
    if (path[at] === '\\') at += 1;
    names.push(`${names.pop() ?? ''}${path[at] ?? ''}`);
  }
  return names;
}

export function valueAt(claims: Members, path: string): Json | undefined {
  let value: Json | undefined = claims;
  for (const name of namesOf(path)) value = value instanceof Map ? (value as Members).get(name) : undefined;
  return value;
}

export function isOneOf(value: Json | undefined, wanted: PlainValue | readonly PlainValue[]): boolean {
  return Array.isArray(wanted) ? wanted.some((one) => one === value) : wanted === value;
}

type PlainValue = string | number | boolean;

export function isInteger(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value);
}
