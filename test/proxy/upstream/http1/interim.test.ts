import t from 'tap';
import { request, sendRaw } from '../../../support/raw-client.js';
import { startProxy } from '../../harness.js';
import { okResponse, startRawUpstream } from '../raw-upstream.js';
import { rest } from '../upstream-harness.js';

const final = okResponse('final');
const interim = 'HTTP/1.1 100 Continue\r\n\r\n';

t.test('interim responses of the upstream end here, 100 among them', async (t) => {
  const cases: readonly { readonly name: string; readonly writes: readonly string[] }[] = [
    { name: '100', writes: [interim + final] },
    { name: '100 alone, then the answer', writes: [interim, final] },
    { name: '100 byte by byte', writes: Array.from(interim).concat(final) },
    { name: 'two of 100', writes: [interim + interim + final] },
    { name: 'two of 100, apart', writes: [interim, interim, final] },
    { name: '100 with fields', writes: ['HTTP/1.1 100 Continue\r\nX-A: b\r\nX-C: HTTP/1.1 100\r\n\r\n', final] },
    { name: '102', writes: ['HTTP/1.1 102 Processing\r\n\r\n', final] },
    { name: '103', writes: ['HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', final] },
    {
      name: '103, 100, 102',
      writes: ['HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', interim, 'HTTP/1.1 102 Processing\r\n\r\n', final],
    },
    { name: 'a body that looks like one', writes: [okResponse(interim)] },
    {
      name: 'a body of chunks that look like one',
      writes: ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', `19\r\n${interim}\r\n0\r\n\r\n`],
    },
    {
      name: 'a body in pieces, each of which begins like one',
      writes: ['HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n', interim, interim],
    },
  ];
  let writes: readonly string[] = [];
  const upstream = await startRawUpstream(t, (socket) => {
    const [first = '', ...rest] = writes;
    socket.write(first);
    for (const [index, bytes] of rest.entries()) setTimeout(() => socket.write(bytes), 5 * (index + 1));
  });
  const proxy = await startProxy(t, { upstreamUrl: upstream.url });
  for (const { name, writes: bytes } of cases) {
    writes = bytes;
    for (const round of ['first', 'on the same connection']) {
      const responses = await sendRaw(proxy.port, `GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
      t.same(
        responses.map(({ status }) => status),
        [200],
        `${name}, ${round}`,
      );
      const expected = name.includes('body') ? /^(HTTP\/1\.1 100 Continue\r\n\r\n)+$/ : /^final$/;
      t.match(responses[0]?.text, expected, `${name}: the bytes of the body`);
      t.equal(responses[0]?.field('link'), null);
      await rest();
    }
  }
  t.equal(upstream.connections(), 1, 'and the connection is kept');
  t.equal(upstream.hits(), 2 * cases.length);
});

t.test('an upstream that switches protocols unasked has failed', async (t) => {
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  const proxy = await startProxy(t, { upstreamUrl: upstream.url });
  const response = await request(proxy.port, { path: '/orders', headers: proxy.authorization() });
  t.equal(response.status, 502);
  t.equal(response.field('upgrade'), null);
  t.equal(upstream.hits(), 1);
});
