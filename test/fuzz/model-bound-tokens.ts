/**
 * docs/bound-tokens.md: what the sender of a token has to prove, and by what. From its words alone, signatures by hand.
 */
import { createHash, X509Certificate } from 'node:crypto';
import type { Field } from './model-fields.js';
import { readObject, type Json } from './model-json.js';
import { decodePart, isVisible } from './model-text.js';
import { readKey } from './profiles/model-keys.js';
import { isSignedBy } from './profiles/model-signatures.js';

type Members = ReadonlyMap<string, Json>;

/** What a listener has to do with bound tokens, in the words of the config, and who is at the other end. */
export interface Listening {
  /** `null` without `listen.dpop`. */
  readonly dpop: {
    readonly origins: readonly string[];
    readonly maxAgeMs: number;
    readonly clockSkewMs: number;
    /** The only one that counts; `null` where none is asked for. */
    readonly nonce: string | null;
  } | null;
  /** `listen.client_cert_header`. */
  readonly readsClientCert: boolean;
  /** Whether the connection is from an address of `trust_forwarded`. */
  readonly trusted: boolean;
  /** What the other end of the connection showed. */
  readonly certificate: ShownCertificate | null;
}

export interface ShownCertificate {
  /** SHA-256 of its DER, base64url. */
  readonly digest: string;
  /** By what it is known where somebody vouches for it; `null` where nobody does. */
  readonly name: string | null;
}

/** A listener that takes no proof, and to which nobody shows a certificate. */
export const plainListening: Listening = { dpop: null, readsClientCert: false, trusted: false, certificate: null };

/** What a proof is for. */
export interface Proved {
  readonly token: string;
  readonly method: string;
  /** What precedes the query. */
  readonly path: string;
}

/** What is known of a request when its sender has to prove something. */
export interface Sent extends Proved {
  readonly scheme: 'Bearer' | 'DPoP';
  /** Values of `DPoP`. */
  readonly proofs: readonly string[];
  readonly certificate: ShownCertificate | null;
}

/** What a token is bound to; `null` where what its `cnf` says nobody here could ask for. */
export function confirmationOf(cnf: Json): Members | null {
  if (!(cnf instanceof Map)) return null;
  const members = [...(cnf as Members)];
  const known = members.every(([name, value]) => ['jkt', 'x5t#S256'].includes(name) && isSha256(value));
  return known && members.length > 0 ? (cnf as Members) : null;
}

/**
 * What becomes of a token with this `cnf`: let through, or with what it is refused.
 *
 * @param cnf `undefined` where it is bound to nothing, `ignored` where its issuer's `binding` is `none`.
 */
export function possession(
  cnf: Members | 'ignored' | undefined,
  sent: Sent,
  { dpop }: Listening,
  nowMs: number,
): 200 | 401 | 503 {
  if (cnf === 'ignored') return 200;
  const [key, digest] = [cnf?.get('jkt'), cnf?.get('x5t#S256')];
  if (digest !== undefined && sent.certificate?.digest !== digest) return 401;
  if (key === undefined) return sent.scheme === 'DPoP' ? 401 : 200;
  const [proof, ...more] = sent.proofs;
  if (sent.scheme !== 'DPoP' || dpop === null || proof === undefined || more.length > 0) return 401;
  const id = provedId(proof, key, sent, dpop, nowMs);
  return id === null ? 401 : statusOfStore(id);
}

/** What the store that stands in says of a proof, by its `jti`. */
function statusOfStore(id: string): 200 | 401 | 503 {
  if (id.startsWith('away')) return 503;
  return id.startsWith('used') ? 401 : 200;
}

/** Which certificate counts: that of the connection, or the one that a proxy in front names (RFC 9440). */
export function certificateShown(
  fields: readonly Field[],
  { readsClientCert, trusted, certificate }: Listening,
): ShownCertificate | null {
  if (!readsClientCert || !trusted) return certificate;
  const values = fields.filter(([name]) => name.toLowerCase() === 'client-cert').map(([, value]) => value);
  return values.length === 1 ? readClientCert(values[0] ?? '') : null;
}

function readClientCert(value: string): ShownCertificate | null {
  if (!/^:[A-Za-z0-9+/=]+:$/.test(value)) return null;
  const bytes = Buffer.from(value.slice(1, -1), 'base64');
  if (bytes.toString('base64') !== value.slice(1, -1)) return null;
  try {
    const certificate = new X509Certificate(bytes);
    if (!certificate.raw.equals(bytes)) return null;
    const name = certificate.subject.split('\n').reverse().join(',');
    return { digest: digestOf(bytes), name: /^[ -~]{0,1024}$/.test(name) && name !== '' ? name : null };
  } catch {
    return null;
  }
}

const algorithms = ['ES256', 'Ed25519', 'EdDSA', 'PS256', 'RS256'];

/** The `jti` of a proof that holds for this request; `null` of one that does not. */
function provedId(
  proof: string,
  key: Json,
  { token, method, path }: Proved,
  { origins, maxAgeMs, clockSkewMs, nonce }: NonNullable<Listening['dpop']>,
  nowMs: number,
): string | null {
  const parts = proof.split('.');
  const [header, claims, signature] = parts.map(decodePart);
  if (proof.length > 4_096 || parts.length !== 3 || !header || !claims || !signature) return null;
  const [head, said] = [readObject(header, 4), readObject(claims, 4)];
  if (head === null || said === null || !isHeader(head)) return null;
  const [jti, htm, htu, iat, ath] = ['jti', 'htm', 'htu', 'iat', 'ath'].map((name) => said.get(name));
  if (typeof jti !== 'string' || !isVisible(jti, 256) || htm !== method) return null;
  if (typeof htu !== 'string' || !isTarget(htu, path, origins) || ath !== digestOf(Buffer.from(token))) return null;
  if (typeof iat !== 'number' || !Number.isSafeInteger(iat)) return null;
  if (iat * 1_000 > nowMs + clockSkewMs || iat * 1_000 + maxAgeMs + clockSkewMs <= nowMs) return null;
  if (nonce !== null && said.get('nonce') !== nonce) return null;
  const jwk = head.get('jwk') as Members;
  const named = jwk.has('alg') ? new Map([...jwk, ['alg', algorithmOf(jwk)]]) : jwk;
  const numbers = thumbprintOf(jwk) === key ? readKey(named, { algorithms: [algorithmOf(head) ?? ''] }) : null;
  if (numbers === null || (numbers.kind === 'rsa' && (numbers.n >= 2n ** 4096n || numbers.e > 65_537n))) return null;
  return isSignedBy(numbers, parts.slice(0, 2).join('.'), signature) ? jti : null;
}

/** RFC 9864 §2.2 has another name for what RFC 8037 calls EdDSA. */
function algorithmOf(members: Members): string | null {
  const name = members.get('alg');
  return name === 'Ed25519' ? 'EdDSA' : typeof name === 'string' ? name : null;
}

function isHeader(header: Members): boolean {
  const [alg, jwk] = [header.get('alg'), header.get('jwk')];
  if (header.get('typ') !== 'dpop+jwt' || typeof alg !== 'string' || !algorithms.includes(alg)) return false;
  return [...header.keys()].every((name) => ['typ', 'alg', 'jwk', 'kid'].includes(name)) && jwk instanceof Map;
}

/** RFC 7638 §3.2, RFC 8037 §2. */
function thumbprintOf(jwk: Members): string {
  const names = { RSA: ['e', 'kty', 'n'], EC: ['crv', 'kty', 'x', 'y'], OKP: ['crv', 'kty', 'x'] };
  const kty = jwk.get('kty');
  const required = kty === 'RSA' || kty === 'EC' || kty === 'OKP' ? names[kty] : [];
  const texts = required.map((name) => `${JSON.stringify(name)}:${JSON.stringify(jwk.get(name))}`);
  return digestOf(Buffer.from(`{${texts.join(',')}}`));
}

/** Whether both are one by RFC 3986 §6.2.2 and §6.2.3. */
function isTarget(htu: string, path: string, origins: readonly string[]): boolean {
  const [, scheme = '', host = '', rest = ''] = /^([A-Za-z]+):\/\/([^/?#@\\\s]+)(|\/[^?#\\\s]*)$/.exec(htu) ?? [];
  const standard = scheme.toLowerCase() === 'https' ? /:443$/ : /:80$/;
  const origin = `${scheme}://${host.replace(standard, '')}`.toLowerCase();
  return origins.includes(origin) && plain(rest === '' ? '/' : rest) === plain(path);
}

function plain(text: string): string {
  return text.replace(/%[0-9a-f]{2}/gi, (octet) => {
    const character = String.fromCharCode(Number.parseInt(octet.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(character) ? character : octet.toUpperCase();
  });
}

function isSha256(value: Json): boolean {
  return typeof value === 'string' && decodePart(value)?.length === 32;
}

function digestOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64url');
}
