/** WebSockets of the calling side: what a 101 says, and which handshakes are made again. */
import { writeFileSync } from 'node:fs';
import t from 'tap';
import { connectRaw, type RawResponse } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { ok, startCalling, startTarget } from './calling.js';

t.test('a 101 says what was done here, and nothing of the kind that the target says', async (t) => {
  const target = await startTarget(t, ok);
  target.server.on('upgrade', (_req, socket) => {
    socket.on('error', () => undefined);
    socket.write(
      [
        'HTTP/1.1 101 Switching Protocols',
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=',
        'X-Sallyport-Attempts: 9',
        'X-Sallyport-Not-Retried: budget',
        'X-Sallyport-Idempotency-Key: forged',
        'X-Own: kept',
        '\r\n',
      ].join('\r\n'),
    );
  });
  const { port } = await startCalling(t, target.url, { websocket: true });
  const response = await open(t, port);
  t.equal(response?.status, 101);
  t.equal(response?.field('x-own'), 'kept');
  t.equal(response?.field('x-sallyport-attempts'), '1');
  t.equal(response?.field('x-sallyport-not-retried'), null);
  t.equal(response?.field('x-sallyport-idempotency-key'), null);
});

t.test('a handshake that is refused for its token is made once more with another; nothing else is', async (t) => {
  const target = await startTarget(t, ok);
  const asked: string[] = [];
  let refusal = '401 Unauthorized';
  target.server.on('upgrade', ({ headers }, socket) => {
    socket.on('error', () => undefined);
    asked.push(headers.authorization ?? '');
    const isTaken = headers.authorization === 'Bearer token.two.x' && refusal.startsWith('401');
    const fields = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=';
    socket.write(
      isTaken
        ? `HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n\r\n`
        : `HTTP/1.1 ${refusal}\r\nContent-Length: 2\r\nRetry-After: 0\r\n\r\nno`,
    );
  });
  const { port, tokenFile } = await startCalling(t, target.url, { websocket: true });
  t.equal((await open(t, port))?.status, 401, 'there is no other token');
  t.same(asked.splice(0), ['Bearer token.one.x']);
  writeFileSync(tokenFile, 'token.two.x');
  const opened = await open(t, port);
  t.equal(opened?.status, 101);
  t.equal(opened?.field('x-sallyport-attempts'), '2');
  t.same(asked.splice(0), ['Bearer token.one.x', 'Bearer token.two.x']);
  for (refusal of ['429 Too Many Requests', '502 Bad Gateway', '503 Service Unavailable']) {
    const refused = await open(t, port);
    t.equal(refused?.status, Number(refusal.slice(0, 3)));
    t.equal(refused?.text, 'no');
    t.equal(refused?.field('x-sallyport-attempts'), '1', refusal);
    t.equal(refused?.field('x-sallyport-not-retried'), null);
  }
});

/** Asks for a WebSocket, and returns what it is answered. */
async function open(t: Scope, port: number): Promise<RawResponse | null> {
  const connection = await connectRaw(port);
  t.teardown(connection.end);
  connection.write(
    [
      'GET /orders/live HTTP/1.1',
      'Host: localhost',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      '\r\n',
    ].join('\r\n'),
  );
  return connection.readResponse();
}
