/** Holds Node to what of its insides is used: a release without it shall fail here, and not let a flood in. */
import { createServer, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import t from 'tap';
import { mayParse, stopParser, stopParserAtBody } from '../../../src/proxy/node-internals/parser.js';
import { listen } from '../../support/listening.js';
import { until } from '../../support/until.js';

t.test('socket.parser.onIncoming: what it answers with 2 is the last head of a read that is parsed', async (t) => {
  const seen: string[] = [];
  const server = createServer((req: IncomingMessage, res) => {
    seen.push(req.url ?? '');
    if (req.url === '/2') stopParser(req.socket);
    res.end();
  });
  const { port } = await listen(t, server);
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.resume().write(['/1', '/2', '/3', '/4'].map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''));
  await until('those before are served', () => seen.length >= 2);
  socket.write('GET /5 HTTP/1.1\r\nHost: a\r\n\r\n');
  await new Promise((resolve) => setImmediate(resolve));
  const other = connect(port, '127.0.0.1');
  t.teardown(() => other.destroy());
  other.write('GET /other HTTP/1.1\r\nHost: a\r\n\r\n');
  await until('the parser of another connection is as it was', () => seen.includes('/other'));
  t.same(seen, ['/1', '/2', '/other']);
});

t.test('socket.parser.onIncoming: of a body nothing is parsed, nor what follows it', async (t) => {
  for (const body of [
    'Content-Length: 3\r\n\r\nabc',
    'Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n',
  ]) {
    const seen: string[] = [];
    const server = createServer((req: IncomingMessage, res) => {
      seen.push(req.url ?? '');
      req.on('data', () => seen.push('a piece'));
      res.end();
    });
    server.on('connection', stopParserAtBody);
    const { port } = await listen(t, server);
    const socket = connect(port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    const head = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n`;
    socket.resume().write(`${head('/1')}\r\n${head('/2')}${body}${head('/3')}\r\n`);
    await until('those before are served', () => seen.length >= 2);
    const other = connect(port, '127.0.0.1');
    t.teardown(() => other.destroy());
    other.write(`${head('/other')}\r\n`);
    await until('another connection is served', () => seen.includes('/other'));
    t.same(seen, ['/1', '/2', '/other'], body);
  }
});

t.test('socket._paused: whether Node waits for its responses to be taken', async (t) => {
  const found: boolean[] = [];
  const server = createServer((req, res) => {
    found.push(mayParse(req.socket));
    res.end(Buffer.alloc(1024 * 1024));
  });
  const { port } = await listen(t, server);
  const socket = connect(port, '127.0.0.1').pause();
  t.teardown(() => socket.destroy());
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3));
  await until('it was asked', () => found.length >= 2);
  t.same(found.slice(0, 2), [true, false]);
});

t.test('a connection that speaks another protocol has no parser, and nothing is done to it', (t) => {
  const socket = connect({ port: 1, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  t.doesNotThrow(() => stopParser(socket));
  t.doesNotThrow(() => stopParserAtBody(socket));
  t.ok(mayParse(socket));
  socket.destroy();
  t.end();
});
