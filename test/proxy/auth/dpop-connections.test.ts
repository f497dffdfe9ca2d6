/** Proofs of keys where more than one request is meant: WebSockets, and writes that are sent again. */
import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
import { systemClock } from '../../../src/adapters/system/clock.js';
import { createUsedProofs } from '../../../src/proxy/auth/used-proofs.js';
import { makeProof, proofKey } from '../../support/dpop.js';
import { request } from '../../support/raw-client.js';
import { mintToken } from '../../support/tokens.js';
import { startProxy } from '../harness.js';
import { startWebSocketProxy, webSocketRoutes } from '../websocket/websocket-proxy.js';
import { silentReservationMetrics } from '../../support/reservation-metrics.js';

const origin = 'https://orders.example';
const own = proofKey();
const claims = { cnf: { jkt: own.thumbprint } };
const listen = { dpop: { origins: [origin] } };

t.test('a WebSocket opens with one proof, and is authorized again without another', async (t) => {
  const store = createMemoryStore(systemClock);
  const proxy = await startWebSocketProxy(t, {
    config: { listen, store: { memory: {} } },
    proofs: { use: createUsedProofs({ store, replicas: 0 }, 0), isNonce: null },
  });
  const token = mintToken({ key: proxy.key, claims });
  const headers = (): Record<string, string> => ({
    Authorization: `DPoP ${token}`,
    DPoP: makeProof(own, { uri: `${origin}/live`, token }),
  });
  const used = headers();
  const client = proxy.connect({ anonymous: true, headers: used });
  await client.opened;
  const replay = proxy.connect({ anonymous: true, headers: used });
  await t.rejects(replay.opened);
  const config = { listen, store: { memory: {} }, routes: webSocketRoutes };
  proxy.reload(config);
  await proxy.server.reauthorizeConnections();
  const echoed = new Promise((resolve) => client.socket.once('message', resolve));
  client.socket.send('still here');
  t.equal(String(await echoed), 'still here');

  proxy.reload({ ...config, revoked: { subjects: ['checkout'] } });
  await proxy.server.reauthorizeConnections();
  t.match(await client.closed, { code: 4401 });
});

t.test('a WebSocket that was opened as a bearer is closed once its token has to be proved', async (t) => {
  const issuer = {
    issuer: 'https://api.example.com',
    audience: 'orders',
    source: 'microservice',
    token_type: 'service',
  };
  const config = (binding: string): object => ({ routes: webSocketRoutes, issuers: { core: { ...issuer, binding } } });
  const proxy = await startWebSocketProxy(t, { config: { ...config('none') } });
  const client = proxy.connect({ claims });
  await client.opened;
  proxy.reload({ ...config('accept') });
  await proxy.server.reauthorizeConnections();
  t.match(await client.closed, { code: 4401 });
});

t.test('a write that is sent again has the same key and a new proof, and gets the first response', async (t) => {
  const store = createMemoryStore(systemClock);
  t.teardown(async () => store.close());
  const proxy = await startProxy(t, {
    config: {
      listen,
      store: { memory: {} },
      routes: [
        {
          name: 'create-order',
          methods: ['POST'],
          path: '/orders',
          subjects: ['checkout'],
          permissions: ['orders:write'],
          idempotency: 'required',
        },
      ],
    },
    reservations: {
      store,
      share: null,
      replicas: 0,
      settleTimeoutMs: 1_000,
      metrics: silentReservationMetrics,
    },
    proofs: { use: createUsedProofs({ store, replicas: 0 }, 0), isNonce: null },
  });
  const token = mintToken({ key: proxy.key, claims });
  const key = `"${randomUUID()}"`;
  const write = async (proof: string): ReturnType<typeof request> =>
    request(proxy.port, {
      method: 'POST',
      path: '/orders',
      headers: { Authorization: `DPoP ${token}`, DPoP: proof, 'Idempotency-Key': key },
      body: 'an order',
    });
  const proof = (): string => makeProof(own, { method: 'POST', uri: `${origin}/orders`, token });
  const first = proof();
  t.equal((await write(first)).status, 200);
  t.equal((await write(first)).status, 401, 'the same proof is none, and tells nothing of the write');
  const again = await write(proof());
  t.same([again.status, again.field('idempotent-replayed')], [200, 'true']);
  t.equal(proxy.receiver.requests.length, 1);
});
