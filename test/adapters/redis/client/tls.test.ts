import t from 'tap';
import { certificates, type Certificate } from '../../../support/certificates.js';
import { startFakeRedis } from '../../../support/fake-redis.js';
import { freePort } from '../../../support/listening.js';
import { startRedis } from '../../../support/redis-server.js';
import type { Scope } from '../../../support/scope.js';
import { startRelay } from '../../../support/tcp-relay.js';
import { brokenRecord } from '../../../support/tls-records.js';
import { until } from '../../../support/until.js';
import { acquire, freshScope, reserveOf } from '../../store-commands.js';
import { openStore, redisSettings } from '../redis-store.js';

t.jobs = 4;

const files = certificates(t);

/** A server that speaks TLS only. */
async function startTls(t: Scope, certificate: Certificate, settings: readonly string[] = []): Promise<number> {
  const port = await freePort();
  await startRedis(
    t,
    [
      '--port',
      '0',
      '--tls-port',
      String(port),
      '--tls-cert-file',
      certificate.certFile,
      '--tls-key-file',
      certificate.keyFile,
      '--tls-ca-cert-file',
      files.ca.certFile,
      '--tls-auth-clients',
      'no',
      ...settings,
    ],
    { port, client: { tls: { rejectUnauthorized: false } } },
  );
  return port;
}

t.test('TLS with a private CA, by address and by name', async (t) => {
  const port = await startTls(t, files.server);
  for (const host of ['127.0.0.1', 'localhost']) {
    const topology = { kind: 'single', host, port, database: 0 } as const;
    const { store, up } = openStore(
      t,
      redisSettings(port, { topology, tls: { ca: () => files.ca.cert, serverName: null } }),
    );
    await up();
    await acquire(store, freshScope(), reserveOf('a'));
  }
});

t.test('a certificate for another name is accepted for that name only', async (t) => {
  const port = await startTls(t, files.misnamed);
  const named = openStore(t, redisSettings(port, { tls: { ca: () => files.ca.cert, serverName: 'other.example' } }));
  await named.up();
  const { store, problem } = openStore(t, redisSettings(port, { tls: { ca: () => files.ca.cert, serverName: null } }));
  await problem(/ERR_TLS_CERT_ALTNAME_INVALID|does not match certificate/);
  t.match(await store.reserve(freshScope(), reserveOf('a')), {
    ok: false,
    error: { kind: 'unreachable', mayHaveRun: false },
  });
});

t.test('a server of another CA is refused, and so is one that only the system would have to know', async (t) => {
  const port = await startTls(t, files.server);
  for (const ca of [files.otherCa.cert, null]) {
    const { store, problem } = openStore(t, redisSettings(port, { tls: { ca: () => ca, serverName: null } }));
    await problem(/certificate/);
    t.match(await store.reserve(freshScope(), reserveOf('a')), {
      ok: false,
      error: { kind: 'unreachable', mayHaveRun: false },
    });
  }
});

t.test('a connection whose TLS is broken by bytes of somebody else is made anew, reset or not', async (t) => {
  const port = await startTls(t, files.server);
  const relay = await startRelay(t, port);
  const { store, up } = openStore(t, redisSettings(relay.port, { tls: { ca: () => files.ca.cert, serverName: null } }));
  await up();
  for (const isReset of [true, false, true]) {
    const before = relay.accepted();
    // The server learns nothing of it, so that nothing but what the client does ends the connection.
    relay.forget();
    relay.inject(brokenRecord());
    // Of each, Node tells by an error.
    if (isReset) setTimeout(relay.reset, 20);
    await until('another connection', () => relay.accepted() > before);
    await up();
    await acquire(store, freshScope(), reserveOf('a'));
  }
});

t.test('TLS asked of a server without it, and the other way round, is a store out of reach', async (t) => {
  const plain = await startRedis(t);
  const encrypted = openStore(t, redisSettings(plain.port, { tls: { ca: () => files.ca.cert, serverName: null } }));
  await encrypted.problem(/./);
  const port = await startTls(t, files.server);
  const bare = openStore(t, redisSettings(port));
  await bare.problem(/./);
  for (const { store } of [encrypted, bare]) {
    t.match(await store.reserve(freshScope(), reserveOf('a')), {
      ok: false,
      error: { kind: 'unreachable', mayHaveRun: false },
    });
  }
});

t.test('with TLS, nobody is asked in plaintext: neither Sentinels nor nodes of a Cluster', async (t) => {
  const heard: string[] = [];
  const plain = await startFakeRedis(t, ([command]) => {
    heard.push(command ?? '');
    return '-ERR no\r\n';
  });
  const nodes = [{ host: '127.0.0.1', port: plain.port }];
  for (const topology of [
    { kind: 'sentinel', name: 'orders', nodes },
    { kind: 'cluster', nodes },
  ] as const) {
    const { problem } = openStore(
      t,
      redisSettings(0, { topology, tls: { ca: () => files.ca.cert, serverName: null } }),
    );
    await problem(/lost|closed|TLS|SSL|socket|ECONNRESET|deadline/i);
  }
  t.same(heard, []);
});

t.test('a server without TLS is told as such, and one that says nothing', async (t) => {
  const server = await startRedis(t);
  const { problem } = openStore(t, redisSettings(server.port, { tls: { ca: () => files.ca.cert, serverName: null } }));
  await problem(/^no TLS handshake: it may be a server without TLS$/);
  const silent = await startFakeRedis(t, () => null);
  const { problem: says, log } = openStore(t, redisSettings(silent.port));
  await says(/^connected, and no answer yet$/);
  t.same(log.lines, [], 'which is no news at a start');
  await says(/^no answer /);
});
