import { spawn } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { projectDir } from '../support/project-dir.js';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { baseConfig } from '../support/world.js';
import { freePort, startServer, stopAtEnd, versionOf, type Child } from './child.js';
import { startHaproxy } from './haproxy.js';

/** Something that answers `GET /orders` with a token, and whose CPU is measured. */
export interface Contender extends Child {
  readonly name: string;
  /** What it does for a request. */
  readonly work: string;
}

export interface Field {
  readonly contenders: readonly Contender[];
  readonly token: string;
}

/** Starts all that can be had here, each before the same receiver; only those named, where names are given. */
export async function startContenders(t: Scope, only: readonly string[] | null): Promise<Field> {
  const key = rsaKey();
  const token = mintToken({ key, claims: { exp: Math.floor(Date.now() / 1000) + 7000 } });
  const receiver = (await startServer(t, 'receiver')).port;
  const jwks = (await startJwksServer(t, { keys: [key] })).url;
  const judged = 'verifies, authorizes, forwards';
  const known: readonly { name: string; work: string; start: () => Promise<Child> }[] = [
    { name: 'node:http', work: 'answers by itself', start: async () => startServer(t, 'bare') },
    { name: '@fastify/http-proxy', work: 'forwards', start: async () => startServer(t, 'http-proxy', `http://127.0.0.1:${String(receiver)}`) },
    { name: 'Sallyport', work: `${judged}, logs`, start: async () => startSallyport(t, receiver, jwks, token, 'info') },
    { name: 'Sallyport, log.level: warn', work: judged, start: async () => startSallyport(t, receiver, jwks, token, 'warn') },
    ...(versionOf('haproxy', '-v') === null ? [] : [
      { name: 'HAProxy', work: 'forwards', start: async () => startHaproxy(t, receiver, null, token) },
      { name: 'HAProxy, jwt_verify', work: judged, start: async () => startHaproxy(t, receiver, key.publicKey, token) },
    ]),
  ];
  const contenders: Contender[] = [];
  for (const { name, work, start } of known) {
    if (only === null || only.includes(name)) contenders.push({ name, work, ...(await start()) });
  }
  return { contenders, token };
}

/** `serve`, writing its log to a file as a container's would be. */
async function startSallyport(t: Scope, receiverPort: number, jwksUrl: string, token: string, level: 'info' | 'warn'): Promise<Child> {
  const dir = tempDir(t);
  const configFile = join(dir, 'sallyport.yaml');
  // At level warn nobody is told which port the system gave.
  const port = await freePort();
  writeFileSync(configFile, baseConfig({
    listen: { port }, upstream: { url: `http://127.0.0.1:${String(receiverPort)}` }, issuers: { core: { jwks_url: jwksUrl } }, log: { level },
  }));
  const log = openSync(join(dir, 'log'), 'a');
  const child = spawn(process.execPath, [join(projectDir, 'dist/main.js'), 'serve', '--config', configFile], { stdio: ['ignore', log, 'inherit'] });
  closeSync(log);
  stopAtEnd(t, child);
  const headers = { Authorization: `Bearer ${token}` };
  await until('the proxy is ready', async () => (await request(port, { path: '/orders', headers }).catch(() => null))?.status === 200);
  return { pid: child.pid ?? 0, port };
}
