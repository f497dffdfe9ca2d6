/** Requests of which nobody knows yet whether a body follows: each holds its head, and counts nowhere else. */
import t, { type Test } from 'tap';
import { maxOpenRequests } from '../../../../src/proxy/inbound/http2/stream-places.js';
import {
  connectFrames,
  flags,
  frame,
  frameTypes,
  headers,
  uint32,
  type FrameClient,
} from '../../../support/http2-frames.js';
import { until } from '../../../support/until.js';
import { startProxy, type Harness } from '../../harness.js';

const refusedStream = 7;
/** Streams of one connection. */
const most = 90;

/** Of the connections that there may be by default. */
const maxOpenHeads = maxOpenRequests(3_072);

const fieldsOf = (proxy: Harness): readonly string[] => [
  ...[':method', 'GET', ':scheme', 'http', ':path', '/orders', ':authority', 'a'],
  ...['authorization', proxy.authorization().Authorization],
];

const refusals = ({ frames }: FrameClient): number =>
  frames.filter(({ type, payload }) => type === frameTypes.reset && payload.readUInt32BE(0) === refusedStream).length;

/** Opens as many streams as there may be on so many connections, and ends none of them. */
async function openHeads(t: Test, proxy: Harness, connections: number): Promise<readonly FrameClient[]> {
  const clients: FrameClient[] = [];
  for (let i = 0; i < connections; i += 1) {
    const client = await connectFrames(t, proxy.port);
    for (let stream = 1; stream < 2 * most; stream += 2) client.write(headers(stream, fieldsOf(proxy), false));
    clients.push(client);
  }
  return clients;
}

t.test('beyond so many of all callers, one of the network that has most is refused unseen', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { http2: true } } });
  const clients = await openHeads(t, proxy, 4);
  const refused = (): number => clients.reduce((sum, client) => sum + refusals(client), 0);
  await until('those beyond are refused', () => refused() === 4 * most - maxOpenHeads);
  t.equal(proxy.server.counts().streams, maxOpenHeads);

  const other = await connectFrames(t, proxy.port, [], '127.0.0.2');
  other.write(headers(1, fieldsOf(proxy), false));
  await until('one gives way', () => refused() === 4 * most - maxOpenHeads + 1);
  other.write(frame(frameTypes.data, flags.endStream, 1));
  const { payload } = await other.next('an answer', ({ type, stream }) => type === frameTypes.headers && stream === 1);
  t.equal(payload[0], 0x88, '200');
  t.equal(proxy.receiver.requests.length, 1);

  for (const client of clients) client.socket.destroy();
  await until('every place is given back', () => proxy.server.counts().streams === 0, 8_000);
});

t.test('a place is given back with the end, with a body, with a reset, and with the connection', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { http2: true } } });
  for (const [how, ending] of [
    ['an end', (stream: number) => frame(frameTypes.data, flags.endStream, stream)],
    ['a body', (stream: number) => frame(frameTypes.data, flags.endStream, stream, Buffer.from('a'))],
    ['a reset', (stream: number) => frame(frameTypes.reset, 0, stream, uint32(8))],
    ['the connection', null],
  ] as const) {
    const clients = await openHeads(t, proxy, 2);
    await until(`${how}: all wait`, () => proxy.server.counts().streams === 2 * most);
    for (const { socket, write } of clients) {
      if (ending === null) socket.destroy();
      else for (let stream = 1; stream < 2 * most; stream += 2) write(ending(stream));
    }
    await until(`${how}: none waits`, () => proxy.server.counts().streams === 0, 8_000);
    t.same(clients.map(refusals), [0, 0], how);
  }
  // Were one of those before still counted, these would not all find a place.
  const clients = await openHeads(t, proxy, 2);
  await until('all wait', () => proxy.server.counts().streams === 2 * most);
  t.same(clients.map(refusals), [0, 0]);
});
