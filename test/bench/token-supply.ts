import { randomBytes, sign } from 'node:crypto';
import { promisify } from 'node:util';
import type { RsaKey } from '../support/keys.js';
import { base64url, serviceClaims } from '../support/tokens.js';

const signOnPool = promisify(sign);

/** What is signed of the token of this number: it lasts longer than any run. */
function signedPart(keyId: string, number: number, expiresAtS = Math.floor(Date.now() / 1000) + 7000): string {
  const iat = Math.min(Math.floor(Date.now() / 1000), expiresAtS);
  const claims = serviceClaims({ claims: { jti: `token-${String(number).padStart(7, '0')}`, iat, exp: expiresAtS } });
  return `${base64url(JSON.stringify({ alg: 'RS256', kid: keyId, typ: 'JWT' }))}.${base64url(JSON.stringify(claims))}`;
}

/** So many good tokens, each another. Signing is spread over Node's threads. */
export async function mintTokens(key: RsaKey, count: number): Promise<readonly string[]> {
  const tokens: string[] = [];
  for (let from = 0; from < count; from += batchSize) {
    tokens.push(...(await mintBatch(key, from, Math.min(batchSize, count - from))));
  }
  return tokens;
}

/** No more wait than the threads can take up soon. */
export const batchSize = 500;

/** So many tokens from this number on, all of one length. */
export async function mintBatch(
  key: RsaKey,
  from: number,
  count: number,
  expiresAtS?: number,
): Promise<readonly string[]> {
  const texts = Array.from({ length: count }, (_, index) => signedPart(key.keyId, from + index, expiresAtS));
  return Promise.all(
    texts.map(async (text) => {
      const signature = await signOnPool('RSA-SHA256', Buffer.from(text), key.privateKey);
      return `${text}.${signature.toString('base64url')}`;
    }),
  );
}

/** Each with the signature of its neighbour. */
export function withWrongSignatures(tokens: readonly string[]): readonly string[] {
  const parts = tokens.map((token) => token.split('.'));
  return parts.map(
    ([header = '', payload = ''], index) => `${header}.${payload}.${parts[(index + 1) % parts.length]?.[2] ?? ''}`,
  );
}

/** So many that name a key which nobody has, each another one. */
export function tokensOfUnknownKeys(count: number): readonly string[] {
  const signature = randomBytes(256).toString('base64url');
  return Array.from({ length: count }, (_, index) => `${signedPart(`d-unknown-${String(index)}`, index)}.${signature}`);
}
