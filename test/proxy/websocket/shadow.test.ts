import t from 'tap';
import { systemClock } from '../../../src/adapters/system/clock.js';
import { rsaKey } from '../../support/keys.js';
import { sendRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { handshake, soundFields, startWebSocketProxy, webSocketRoutes, type Client } from './websocket-proxy.js';

async function echoes({ socket, messages }: Client): Promise<void> {
  const before = messages.length;
  socket.send('still here');
  await until('the echo', () => messages.length > before);
}

const forged = {
  'X-Auth-Subject': 'evil',
  'x_auth.kind': 'evil',
  'X-AUTH-PERMISSIONS': 'evil',
  'X-Forwarded-For': 'evil',
};

t.test('in shadow mode a handshake that would be refused goes on as nobody, with its Authorization', async (t) => {
  const proxy = await startWebSocketProxy(t, { config: { mode: 'shadow', routes: webSocketRoutes } });
  const refusals = [
    { name: 'without a token', options: { anonymous: true }, reason: 'credential_missing' },
    { name: 'expired', options: { claims: { exp: 1 } }, reason: 'token_expired' },
    { name: 'another subject', options: { claims: { sub: 'reporting' } }, reason: 'subject_not_approved' },
  ];
  for (const { name, options, reason } of refusals) {
    const client = proxy.connect({ ...options, headers: forged });
    await client.opened;
    await echoes(client);
    const { headers, rawHeaders } = proxy.webSockets.upgrades.at(-1) ?? {};
    t.notMatch(rawHeaders?.join('\n'), /evil|x-auth/i, name);
    t.equal(headers?.authorization === undefined, name === 'without a token', name);
    t.equal(proxy.counted.shadowDenials.length, 0, 'counted at its end');
    client.socket.close(1000);
    await until('it is recorded', () => proxy.counted.shadowDenials.length === 1);
    t.same(proxy.counted.shadowDenials.splice(0), [{ route: 'live', reason }], name);
  }
  const before = proxy.webSockets.upgrades.length;
  const [without] = await sendRaw(proxy.port, handshake(`${soundFields}${proxy.bearer()}`, '/nowhere'), {
    untilClosed: true,
  });
  t.equal(without?.status, 400, 'without a route for it there is no tunnel');
  t.equal(proxy.webSockets.upgrades.length, before);
});

t.test('what is revoked holds in shadow mode, at the upgrade and in mid-connection', async (t) => {
  const proxy = await startWebSocketProxy(t, { config: { mode: 'shadow', routes: webSocketRoutes } });
  const client = proxy.connect();
  await client.opened;
  proxy.reload({ mode: 'shadow', routes: webSocketRoutes, revoked: { subjects: ['checkout'] } });
  await proxy.server.reauthorizeConnections();
  t.equal((await client.closed).code, 4401);
  const [again] = await sendRaw(proxy.port, handshake(`${soundFields}${proxy.bearer()}`), { untilClosed: true });
  t.equal(again?.status, 401);
});

t.test('a connection whose token has expired ends when its caller is revoked', async (t) => {
  const proxy = await startWebSocketProxy(t, { config: { mode: 'shadow', routes: webSocketRoutes } });
  const client = proxy.connect({ claims: { exp: 1 } });
  await client.opened;
  await echoes(client);
  proxy.reload({ mode: 'shadow', routes: webSocketRoutes, revoked: { subjects: ['checkout'] } });
  await proxy.server.reauthorizeConnections();
  t.same(await client.closed, { code: 4401, reason: 'unauthorized' });
});

t.test('in shadow mode no connection is closed for what would pass, and enforce closes it', async (t) => {
  let offsetMs = 0;
  const proxy = await startWebSocketProxy(t, {
    clock: { ...systemClock, now: () => Date.now() + offsetMs },
    config: { mode: 'shadow', routes: webSocketRoutes, upstream: {} },
  });
  const client = proxy.connect();
  await client.opened;
  proxy.reload({
    mode: 'shadow',
    routes: webSocketRoutes.map((each) => (each.name === 'live' ? { ...each, permissions: ['more'] } : each)),
  });
  await proxy.server.reauthorizeConnections();
  await echoes(client);
  const expiring = proxy.connect({ claims: { permissions: ['more'] } });
  await expiring.opened;
  offsetMs = 86_400_000;
  await proxy.server.reauthorizeConnections();
  await echoes(expiring);
  expiring.socket.close(1000);
  await until('what would have closed it is written down', () => proxy.records.length === 1);
  t.match(proxy.records, [{ decision: 'shadow', reason: 'token_expired', subject: 'checkout', status: 101 }]);
  t.same(proxy.counted.shadowDenials, [{ route: 'live', reason: 'token_expired' }]);
  proxy.reload({ routes: webSocketRoutes });
  await proxy.server.reauthorizeConnections();
  t.equal((await client.closed).code, 4401);
  await until('and of the other', () => proxy.counted.shadowDenials.length === 2);
  t.same(proxy.counted.shadowDenials[1], { route: 'live', reason: 'permission_missing' });
});

t.test('without keys an expired connection ends in shadow mode too: requests are 503 then', async (t) => {
  let offsetMs = 0;
  let isAway = false;
  const key = rsaKey();
  const proxy = await startWebSocketProxy(t, {
    clock: { ...systemClock, now: () => Date.now() + offsetMs },
    config: { mode: 'shadow', routes: webSocketRoutes, token_cache: null },
    find: (keyId) =>
      isAway ? { kind: 'unavailable' } : { kind: 'found', key: { keyId, algorithm: 'RS256', key: key.publicKey } },
  });
  const client = proxy.connect();
  await client.opened;
  isAway = true;
  await proxy.server.reauthorizeConnections();
  await echoes(client);
  offsetMs = 86_400_000;
  await proxy.server.reauthorizeConnections();
  t.equal((await client.closed).code, 4401);
});
