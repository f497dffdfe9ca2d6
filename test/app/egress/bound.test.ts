/** Tokens that are bound to a key of the calling side (DPoP): oidc-provider, and a Sallyport as the target. */
import t from 'tap';
import { WebSocket } from 'ws';
import { clientOf, startWebSocketUpstream } from '../../proxy/websocket/websocket-proxy.js';
import { until } from '../../support/until.js';
import { fetchesOf, startBoundPeers } from './bound-peers.js';
import { startCalling, startTarget } from './calling.js';

const { receiver, secretFile, nonceKeyFile, trusting, startAnswering, oauth } = await startBoundPeers(t);

t.test('a token that is bound to a key goes with a proof for each attempt', async (t) => {
  const origin = await startAnswering(t);
  const tokens = { own: oauth('key', { secret_file: secretFile }, { dpop: true }) };
  const { call, proxy } = await startCalling(t, origin, trusting, { tokens });
  for (const [method, path] of [
    ['GET', '/orders/v1'],
    ['GET', '/orders/v1?a=b&c'],
    ['POST', '/orders/caf%C3%A9'],
    ['POST', '/orders/~a'],
  ] as const) {
    const answer = await call(path, { method, headers: { DPoP: 'of.the.caller' } });
    t.equal(answer.status, 200, `${method} ${path}`);
  }
  t.equal(await fetchesOf(proxy, 'own'), 1);
  t.notMatch(JSON.stringify(receiver.requests), /of\.the\.caller/, 'the caller’s own proof goes nowhere');
});

t.test('a nonce that the target asks for is taken up once, and remembered', async (t) => {
  const origin = await startAnswering(t, { nonce_key_file: nonceKeyFile });
  const tokens = { own: oauth('key', { secret_file: secretFile }, { dpop: true }) };
  const { call, proxy } = await startCalling(t, origin, trusting, { tokens });
  const attempts: string[] = [];
  for (let i = 0; i < 3; i += 1) {
    const answer = await call('/orders/v1', { body: 'x'.repeat(1_000) });
    t.equal(answer.status, 200);
    attempts.push(answer.field('x-sallyport-attempts') ?? '');
  }
  t.same(attempts, ['2', '1', '1']);
  t.equal(await fetchesOf(proxy, 'own'), 1, 'the token is the same');
});

t.test('a target that asks for another nonce whatever it gets is not asked for ever', async (t) => {
  let count = 0;
  const target = await startTarget(t, (_seen, _number, res) => {
    count += 1;
    res.writeHead(401, { 'DPoP-Nonce': `nonce-${String(count)}`, 'WWW-Authenticate': 'DPoP error="use_dpop_nonce"' });
    res.end();
  });
  const tokens = { own: oauth('key', { secret_file: secretFile }, { dpop: true }) };
  const { call, proxy } = await startCalling(t, target.url, {}, { tokens });
  t.equal((await call('/orders/v1')).status, 401);
  t.equal(count, 3, 'once with the nonce, and once with another token');
  t.equal(await fetchesOf(proxy, 'own'), 2);
  const nonces = target.seen.map(({ headers }) => {
    const [, claims = ''] = String(headers['dpop']).split('.');
    return (JSON.parse(Buffer.from(claims, 'base64url').toString()) as { readonly nonce?: string }).nonce;
  });
  t.same(nonces, [undefined, 'nonce-1', 'nonce-2']);
  t.equal(new Set(target.seen.map(({ headers }) => headers['dpop'])).size, 3);
});

t.test('the handshake of a WebSocket has a proof, and is made once more for the nonce', async (t) => {
  const webSockets = await startWebSocketUpstream(t);
  const origin = await startAnswering(t, { nonce_key_file: nonceKeyFile }, webSockets.url);
  const tokens = { own: oauth('key', { secret_file: secretFile }, { dpop: true }) };
  const { port } = await startCalling(t, origin, { ...trusting, websocket: true }, { tokens });
  const attempts: string[] = [];
  for (const text of ['first', 'second']) {
    const { socket, opened, messages } = clientOf(t, new WebSocket(`ws://127.0.0.1:${String(port)}/orders/live`));
    socket.once('upgrade', ({ headers }) => attempts.push(String(headers['x-sallyport-attempts'])));
    await opened;
    socket.send(text);
    await until('it is echoed', () => messages.includes(text));
  }
  t.same(attempts, ['2', '1']);
  t.equal(webSockets.upgrades.length, 2, 'the service hears of each of them once');
});
