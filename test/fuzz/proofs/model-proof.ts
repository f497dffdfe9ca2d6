/** docs/bound-tokens.md: what a proof is held to. From its words alone, with jose and with URLs of Node.js. */
import { createHash } from 'node:crypto';
import { calculateJwkThumbprint, compactVerify, importJWK, type JWK } from 'jose';
import { readObject, type Json } from '../model-json.js';

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly token: string;
  /** The thumbprint that the token names. */
  readonly key: string;
  readonly nowMs: number;
  readonly origin: string;
  readonly maxAgeMs: number;
  readonly clockSkewMs: number;
}

type Members = Readonly<Record<string, unknown>>;

const secret = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
const algorithms = ['ES256', 'Ed25519', 'EdDSA', 'PS256', 'RS256'];

/** Whether this is a proof for that request. */
export async function isProof(text: string, asked: Asked): Promise<boolean> {
  const parts = text.split('.');
  if (parts.length !== 3 || text.length > 4_096 || !parts.every(isCanonical)) return false;
  const [header, claims] = parts.slice(0, 2).map(read);
  if (header === undefined || claims === undefined || header === null || claims === null) return false;
  const { typ, alg, jwk, ...others } = header;
  if (typ !== 'dpop+jwt' || typeof alg !== 'string' || !algorithms.includes(alg)) return false;
  if (Object.keys(others).some((name) => name !== 'kid') || !isObject(jwk)) return false;
  if (secret.some((name) => name in jwk)) return false;
  if ('use' in jwk && jwk['use'] !== 'sig') return false;
  if ('key_ops' in jwk && !(Array.isArray(jwk['key_ops']) && jwk['key_ops'].includes('verify'))) return false;
  const signed = await verifies(text, jwk, alg);
  if (!signed || (await calculateJwkThumbprint(jwk)) !== asked.key) return false;
  return isFor(claims, asked);
}

function isFor({ jti, htm, htu, iat, ath }: Members, asked: Asked): boolean {
  if (typeof jti !== 'string' || !/^[!-~]{1,256}$/.test(jti)) return false;
  if (htm !== asked.method || ath !== createHash('sha256').update(asked.token).digest('base64url')) return false;
  if (typeof iat !== 'number' || !Number.isSafeInteger(iat)) return false;
  if (iat * 1_000 - asked.nowMs > asked.clockSkewMs) return false;
  if (asked.nowMs - iat * 1_000 >= asked.maxAgeMs + asked.clockSkewMs) return false;
  return typeof htu === 'string' && isTarget(htu, asked);
}

/** Whether both are one by RFC 3986 §6.2.2 and §6.2.3. */
function isTarget(htu: string, { origin, path }: Asked): boolean {
  if (/[?#@\\\s]/.test(htu) || !URL.canParse(htu)) return false;
  const url = new URL(htu);
  // Dots are segments that a URL takes away, and a target has none.
  const written = /^[a-z]+:\/\/[^/]*(.*)$/i.exec(htu)?.[1] ?? '';
  const plain = (text: string): string =>
    text.replace(/%([0-9a-f]{2})/gi, (octet, hex: string) => {
      const character = String.fromCharCode(Number.parseInt(hex, 16));
      return /[\w.~-]/.test(character) ? character : octet.toUpperCase();
    });
  return url.origin === origin && plain(written === '' ? '/' : written) === plain(path);
}

async function verifies(text: string, jwk: JWK, alg: string): Promise<boolean> {
  if (alg === 'ES256' ? jwk.crv !== 'P-256' : alg.startsWith('Ed') && jwk.crv !== 'Ed25519') return false;
  // RFC 9864 §2.2 has another name for what RFC 8037 calls EdDSA.
  const plain = (name: unknown): unknown => (name === 'Ed25519' ? 'EdDSA' : name);
  if ('alg' in jwk && plain(jwk.alg) !== plain(alg)) return false;
  if (jwk.kty === 'RSA' && Buffer.from(jwk.n ?? '', 'base64url').length > 512) return false;
  if (jwk.kty === 'RSA' && Buffer.from(jwk.e ?? '', 'base64url').readUIntBE(0, 3) > 65_537) return false;
  try {
    await compactVerify(text, await importJWK({ ...jwk, alg }, alg), { algorithms: [alg] });
    return true;
  } catch {
    return false;
  }
}

function isCanonical(part: string): boolean {
  return part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part;
}

/** JSON with one reading, of objects and arrays no more than four deep. */
function read(part: string): Members | null {
  const object = readObject(Buffer.from(part, 'base64url'), 4);
  return object === null ? null : (plainOf(object) as Members);
}

function plainOf(value: Json): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, one]) => [name, plainOf(one as Json)]));
  return Array.isArray(value) ? value.map((one) => plainOf(one as Json)) : value;
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
