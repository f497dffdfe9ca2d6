import { randomBytes, sign } from 'node:crypto';
import { promisify } from 'node:util';
import type { RsaKey } from '../support/keys.js';
import { base64url, serviceClaims } from '../support/tokens.js';

const signOnPool = promisify(sign);

/** What is signed of the token of this number: it lasts longer than any run. */
function signedPart(keyId: string, number: number): string {
  const claims = serviceClaims({ claims: { jti: `token-${String(number)}`, exp: Math.floor(Date.now() / 1000) + 7000 } });
  return `${base64url(JSON.stringify({ alg: 'RS256', kid: keyId, typ: 'JWT' }))}.${base64url(JSON.stringify(claims))}`;
}

/** So many good tokens, each another. Signing is spread over Node's threads. */
export async function mintTokens(key: RsaKey, count: number): Promise<readonly string[]> {
  const tokens: string[] = [];
  // In batches, so that no more wait than the threads can take up soon.
  while (tokens.length < count) {
    const batch = Array.from({ length: Math.min(500, count - tokens.length) }, (_, index) => signedPart(key.keyId, tokens.length + index));
    tokens.push(...await Promise.all(batch.map(async (text) => {
      const signature = await signOnPool('RSA-SHA256', Buffer.from(text), key.privateKey);
      return `${text}.${signature.toString('base64url')}`;
    })));
  }
  return tokens;
}

/** Each with the signature of its neighbour. */
export function withWrongSignatures(tokens: readonly string[]): readonly string[] {
  const parts = tokens.map((token) => token.split('.'));
  return parts.map(([header = '', payload = ''], index) => `${header}.${payload}.${parts[(index + 1) % parts.length]?.[2] ?? ''}`);
}

/** So many that name a key which nobody has, each another one. */
export function tokensOfUnknownKeys(count: number): readonly string[] {
  const signature = randomBytes(256).toString('base64url');
  return Array.from({ length: count }, (_, index) => `${signedPart(`d-unknown-${String(index)}`, index)}.${signature}`);
}
