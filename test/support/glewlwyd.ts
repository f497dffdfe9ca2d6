/** A real authorization server in C, Debian's `glewlwyd`, on a database of SQLite that is made anew. */
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { freePort } from './listening.js';
import { startProgram } from './program.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';
import { until } from './until.js';

interface Glewlwyd {
  readonly issuer: string;
  /** A new access token (RFC 9068) of the client `checkout`; its audience is the scope, as this server has it. */
  readonly token: (scope: string) => Promise<string>;
}

const documents = '/usr/share/doc/glewlwyd';

const unzipped = (path: string): string => gunzipSync(readFileSync(join(documents, path))).toString();

/** Starts it on loopback, with one client that may have these scopes; it ends with the test. */
export async function startGlewlwyd(t: Scope, scopes: readonly string[]): Promise<Glewlwyd> {
  const dir = tempDir(t);
  const [database, config] = [join(dir, 'glewlwyd.db'), join(dir, 'glewlwyd.conf')];
  execFileSync('sqlite3', [database], { input: unzipped('database/init.sqlite3.sql.gz') });
  const port = await freePort();
  const origin = `http://127.0.0.1:${String(port)}`;
  const sample = unzipped('glewlwyd.conf.sample.gz')
    .replace(/^port=.*$/m, `port=${String(port)}`)
    .replace(/^external_url=.*$/m, `external_url="${origin}"`)
    .replace(/^cookie_domain=.*$/m, 'cookie_domain="127.0.0.1"')
    .replace('/var/cache/glewlwyd/glewlwyd.db', database);
  writeFileSync(config, sample);
  const program = startProgram(t, 'glewlwyd', [`--config-file=${config}`], { signal: 'SIGTERM' });
  const login = JSON.stringify({ username: 'admin', password: 'password' });
  const cookie = await until('glewlwyd listens', async () => {
    if (!program.isRunning()) throw new Error(`glewlwyd ended:\n${program.complaints()}`);
    const answer = await fetch(`${origin}/api/auth/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: login,
    }).catch(() => null);
    return answer?.headers.get('set-cookie')?.split(';')[0];
  });
  const make = async (path: string, body: object): Promise<void> => {
    const headers = { 'content-type': 'application/json', cookie };
    const answer = await fetch(`${origin}/api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`glewlwyd: ${path}: ${await answer.text()}`);
  };
  const issuer = `${origin}/api/oidc`;
  await make('mod/plugin/', { module: 'oidc', name: 'oidc', display_name: 'oidc', parameters: parametersOf(issuer) });
  for (const name of scopes) {
    await make('scope/', { name, display_name: name, description: name, password_required: false, scheme: {} });
  }
  const secret = 'a-secret-of-the-client';
  await make('client/?source=database', {
    client_id: 'checkout',
    name: 'checkout',
    client_secret: secret,
    confidential: true,
    enabled: true,
    redirect_uri: ['http://127.0.0.1/'],
    authorization_type: ['client_credentials'],
    scope: scopes,
    token_endpoint_auth_method: ['client_secret_basic'],
  });
  return {
    issuer,
    token: async (scope) => {
      const answer = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(`checkout:${secret}`).toString('base64')}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', scope }),
      });
      const { access_token: token } = (await answer.json()) as { readonly access_token?: string };
      if (token === undefined) throw new Error(`glewlwyd gave no token: ${String(answer.status)}`);
      return token;
    },
  };
}

/** Those of the plugin that issues tokens: an RSA key, and clients that get tokens for themselves. */
function parametersOf(iss: string): object {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const key = { ...privateKey.export({ format: 'jwk' }), alg: 'RS256', kid: 'one', use: 'sig' };
  const grants = ['code', 'token', 'id-token', 'none', 'password', 'device', 'refresh'];
  return {
    iss,
    'jwt-type': 'rsa',
    'jwt-key-size': '256',
    'jwks-private': JSON.stringify({ keys: [key] }),
    'default-kid': 'one',
    'jwks-show': true,
    'access-token-duration': 300,
    'refresh-token-duration': 300,
    'code-duration': 300,
    'refresh-token-rolling': true,
    'allow-non-oidc': true,
    'auth-type-client-enabled': true,
    ...Object.fromEntries(
      grants.map((grant) => [`auth-type-${grant}-enabled`, grant === 'code' || grant === 'id-token']),
    ),
    'subject-type': 'public',
  };
}
