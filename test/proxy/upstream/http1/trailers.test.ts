/** Trailers of messages in chunks, in both directions. */
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import t from 'tap';
import { listen } from '../../../support/listening.js';
import { until } from '../../../support/until.js';
import { startRawUpstream } from '../raw-upstream.js';
import { startUpstream } from '../upstream-harness.js';

const answer =
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nETag:  "a" \r\nX-B: 1\r\nX-B: 2\r\n\r\n';

t.test('trailers of a response are told where the request asked for them, and the connection goes on', async (t) => {
  const upstream = await startRawUpstream(t, (socket) => socket.write(answer));
  const { send } = startUpstream(t, upstream.url, { reuse: 'always' });
  const cases = [
    { fields: ['Host', 'a', 'TE', 'trailers'], trailers: ['ETag', '"a"', 'X-B', '1', 'X-B', '2'] },
    { fields: ['Host', 'a'], trailers: null },
    { fields: ['Host', 'a', 'te', 'trailers'], trailers: ['ETag', '"a"', 'X-B', '1', 'X-B', '2'] },
  ];
  for (const { fields, trailers } of cases) {
    const heard = send({ headers: fields });
    await until('it ended', () => heard.ends() > 0);
    t.equal(heard.body().toString(), 'hello');
    t.same(heard.trailers(), trailers);
  }
  t.equal(upstream.connections(), 1);
  t.match(upstream.received()[0], /TE: trailers\r\nConnection: keep-alive, TE\r\n/);
});

t.test('trailers without end, and lines that are none, break the response', async (t) => {
  const start = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n';
  const bad = [
    `${`X-A: ${'a'.repeat(4_000)}\r\n`.repeat(20)}\r\n`,
    'X A: a\r\n\r\n',
    'X-A: a\x01\r\n\r\n',
    ' X-A: a\r\n\r\n',
  ];
  for (const section of bad) {
    const upstream = await startRawUpstream(t, (socket) => socket.write(start + section));
    const { ask } = startUpstream(t, upstream.url);
    t.equal(
      await ask({ headers: ['Host', 'a', 'TE', 'trailers'] }),
      'upstream_failed',
      JSON.stringify(section.slice(0, 20)),
    );
  }
});

t.test('any other TE is a mistake of ours: nothing is sent', async (t) => {
  const upstream = await startRawUpstream(t, (socket) => socket.write(answer));
  const { ask } = startUpstream(t, upstream.url);
  t.equal(await ask({ headers: ['Host', 'a', 'TE', 'gzip'] }), 'internal');
  t.equal(await ask({ headers: ['Host', 'a', 'TE', 'trailers', 'TE', 'trailers'] }), 'internal');
  t.equal(upstream.hits(), 0);
});

t.test('trailers of a request go out behind the last chunk, and never behind a counted body', async (t) => {
  const seen: unknown[] = [];
  const server = createServer((req, res) => {
    req.resume().on('end', () => {
      seen.push(req.rawTrailers);
      res.end('ok');
    });
  });
  const { port } = await listen(t, server);
  const { ask } = startUpstream(t, `http://127.0.0.1:${String(port)}`);
  const bodyWith = (trailers: readonly string[] | null): Readable =>
    Object.assign(Readable.from([Buffer.from('hello')]), { trailers: () => trailers });
  t.equal(await ask({ method: 'POST', body: bodyWith(['Content-Digest', 'x', 'X-A', '1']) }), '200 ok');
  t.equal(await ask({ method: 'POST', body: bodyWith(null) }), '200 ok');
  const counted = { method: 'POST', headers: ['Host', 'a', 'Content-Length', '5'], body: bodyWith(['X-A', '1']) };
  t.equal(await ask(counted), '200 ok');
  t.same(seen, [['Content-Digest', 'x', 'X-A', '1'], [], []]);
  t.equal(await ask({ method: 'POST', body: bodyWith(['X-A', 'a\r\nX-B: b']) }), 'upstream_failed');
  t.equal(seen.length, 3);
});
