/** Every file that a config names is replaced in turn, while writes go on. */
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request as httpsRequest, type Server } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { certificates, type Certificate } from '../support/certificates.js';
import { keySet } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { freePort, listen } from '../support/listening.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { startServe } from '../support/serve-process.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { baseConfig } from '../support/world.js';

/** What writes saw from one rotation until the next. */
export interface Rotation {
  readonly name: string;
  readonly writes: number;
  /** Outcomes that were no 200, with the milliseconds since the rotation began. */
  readonly failed: readonly { readonly outcome: string; readonly atMs: number }[];
}

/** So many writes a second; each rotation has so long to settle. */
export async function rotateAll(
  t: Scope,
  { perSecond, settleMs }: { readonly perSecond: number; readonly settleMs: number },
): Promise<readonly Rotation[]> {
  const c = certificates(t);
  const dir = tempDir(t);
  const place = (name: string, text: string): string => {
    const path = join(dir, name);
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
    return path;
  };
  const key = rsaKey();
  const upstream = createServer({ cert: c.server.cert, key: c.server.key }, (req, res) => {
    req.resume().on('end', () => res.end('done'));
  });
  const keys = createServer({ cert: c.server.cert, key: c.server.key }, (_req, res) => res.end(keySet([key])));
  const [upstreamPort, keysPort, redisPort, port] = [
    (await listen(t, upstream)).port,
    (await listen(t, keys)).port,
    await freePort(),
    await freePort(),
  ];
  const redis = await startRedis(
    t,
    [
      '--port',
      '0',
      '--tls-port',
      String(redisPort),
      '--tls-cert-file',
      c.server.certFile,
      '--tls-key-file',
      c.server.keyFile,
      '--tls-ca-cert-file',
      c.ca.certFile,
      '--tls-auth-clients',
      'no',
      '--requirepass',
      'first',
    ],
    { port: redisPort, client: { tls: { rejectUnauthorized: false }, password: 'first' } },
  );
  await redis.client.connect().catch(() => undefined);
  const both = `${c.ca.cert}${c.otherCa.cert}`;
  const config = join(dir, 'sallyport.yaml');
  writeFileSync(
    config,
    baseConfig({
      listen: {
        port,
        tls: {
          cert_file: place('tls.crt', c.server.cert),
          key_file: place('tls.key', c.server.key),
          client_ca_file: place('client.pem', c.ca.cert),
        },
      },
      upstream: { url: `https://127.0.0.1:${String(upstreamPort)}`, ca_file: place('upstream.pem', c.ca.cert) },
      issuers: {
        core: {
          jwks_url: `https://127.0.0.1:${String(keysPort)}/jwks.json`,
          ca_file: place('keys.pem', c.ca.cert),
          jwks: { min_age: '1s', max_age: '1s' },
        },
      },
      identity: {
        assertion: {
          key_file: place('assertion.pem', ecKey()),
          issuer: 'https://sallyport.example',
          audience: 'orders',
        },
      },
      store: {
        redis: {
          url: `rediss://127.0.0.1:${String(redisPort)}`,
          password_file: place('password', 'first'),
          tls: { ca_file: place('redis.pem', c.ca.cert) },
          reserve_timeout: '2s',
          settle_timeout: '2s',
        },
      },
      routes: [
        {
          name: 'write',
          methods: ['POST'],
          path: '/orders',
          subjects: [`\${file:${place('subject', 'checkout')}}`],
          permissions: [],
          idempotency: 'required',
        },
      ],
    }),
  );
  const serve = startServe(t, config);
  await serve.port('proxy');
  await sleep(1_000);

  const bearer = `Bearer ${mintToken({ key, claims: { exp: Math.floor(Date.now() / 1_000) + 3_600 } })}`;
  const agent = new Agent({ keepAlive: true, ca: both, cert: c.client.cert, key: c.client.key, maxSockets: 40 });
  t.teardown(() => agent.destroy());
  const outcomes: { readonly outcome: string; readonly atMs: number }[] = [];
  const write = async (): Promise<void> => {
    const atMs = performance.now();
    outcomes.push({ outcome: await post(port, agent, bearer), atMs });
  };
  let due = 0;
  const ticking = setInterval(() => {
    for (due += perSecond / 100; due >= 1; due -= 1) void write();
  }, 10);
  t.teardown(() => clearInterval(ticking));

  const showAt = (server: Server, { cert, key: own }: Certificate): void => {
    server.setSecureContext({ cert, key: own });
    server.closeIdleConnections();
  };
  const showAtRedis = async ({ certFile, keyFile }: Certificate): Promise<void> => {
    await redis.client.config('SET', 'tls-key-file', keyFile, 'tls-cert-file', certFile);
    await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal');
  };
  const steps: readonly (readonly [string, () => unknown])[] = [
    ['nothing', () => undefined],
    ['listener: certificate and key', () => [place('tls.crt', c.renewed.cert), place('tls.key', c.renewed.key)]],
    ['listener: client CA', () => place('client.pem', both)],
    ['upstream: both CAs', () => place('upstream.pem', both)],
    ['upstream: certificate of the new CA', () => showAt(upstream, c.strangerServer)],
    ['upstream: new CA alone', () => place('upstream.pem', c.otherCa.cert)],
    ['keys: both CAs', () => place('keys.pem', both)],
    ['keys: certificate of the new CA', () => showAt(keys, c.strangerServer)],
    ['keys: new CA alone', () => place('keys.pem', c.otherCa.cert)],
    ['assertion: key', () => place('assertion.pem', ecKey())],
    ['Redis: both CAs', () => place('redis.pem', both)],
    ['Redis: certificate of the new CA, connections killed', async () => showAtRedis(c.strangerServer)],
    ['Redis: new CA alone', () => place('redis.pem', c.otherCa.cert)],
    [
      'Redis: second password',
      async () => {
        await redis.client.call('ACL', 'SETUSER', 'default', '>second');
        place('password', 'second');
      },
    ],
    [
      'Redis: first password gone, connections killed',
      async () => {
        await redis.client.call('ACL', 'SETUSER', 'default', '<first');
        await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal');
      },
    ],
    ['placeholder: the same subject, with a line end', () => place('subject', 'checkout\n')],
  ];
  const rotations: Rotation[] = [];
  for (const [name, rotate] of steps) {
    outcomes.length = 0;
    const beganMs = performance.now();
    await rotate();
    await sleep(settleMs);
    rotations.push({
      name,
      writes: outcomes.length,
      failed: outcomes
        .filter(({ outcome }) => outcome !== '200')
        .map(({ outcome, atMs }) => ({ outcome, atMs: atMs - beganMs })),
    });
  }
  return rotations;
}

function ecKey(): string {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  }) as string;
}

async function post(port: number, agent: Agent, bearer: string): Promise<string> {
  return new Promise((resolve) => {
    const sent = httpsRequest(
      {
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: '/orders',
        agent,
        headers: { Authorization: bearer, 'Idempotency-Key': `"${randomUUID()}"` },
      },
      (response) => {
        response.resume().on('end', () => resolve(String(response.statusCode)));
      },
    );
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    sent.end('a body');
  });
}
