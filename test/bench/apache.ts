import { spawn } from 'node:child_process';
import type { KeyObject } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { freePort, stopAtEnd, versionOf, type Child } from './child.js';

/** Where Debian puts them. */
const program = '/usr/sbin/apache2';
const modulesDir = '/usr/lib/apache2/modules';
const modules = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'headers', 'proxy', 'proxy_http', 'auth_openidc'];

/** What Apache says of its version, or `null` where it or mod_auth_openidc is missing. */
export function apacheVersion(): string | null {
  if (modules.some((module) => !existsSync(join(modulesDir, `mod_${module}.so`)))) return null;
  return versionOf(program, '-v')?.replace('Server version: ', '') ?? null;
}

/** The claims that the other contenders check, as mod_auth_openidc spells them. It judges `exp` and the signature by itself. */
const claims = [
  'iss:https://api.example.com', 'aud:orders', 'source:microservice', 'token_type:service', 'sub:checkout', 'permissions:orders:read',
];

/** Runs Apache with mod_auth_openidc in front of the receiver: one process, which is the one that is measured. */
export async function startApache(t: Scope, receiverPort: number, publicKey: KeyObject, keyId: string, token: string): Promise<Child> {
  const dir = tempDir(t);
  const port = await freePort();
  const keyFile = join(dir, 'key.pem');
  writeFileSync(keyFile, publicKey.export({ format: 'pem', type: 'spki' }));
  const config = [
    `ServerRoot ${dir}`, 'ServerName localhost', `Listen 127.0.0.1:${String(port)}`, `PidFile ${join(dir, 'pid')}`, `ErrorLog ${join(dir, 'log')}`,
    `Mutex file:${dir}`, 'LogLevel error',
    ...modules.map((module) => `LoadModule ${module}_module ${join(modulesDir, `mod_${module}.so`)}`),
    'StartServers 1', 'ServerLimit 1', 'ThreadLimit 128', 'ThreadsPerChild 128', 'MaxRequestWorkers 128', 'MaxSpareThreads 128',
    'KeepAlive On', 'MaxKeepAliveRequests 0', 'KeepAliveTimeout 60',
    `OIDCOAuthVerifyCertFiles ${keyId}#${keyFile}`, 'OIDCOAuthRemoteUserClaim sub', 'OIDCClaimPrefix X-Auth-',
    '<Location /orders>',
    '  AuthType oauth20', '  <RequireAll>', ...claims.map((claim) => `    Require claim ${claim}`), '  </RequireAll>',
    '  RequestHeader unset Authorization',
    `  ProxyPass http://127.0.0.1:${String(receiverPort)}/orders keepalive=On`,
    '</Location>', '',
  ];
  const file = join(dir, 'apache.conf');
  writeFileSync(file, config.join('\n'));
  const child = spawn(program, ['-DFOREGROUND', '-f', file], { stdio: ['ignore', 'inherit', 'inherit'] });
  const pid = String(child.pid);
  const workers = (): readonly number[] => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter((text) => text !== '').map(Number);
  stopAtEnd(t, child);
  // The worker does not notice that its parent was killed.
  t.teardown(() => {
    for (const worker of workers()) process.kill(worker, 'SIGKILL');
  });
  const headers = { Authorization: `Bearer ${token}` };
  await until('Apache answers', async () => (await request(port, { path: '/orders', headers }).catch(() => null))?.status === 200);
  const [worker] = workers();
  if (worker === undefined) throw new Error('Apache has no worker');
  return { pid: worker, port };
}
