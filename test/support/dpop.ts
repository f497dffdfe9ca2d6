/** Keys and proofs of clients, made after RFC 9449 and RFC 7638 with nothing of ours. */
import { createHash, generateKeyPairSync, randomUUID, sign, type JsonWebKey, type KeyObject } from 'node:crypto';

export type ProofAlgorithm = 'ES256' | 'EdDSA' | 'Ed25519' | 'PS256' | 'RS256' | 'ES384';

/** A client's key. */
export interface ProofKey {
  readonly algorithm: ProofAlgorithm;
  readonly privateKey: KeyObject;
  readonly jwk: JsonWebKey;
  /** RFC 7638. */
  readonly thumbprint: string;
}

export function proofKey(algorithm: ProofAlgorithm = 'ES256', bits = 2048): ProofKey {
  const { privateKey, publicKey } = pairFor(algorithm, bits);
  const jwk = publicKey.export({ format: 'jwk' });
  return { algorithm, privateKey, jwk, thumbprint: thumbprint(jwk) };
}

function pairFor(algorithm: ProofAlgorithm, bits: number): { privateKey: KeyObject; publicKey: KeyObject } {
  switch (algorithm) {
    case 'ES256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' });
    case 'ES384':
      return generateKeyPairSync('ec', { namedCurve: 'P-384' });
    case 'EdDSA':
    case 'Ed25519':
      return generateKeyPairSync('ed25519');
    case 'PS256':
    case 'RS256':
      return generateKeyPairSync('rsa', { modulusLength: bits });
  }
}

export function thumbprint({ kty, crv, x, y, n, e }: JsonWebKey): string {
  const members = kty === 'RSA' ? { e, kty, n } : kty === 'OKP' ? { crv, kty, x } : { crv, kty, x, y };
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url');
}

type Members = Readonly<Record<string, unknown>>;

export interface ProofInput {
  readonly method?: string;
  readonly uri: string;
  readonly token: string;
  readonly nowMs?: number;
  readonly claims?: Members;
  readonly header?: Members;
  /** Signs in the place of the key that the header has. */
  readonly signer?: ProofKey;
}

/** A proof for one request; a member that is `undefined` is left out. */
export function makeProof(key: ProofKey, input: ProofInput): string {
  const { method = 'GET', uri, token, nowMs = Date.now(), claims = {}, header = {}, signer = key } = input;
  const head = { typ: 'dpop+jwt', alg: key.algorithm, jwk: key.jwk, ...header };
  const payload = {
    jti: randomUUID(),
    htm: method,
    htu: uri,
    iat: Math.floor(nowMs / 1_000),
    ath: createHash('sha256').update(token).digest('base64url'),
    ...claims,
  };
  return signProof(JSON.stringify(head), JSON.stringify(payload), signer);
}

/** Signs exactly these two texts. */
export function signProof(header: string, payload: string, { algorithm, privateKey }: ProofKey): string {
  const signed = `${Buffer.from(header).toString('base64url')}.${Buffer.from(payload).toString('base64url')}`;
  const bytes = Buffer.from(signed);
  const signature =
    algorithm === 'EdDSA' || algorithm === 'Ed25519'
      ? sign(null, bytes, privateKey)
      : algorithm === 'RS256'
        ? sign('sha256', bytes, privateKey)
        : algorithm === 'PS256'
          ? sign('sha256', bytes, { key: privateKey, padding: 6, saltLength: 32 })
          : sign(algorithm === 'ES384' ? 'sha384' : 'sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}
