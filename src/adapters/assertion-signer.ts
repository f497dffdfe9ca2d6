import { createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto';
import { thumbprint, type AssertionClaims } from '../decision/token/assertion.js';
import { accept, refuse, type Result } from '../lib/result.js';

/** A P-256 key that assertions are signed with, or were. */
export interface AssertionKey {
  readonly keyId: string;
  readonly privateKey: KeyObject;
  /** As it is published (RFC 7517). */
  readonly jwk: Readonly<Record<string, string>>;
}

const pemKey = /-----BEGIN ((?:EC |ENCRYPTED )?PRIVATE KEY)-----[^]+?-----END \1-----/g;

const pemKeyStart = /-----BEGIN (?:EC |ENCRYPTED )?PRIVATE KEY-----/g;

/** One that signs, those that were replaced and those that come next: nobody needs more. */
const maxKeys = 8;

/**
 * Reads a PEM file of P-256 private keys: the first one signs, all are published. Refuses in words that follow the
 * path.
 */
export function readAssertionKeys(pem: string): Result<readonly AssertionKey[], string> {
  const blocks = pem.match(pemKey) ?? [];
  if (blocks.length === 0) return refuse('holds no PEM private key');
  // A file that is being written: a key whose end is to come must not be taken for one that was taken out.
  if (blocks.length !== pem.match(pemKeyStart)?.length) return refuse('holds a PEM private key that does not end');
  if (blocks.length > maxKeys) return refuse(`holds more than ${maxKeys} keys`);
  const keys: AssertionKey[] = [];
  for (const block of blocks) {
    const key = readKey(block);
    if (!key.ok) return key;
    keys.push(key.value);
  }
  return accept(keys);
}

/** Signs claims as a compact JWS with ES256 (RFC 7515, RFC 7518 §3.4). */
export function signAssertion({ keyId, privateKey }: AssertionKey, claims: AssertionClaims): string {
  const input = `${encode({ alg: 'ES256', typ: 'JWT', kid: keyId })}.${encode(claims)}`;
  return `${input}.${sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

function readKey(pem: string): Result<AssertionKey, string> {
  if (pem.startsWith('-----BEGIN ENCRYPTED') || pem.includes('Proc-Type: 4,ENCRYPTED')) {
    return refuse('is locked with a passphrase, which nobody could type here');
  }
  const privateKey = parse(pem);
  if (privateKey === null) return refuse('holds no PEM private key');
  const { crv, x, y } = createPublicKey(privateKey).export({ format: 'jwk' });
  if (crv !== 'P-256' || x === undefined || y === undefined) {
    return refuse('holds a key that is none of P-256, which ES256 needs');
  }
  const keyId = thumbprint({ crv, x, y });
  return accept({ keyId, privateKey, jwk: { kty: 'EC', crv, x, y, kid: keyId, use: 'sig', alg: 'ES256' } });
}

function parse(pem: string): KeyObject | null {
  try {
    return createPrivateKey(pem);
  } catch {
    // The parser's message may quote what it parsed.
    return null;
  }
}
