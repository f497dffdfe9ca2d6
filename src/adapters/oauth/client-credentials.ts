/** How this proxy shows an issuer who it is. Nothing that is said here of a file quotes what it holds. */
import { constants, createPrivateKey, randomBytes, sign, X509Certificate, type KeyObject } from 'node:crypto';
import type { ClientAuth, IntrospectionSettings } from '../../config/types.js';
import type { Algorithm } from '../../decision/token/profiles.js';
import { readCaBundle } from '../../lib/pem.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Files } from '../../ports/system.js';

/** What the files held. */
export interface ClientCredentials {
  /** PEM; `null` for the system's authorities. */
  readonly ca: readonly string[] | null;
  /** Shown in TLS; `null` where nothing is. */
  readonly certificate: { readonly cert: string; readonly key: string } | null;
  /** What goes with a question: a header of the request, and fields of the form. */
  readonly authenticate: (nowMs: number) => Authentication;
}

interface Authentication {
  readonly authorization: string | null;
  readonly form: Readonly<Record<string, string>>;
}

const maxSecretBytes = 4_096;

/** A bundle of every public authority has some 250 KB. */
export const maxFileBytes = 1024 * 1024;

/** RFC 7523 §3 wants an end; a question is asked at once. */
const assertionLifeS = 60;

const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** Every file that the settings name. */
export function credentialFiles({ caFile, auth }: Pick<IntrospectionSettings, 'caFile' | 'auth'>): readonly string[] {
  return [...(caFile === null ? [] : [caFile]), ...secretFilesOf(auth)];
}

function secretFilesOf(auth: ClientAuth): readonly string[] {
  switch (auth.method) {
    case 'client_secret_basic':
    case 'client_secret_post':
      return [auth.secretFile];
    case 'private_key_jwt':
      return [auth.keyFile];
    case 'tls_client_auth':
      return [auth.certFile, auth.keyFile];
  }
}

/** The file of the secret or the private key. */
export function secretFileOf(auth: ClientAuth): string {
  return 'secretFile' in auth ? auth.secretFile : auth.keyFile;
}

/** Reads the files, or says in words what is wrong with one. `onText` hears what each of them holds. */
export async function readClientCredentials(
  { caFile, auth, clientId }: Pick<IntrospectionSettings, 'caFile' | 'auth' | 'clientId'>,
  files: Pick<Files, 'read'>,
  onText: (path: string, text: string) => void = () => undefined,
): Promise<Result<ClientCredentials, string>> {
  const texts = new Map<string, string>();
  for (const path of credentialFiles({ caFile, auth })) {
    const text = await files.read(path, { maxBytes: maxFileBytes });
    if (!text.ok) return refuse(`${path}: ${text.error}`);
    texts.set(path, text.value);
    onText(path, text.value);
  }
  const textOf = (path: string): string => texts.get(path) ?? '';
  const ca = caFile === null ? accept(null) : readCaBundle(textOf(caFile));
  if (!ca.ok) return refuse(`${caFile ?? ''}: ${ca.error}`);
  const shown = readAuth(auth, clientId, textOf);
  return shown.ok ? accept({ ca: ca.value, ...shown.value }) : shown;
}

type Shown = Omit<ClientCredentials, 'ca'>;

function readAuth(auth: ClientAuth, clientId: string, textOf: (path: string) => string): Result<Shown, string> {
  switch (auth.method) {
    case 'client_secret_basic':
    case 'client_secret_post': {
      const secret = textOf(auth.secretFile).replace(/\r?\n$/, '');
      if (secret === '' || Buffer.byteLength(secret) > maxSecretBytes || /[\x00-\x1f\x7f]/.test(secret)) {
        return refuse(`${auth.secretFile}: holds no secret of 1 to ${String(maxSecretBytes)} bytes in one line`);
      }
      const shown: Authentication =
        auth.method === 'client_secret_post'
          ? { authorization: null, form: { client_id: clientId, client_secret: secret } }
          : { authorization: basic(clientId, secret), form: {} };
      return accept({ certificate: null, authenticate: () => shown });
    }
    case 'private_key_jwt':
      return readSigner(auth, clientId, textOf(auth.keyFile));
    case 'tls_client_auth': {
      const problem = certificateProblem(auth, textOf);
      return problem === null
        ? accept({
            certificate: { cert: textOf(auth.certFile), key: textOf(auth.keyFile) },
            authenticate: () => ({ authorization: null, form: { client_id: clientId } }),
          })
        : refuse(problem);
    }
  }
}

/** RFC 6749 §2.3.1: both are written as in a form before they are joined. */
function basic(clientId: string, secret: string): string {
  const written = [clientId, secret].map((text) => new URLSearchParams({ _: text }).toString().slice(2)).join(':');
  return `Basic ${Buffer.from(written).toString('base64')}`;
}

function readSigner(
  auth: Extract<ClientAuth, { method: 'private_key_jwt' }>,
  clientId: string,
  pem: string,
): Result<Shown, string> {
  const key = readPrivateKey(pem);
  if (key === null) return refuse(`${auth.keyFile}: holds no PEM private key, or one that is locked with a passphrase`);
  const fitting = algorithmsOf(key);
  const algorithm = auth.algorithm ?? fitting[0];
  if (algorithm === undefined) return refuse(`${auth.keyFile}: holds a key of a kind that signs no assertion`);
  if (!fitting.includes(algorithm)) {
    return refuse(`${auth.keyFile}: holds a key that does not sign with ${algorithm}; allowed: ${fitting.join(', ')}`);
  }
  const header = { alg: algorithm, typ: 'JWT', ...(auth.keyId === null ? {} : { kid: auth.keyId }) };
  return accept({
    certificate: null,
    authenticate: (nowMs) => {
      const nowS = Math.floor(nowMs / 1_000);
      const claims = {
        iss: clientId,
        sub: clientId,
        aud: auth.audience,
        jti: randomBytes(16).toString('base64url'),
        iat: nowS,
        exp: nowS + assertionLifeS,
      };
      const form = {
        client_id: clientId,
        client_assertion_type: assertionType,
        client_assertion: signJwt(header, claims, key, algorithm),
      };
      return { authorization: null, form };
    },
  });
}

function readPrivateKey(pem: string): KeyObject | null {
  try {
    return createPrivateKey(pem);
  } catch {
    // The parser's message may quote what it parsed.
    return null;
  }
}

const rsaAlgorithms: readonly Algorithm[] = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];

const curveAlgorithms: Readonly<Record<string, readonly Algorithm[]>> = {
  prime256v1: ['ES256'],
  secp384r1: ['ES384'],
  secp521r1: ['ES512'],
};

/** What a key can sign with, the usual one first (RFC 7518 §3.1, RFC 8037 §3.1). */
function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): readonly Algorithm[] {
  if (asymmetricKeyType === 'rsa') return rsaAlgorithms;
  if (asymmetricKeyType === 'ed25519') return ['EdDSA'];
  return asymmetricKeyType === 'ec' ? (curveAlgorithms[asymmetricKeyDetails?.namedCurve ?? ''] ?? []) : [];
}

function signJwt(header: object, claims: object, key: KeyObject, algorithm: Algorithm): string {
  const input = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  const hash = algorithm === 'EdDSA' ? null : `sha${algorithm.slice(2)}`;
  const signature = sign(hash, Buffer.from(input), {
    key,
    dsaEncoding: 'ieee-p1363',
    // RFC 7518 §3.5: salt as long as the hash.
    ...(algorithm.startsWith('PS')
      ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
      : {}),
  });
  return `${input}.${signature.toString('base64url')}`;
}

function certificateProblem(
  { certFile, keyFile }: Extract<ClientAuth, { method: 'tls_client_auth' }>,
  textOf: (path: string) => string,
): string | null {
  const key = readPrivateKey(textOf(keyFile));
  if (key === null) return `${keyFile}: holds no PEM private key, or one that is locked with a passphrase`;
  const chain = readCaBundle(textOf(certFile));
  const [leaf] = chain.ok ? chain.value : [];
  if (leaf === undefined) return `${certFile}: ${chain.ok ? 'holds no certificate' : chain.error}`;
  return new X509Certificate(leaf).checkPrivateKey(key) ? null : `${certFile}: is not the certificate of ${keyFile}`;
}
