import type { KeyObject } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apacheModules, apacheProgram, runApache } from '../support/apache.js';
import { freePort } from '../support/listening.js';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { childrenOf } from '../support/linux.js';
import { until } from '../support/until.js';
import { versionOf, type Child } from './child.js';

const modules = [
  'mpm_event',
  'authn_core',
  'authz_core',
  'authz_user',
  'headers',
  'proxy',
  'proxy_http',
  'auth_openidc',
];

/** What Apache says of its version, or `null` where it or mod_auth_openidc is missing. */
export function apacheVersion(): string | null {
  if (modules.some((module) => !existsSync(join(apacheModules, `mod_${module}.so`)))) return null;
  return versionOf(apacheProgram, '-v')?.replace('Server version: ', '') ?? null;
}

/**
 * The claims that the other contenders check, as mod_auth_openidc spells them. It judges `exp` and the signature by
 * itself.
 */
const claims = [
  'iss:https://api.example.com',
  'aud:orders',
  'source:microservice',
  'token_type:service',
  'sub:checkout',
  'permissions:orders:read',
];

/** Runs Apache with mod_auth_openidc in front of the receiver: one process, which is the one that is measured. */
export async function startApache(
  t: Scope,
  receiverPort: number,
  publicKey: KeyObject,
  keyId: string,
  token: string,
): Promise<Child> {
  const dir = tempDir(t);
  const port = await freePort();
  const keyFile = join(dir, 'key.pem');
  writeFileSync(keyFile, publicKey.export({ format: 'pem', type: 'spki' }));
  const config = [
    'StartServers 1',
    'ServerLimit 1',
    'ThreadLimit 128',
    'ThreadsPerChild 128',
    'MaxRequestWorkers 128',
    'MaxSpareThreads 128',
    'KeepAlive On',
    'MaxKeepAliveRequests 0',
    'KeepAliveTimeout 60',
    `OIDCOAuthVerifyCertFiles ${keyId}#${keyFile}`,
    'OIDCOAuthRemoteUserClaim sub',
    'OIDCClaimPrefix X-Auth-',
    '<Location /orders>',
    '  AuthType oauth20',
    '  <RequireAll>',
    ...claims.map((claim) => `    Require claim ${claim}`),
    '  </RequireAll>',
    '  RequestHeader unset Authorization',
    `  ProxyPass http://127.0.0.1:${String(receiverPort)}/orders keepalive=On`,
    '</Location>',
  ];
  const { pid } = runApache(t, port, modules, config.join('\n'));
  const headers = { Authorization: `Bearer ${token}` };
  await until(
    'Apache answers',
    async () => (await request(port, { path: '/orders', headers }).catch(() => null))?.status === 200,
  );
  const [worker] = childrenOf(pid);
  if (worker === undefined) throw new Error('Apache has no worker');
  return { pid: worker, port };
}
