import t from 'tap';
import { WebSocket } from 'ws';
import { until } from '../../support/until.js';
import { echo, startEchoProxy } from './echo.js';
import { clientOf, type Client } from './websocket-proxy.js';

const gib = 1024 ** 3;

t.test('an echo of 1 GiB in bounded memory', async (t) => {
  const proxy = await startEchoProxy(t);
  const { bytes, beforeMiB, peakMiB } = await echo(t, proxy, gib, 1024 * 1024);
  t.equal(bytes, gib);
  t.comment(`${Math.round(beforeMiB)} MiB before, ${Math.round(peakMiB)} MiB at most`);
  t.ok(peakMiB - beforeMiB < 128, `${peakMiB - beforeMiB} MiB more`);
});

t.test('1,000 connections at once', async (t) => {
  const { proxy, webSockets, residentMiB } = await startEchoProxy(t);
  const before = residentMiB();
  const clients: Client[] = [];
  for (let i = 0; i < 1_000; i++) {
    const client = clientOf(
      t,
      new WebSocket(`ws://127.0.0.1:${proxy.port}/live`, { headers: proxy.authorization(), perMessageDeflate: false }),
    );
    clients.push(client);
    if (i % 50 === 49) await client.opened;
  }
  await Promise.all(clients.map(async ({ opened }) => opened));
  t.equal(await proxy.metric('sallyport_websockets_open'), 1_000);
  t.comment(`${Math.round(residentMiB() - before)} MiB for 1,000 connections`);
  for (const { socket } of clients) socket.send('hello');
  await until('all echoes', () => clients.every(({ messages }) => messages.length === 1), 60_000);
  const plain = await proxy.request({ path: '/orders', headers: proxy.authorization() });
  t.equal(plain.status, 404, 'requests are served beside them');
  const ended = proxy.stop();
  const codes = await Promise.all(clients.map(async ({ closed }) => (await closed).code));
  t.ok(
    codes.every((code) => code === 1001),
    'all are told',
  );
  t.match(await ended, { code: 0 });
  t.equal(webSockets.open(), 0);
});
