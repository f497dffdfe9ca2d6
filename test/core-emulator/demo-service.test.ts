import t from 'tap';
import { startDemoUpstream } from '../../src/core-emulator/demo-service.js';
import type { Scope } from '../support/scope.js';
import { sendRaw } from '../support/raw-client.js';

async function start(t: Scope): Promise<number> {
  const receiver = await startDemoUpstream('127.0.0.1', 0);
  t.teardown(() => receiver.close());
  return Number(new URL(receiver.url).port);
}

t.test('the demo receiving service says what it received', async (t) => {
  const port = await start(t);
  const [answer] = await sendRaw(
    port,
    [
      'POST /orders/1?x=%20y HTTP/1.1',
      'Host: demo',
      'X-Auth-Subject: checkout',
      'X-Many: 1',
      'x-many: 2',
      'Content-Length: 7',
      'Connection: close',
      '',
      '{"a":1}',
    ].join('\r\n'),
  );
  t.equal(answer?.status, 200);
  t.same(JSON.parse(String(answer?.body)), {
    method: 'POST',
    path: '/orders/1?x=%20y',
    headers: {
      host: 'demo',
      'x-auth-subject': 'checkout',
      'x-many': ['1', '2'],
      'content-length': '7',
      connection: 'close',
    },
    body: '{"a":1}',
  });
});

t.test('an empty body is an empty string', async (t) => {
  const port = await start(t);
  const response = await fetch(`http://127.0.0.1:${String(port)}/`);
  t.match(await response.json(), { method: 'GET', path: '/', body: '' });
});

t.test('a header called __proto__ is a header', async (t) => {
  const port = await start(t);
  const [answer] = await sendRaw(port, 'GET / HTTP/1.1\r\nHost: demo\r\n__proto__: x\r\nConnection: close\r\n\r\n');
  t.match(String(answer?.body), /"__proto__":"x"/);
});

t.test('a body of more than 1 MiB is refused', async (t) => {
  const port = await start(t);
  const response = await fetch(`http://127.0.0.1:${String(port)}/`, {
    method: 'POST',
    body: 'x'.repeat(1024 * 1024 + 1),
  });
  t.equal(response.status, 413);
});
