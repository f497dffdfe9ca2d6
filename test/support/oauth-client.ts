/** A client of a real authorization server: what the server is told of it, and by which files it shows who it is. */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { certificates, type Certificate } from './certificates.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

interface OAuthClient {
  /** With characters that each encoding on the way writes otherwise. */
  readonly secret: string;
  readonly secretFile: string;
  /** A private key for ES256; its `kid` is `k`. */
  readonly keyFile: string;
  readonly certificate: Certificate;
  /** What a server registers of a client, by the way that it authenticates; `client_id` is still to be added. */
  readonly registered: Readonly<Record<'basic' | 'post' | 'key' | 'certificate', object>>;
}

/** Makes one whose files end with the test. */
export function oauthClient(t: Scope): OAuthClient {
  const dir = tempDir(t);
  const [secretFile, keyFile] = [join(dir, 'secret'), join(dir, 'key.pem')];
  const secret = 'a secret: of + sallyport %';
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(secretFile, `${secret}\n`, { mode: 0o600 });
  writeFileSync(keyFile, privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  const jwk = { ...createPublicKey(privateKey).export({ format: 'jwk' }), kid: 'k', use: 'sig', alg: 'ES256' };
  return {
    secret,
    secretFile,
    keyFile,
    certificate: certificates(t).client,
    registered: {
      basic: { client_secret: secret, token_endpoint_auth_method: 'client_secret_basic' },
      post: { client_secret: secret, token_endpoint_auth_method: 'client_secret_post' },
      key: { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwk] } },
      certificate: { token_endpoint_auth_method: 'tls_client_auth', tls_client_auth_subject_dn: 'CN=client' },
    },
  };
}
