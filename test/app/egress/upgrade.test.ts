/** WebSockets of the calling side: what a 101 says. */
import t from 'tap';
import { connectRaw } from '../../support/raw-client.js';
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
  const response = await connection.readResponse();
  t.equal(response?.status, 101);
  t.equal(response?.field('x-own'), 'kept');
  t.equal(response?.field('x-sallyport-attempts'), '1');
  t.equal(response?.field('x-sallyport-not-retried'), null);
  t.equal(response?.field('x-sallyport-idempotency-key'), null);
});
