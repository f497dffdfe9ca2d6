/** Keys and proofs of clients, made after RFC 9449 and RFC 7638 with nothing of ours. */
import {
  constants,
  createHash,
  generateKeyPairSync,
  randomUUID,
  sign,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto';

export type ProofAlgorithm =
  'ES256' | 'EdDSA' | 'Ed25519' | 'PS256' | 'RS256' | 'ES384' | 'PS384' | 'PS512' | 'RS384' | 'RS512';

/** A client's key. */
export interface ProofKey {
  readonly algorithm: ProofAlgorithm;
  readonly privateKey: KeyObject;
  readonly jwk: JsonWebKey;
  /** RFC 7638. */
  readonly thumbprint: string;
}

export function proofKey(algorithm: ProofAlgorithm = 'ES256', bits = 2048, exponent = 65_537): ProofKey {
  const { privateKey, publicKey } = pairFor(algorithm, bits, exponent);
  const jwk = publicKey.export({ format: 'jwk' });
  return { algorithm, privateKey, jwk, thumbprint: thumbprint(jwk) };
}

function pairFor(
  algorithm: ProofAlgorithm,
  bits: number,
  exponent: number,
): { privateKey: KeyObject; publicKey: KeyObject } {
  switch (algorithm) {
    case 'ES256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' });
    case 'ES384':
      return generateKeyPairSync('ec', { namedCurve: 'P-384' });
    case 'EdDSA':
    case 'Ed25519':
      return generateKeyPairSync('ed25519');
    case 'PS256':
    case 'PS384':
    case 'PS512':
    case 'RS256':
    case 'RS384':
    case 'RS512':
      return generateKeyPairSync('rsa', { modulusLength: bits, publicExponent: exponent });
  }
}

export function thumbprint({ kty, crv, x, y, n, e }: JsonWebKey): string {
  const members = kty === 'RSA' ? { e, kty, n } : kty === 'OKP' ? { crv, kty, x } : { crv, kty, x, y };
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url');
}

type Members = Readonly<Record<string, unknown>>;

/** Changes one part of a proof before it is signed. */
export type PartChange = (text: string, part: 'header' | 'claims') => string;

const asItIs: PartChange = (text) => text;

export interface ProofInput {
  readonly method?: string;
  readonly uri: string;
  readonly token: string;
  readonly nowMs?: number;
  readonly claims?: Members;
  readonly header?: Members;
  /** Signs in the place of the key that the header has. */
  readonly signer?: ProofKey;
  /** Writes the JSON of a part otherwise. */
  readonly rewritten?: PartChange;
  /** Writes the base64url of a part otherwise. */
  readonly respelled?: PartChange;
  /** A further claim makes the proof so long, or, where no text is encoded in so many characters, by one shorter. */
  readonly length?: number;
}

/** A proof for one request; a member that is `undefined` is left out. */
export function makeProof(key: ProofKey, input: ProofInput): string {
  const { method = 'GET', uri, token, nowMs = Date.now(), claims = {}, header = {}, signer = key, length } = input;
  const { rewritten = asItIs, respelled = asItIs } = input;
  const head = { typ: 'dpop+jwt', alg: key.algorithm, jwk: key.jwk, ...header };
  const payload = {
    jti: randomUUID(),
    htm: method,
    htu: uri,
    iat: Math.floor(nowMs / 1_000),
    ath: createHash('sha256').update(token).digest('base64url'),
    ...claims,
  };
  const sign = (said: object): string => {
    const [one, two] = [rewritten(JSON.stringify(head), 'header'), rewritten(JSON.stringify(said), 'claims')];
    return signProof(one, two, signer, respelled);
  };
  const proof = sign(payload);
  return length === undefined ? proof : sign({ ...payload, filling: fillingOf(proof, length) });
}

/** What a claim `filling` has to say for the proof to have this length. */
function fillingOf(proof: string, length: number): string {
  const [header = '', claims = '', signature = ''] = proof.split('.');
  const bytesIn = (characters: number): number => Math.floor((characters * 3) / 4);
  const characters = length - header.length - signature.length - 2;
  return 'x'.repeat(Math.max(0, bytesIn(characters) - bytesIn(claims.length) - ',"filling":""'.length));
}

/** Signs exactly these two texts. */
export function signProof(
  header: string,
  payload: string,
  { algorithm, privateKey }: ProofKey,
  respelled: PartChange = asItIs,
): string {
  const encode = (text: string, part: 'header' | 'claims'): string =>
    respelled(Buffer.from(text).toString('base64url'), part);
  const signed = `${encode(header, 'header')}.${encode(payload, 'claims')}`;
  return `${signed}.${signatureOf(Buffer.from(signed), algorithm, privateKey).toString('base64url')}`;
}

/** RFC 7518 §3.3 to §3.5, RFC 8037 §3.1. */
function signatureOf(bytes: Buffer, algorithm: ProofAlgorithm, key: KeyObject): Buffer {
  if (algorithm === 'EdDSA' || algorithm === 'Ed25519') return sign(null, bytes, key);
  const hash = `sha${algorithm.slice(2)}`;
  if (algorithm.startsWith('ES')) return sign(hash, bytes, { key, dsaEncoding: 'ieee-p1363' });
  const { RSA_PKCS1_PSS_PADDING, RSA_PSS_SALTLEN_DIGEST } = constants;
  return algorithm.startsWith('RS')
    ? sign(hash, bytes, key)
    : sign(hash, bytes, { key, padding: RSA_PKCS1_PSS_PADDING, saltLength: RSA_PSS_SALTLEN_DIGEST });
}

/** The same bytes, as no encoder writes them. */
export function otherSpelling(encoded: string): string {
  // Where characters have bits that encode nothing, one of these is set.
  const last = encoded.at(-1) ?? '';
  return encoded.length % 4 === 0 ? `${encoded}=` : encoded.slice(0, -1) + String.fromCharCode(last.charCodeAt(0) + 1);
}
