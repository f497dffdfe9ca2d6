/**
 * Holds Node to what of its sockets is used beside their documented interface: each title begins with the symbol that
 * is gone where its test fails.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { connect as connectHttp2, performServerHandshake, type ServerHttp2Session } from 'node:http2';
import { connect, createServer as createTcpServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import t, { type Test } from 'tap';
import {
  holdResume,
  isReading,
  keepPaused,
  onDestroySoon,
  onPushedEnd,
  readInPlaceOfParser,
  sentBytes,
  socketBelow,
  startReading,
  stopReading,
  wakeStream,
  wasReset,
} from '../../../src/proxy/node-internals/socket.js';
import { certificates } from '../../support/certificates.js';
import { listen } from '../../support/listening.js';
import { until } from '../../support/until.js';

const head = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

/** Opens a connection to a server, and sends it these bytes. */
async function ask(t: Test, serve: RequestListener, bytes: string): Promise<Socket> {
  const { port } = await listen(t, createServer(serve));
  const client = connect(port, '127.0.0.1');
  t.teardown(() => client.destroy());
  client
    .on('error', () => undefined)
    .resume()
    .write(bytes);
  return client;
}

t.test('pause: Node’s HTTP server stops reading by it, also where the stream is paused already', async (t) => {
  let socket: Socket | null = null;
  await ask(
    t,
    (req) => {
      socket = req.socket;
      keepPaused(req.socket);
    },
    head,
  );
  const served = await until('it is served', () => socket);
  served.pause();
  t.equal(isReading(served), false);
  // Read from all the same, while the stream stays paused.
  served.emit('resume');
  t.same([served.isPaused(), isReading(served)], [true, true]);
  served.pause();
  t.equal(isReading(served), false, 'told once more');
  served.resume();
  await until('it is read from', () => isReading(served));
});

t.test('socket.destroySoon: Node calls it after the last response of a connection', async (t) => {
  let asked = 0;
  let takesOver = true;
  let socket: Socket | null = null;
  const client = await ask(
    t,
    (req, res) => {
      socket = req.socket;
      onDestroySoon(req.socket, () => {
        asked += 1;
        return takesOver;
      });
      res.setHeader('connection', 'close').end();
    },
    head,
  );
  await until('Node wants to end the connection', () => asked === 1);
  t.notOk(client.closed, 'and does not, where that was taken over');
  takesOver = false;
  (socket as Socket | null)?.destroySoon();
  await until('the connection is closed', () => client.closed);
});

t.test(
  'socket.resume: Node calls it where a body is wanted, and reads nothing while the connection is held',
  async (t) => {
    let asked = 0;
    let isHeld = true;
    let received = '';
    let goOn = (): unknown => undefined;
    const client = await ask(
      t,
      (req) => {
        req.socket.pause();
        goOn = holdResume(req.socket, () => {
          asked += 1;
          return isHeld;
        });
        req.on('data', (bytes: Buffer) => {
          received += bytes.toString();
        });
      },
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n',
    );
    await until('Node wants to read on', () => asked > 0);
    client.write('0123456789');
    await new Promise((resolve) => setTimeout(resolve, 50));
    t.equal(received, '');
    isHeld = false;
    goOn();
    await until('the body is read', () => received === '0123456789');
  },
);

t.test(
  "socket.removeAllListeners('data'): a listener in the place of Node's parser gets the bytes, and the parser none",
  async (t) => {
    const requests: IncomingMessage[] = [];
    let received = '';
    const client = await ask(
      t,
      (req, res) => {
        requests.push(req);
        res.end();
        req.socket.pause();
        setImmediate(() => {
          readInPlaceOfParser(req.socket, (bytes) => {
            received += bytes.toString();
          });
          req.socket.resume();
        });
      },
      head,
    );
    await until('a request is served', () => requests.length === 1);
    await new Promise((resolve) => setImmediate(resolve));
    client.write(`${head}${head}`);
    await until('the bytes are read', () => received === `${head}${head}`);
    t.equal(requests.length, 1);
  },
);

t.test(
  "socket.push(''): a stream that Node stopped reading before it gave the connection up to another protocol reads on",
  async (t) => {
    let received = '';
    let isTaken = false;
    const server = createServer((req) => {
      req.socket.pause();
    });
    server.on('upgrade', (_req, socket: Socket) => {
      setImmediate(() => {
        socket.on('data', (bytes: Buffer) => {
          received += bytes.toString();
        });
        wakeStream(socket);
        socket.resume();
        isTaken = true;
      });
    });
    const { port } = await listen(t, server);
    const client = connect(port, '127.0.0.1');
    t.teardown(() => client.destroy());
    client.write(`${head}GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    await until('it is taken over', () => isTaken);
    client.write('more');
    await until('the bytes are read', () => received === 'more');
  },
);

t.test('socket.push(null): a TLS connection pushes its end once, before TCP below it has ended', async (t) => {
  const {
    ca,
    server: { cert, key },
  } = certificates(t);
  const server = createTlsServer({ cert, key }, (socket) => {
    socket.on('error', () => undefined).end('bye');
  });
  const { port } = await listen(t, server);
  const client = connectTls({ host: '127.0.0.1', port, servername: 'localhost', ca: ca.cert });
  t.teardown(() => client.destroy());
  const told: string[] = [];
  onPushedEnd(client, () => told.push('pushed'));
  client.on('end', () => told.push('end')).resume();
  await until('the end', () => told.includes('end'));
  t.same(told, ['pushed', 'end']);
});

t.test('tls._parent: the connection that TLS was begun on', async (t) => {
  const {
    ca,
    server: { cert, key },
  } = certificates(t);
  const accepted: Socket[] = [];
  const below: Socket[] = [];
  const server = createTlsServer({ cert, key }, (socket) => below.push(socketBelow(socket)));
  server.prependListener('connection', (socket: Socket) => accepted.push(socket));
  const { port } = await listen(t, server);
  for (let i = 0; i < 2; i++) {
    const client = connectTls({ host: '127.0.0.1', port, servername: 'localhost', ca: ca.cert });
    t.teardown(() => client.destroy());
    await until('TLS began', () => below.length === i + 1);
    t.equal(below[i], accepted[i]);
    accepted[i]?.destroy();
    await until('it is closed', () => accepted[i]?.closed === true);
  }
});

t.test('_handle.bytesWritten, _handle.writeQueueSize: what the other side has taken, over TLS too', async (t) => {
  const {
    ca,
    server: { cert, key },
  } = certificates(t);
  const size = 32 * 1024 * 1024;
  for (const isTls of [false, true]) {
    const opened: Socket[] = [];
    const serve = (socket: Socket): unknown => opened.push(socket.on('error', () => undefined));
    const server = isTls ? createTlsServer({ cert, key }, serve) : createTcpServer(serve);
    const { port } = await listen(t, server);
    const client = isTls
      ? connectTls({ host: '127.0.0.1', port, servername: 'localhost', ca: ca.cert })
      : connect(port, '127.0.0.1');
    t.teardown(() => client.destroy());
    client.pause();
    const socket = await until('it is open', () => opened[0]);
    let isWritten = false;
    socket.write(Buffer.alloc(size), () => (isWritten = true));
    await until('some was taken', () => sentBytes(socket) > 0);
    t.ok(sentBytes(socket) < size / 2, 'not what waits');
    let taken = 0;
    client.on('data', (piece: Buffer) => {
      taken += piece.length;
      if (taken > size / 2 && !isHalf) client.pause();
    });
    let isHalf = false;
    client.resume();
    await until('half is taken', () => taken > size / 2);
    const half = sentBytes(socket);
    t.ok(half > size / 2 && half < size, `half of it: ${String(half)}`);
    isHalf = true;
    client.resume();
    await until('all is taken', () => isWritten && taken === size);
    t.ok(sentBytes(socket) >= size);
    socket.destroy();
    t.equal(sentBytes(socket), 0, 'it is closed');
  }
});

t.test('_handle.readStop, _handle.readStart: what HTTP/2 reads past the stream waits', async (t) => {
  const accepted: { readonly socket: Socket; readonly session: ServerHttp2Session }[] = [];
  const server = createTcpServer((socket) => {
    const session = performServerHandshake(socket);
    session.on('error', () => undefined).on('stream', (stream) => stream.respond({}, { endStream: true }));
    accepted.push({ socket, session });
  });
  const { port } = await listen(t, server);
  const client = connectHttp2(`http://127.0.0.1:${String(port)}`).on('error', () => undefined);
  t.teardown(() => client.destroy());
  const pings: number[] = [];
  const ping = (): void => void client.ping(() => pings.push(1));
  await until('they speak', () => accepted[0]?.session.remoteSettings.headerTableSize !== undefined);
  ping();
  await until('it reads', () => pings.length === 1);
  const [{ socket } = { socket: null }] = accepted;
  if (socket === null) throw new Error('nobody came');
  stopReading(socket);
  const { bytesRead } = socket;
  ping();
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.equal(socket.bytesRead, bytesRead, 'nothing is read');
  startReading(socket);
  await until('it reads on', () => pings.length === 2);
  socket.destroy();
  await until('it is closed', () => socket.closed);
  t.doesNotThrow(() => {
    stopReading(socket);
    startReading(socket);
  });
});

t.test('_handle.reading: whether the parser wants what comes, also while nothing is read', async (t) => {
  let served: Socket | null = null;
  const client = await ask(t, (req, res) => ((served = req.socket), res.end()), head);
  await until('it is served', () => served !== null);
  const socket = served as Socket | null;
  if (socket === null) return;
  stopReading(socket);
  t.equal(isReading(socket), true);
  startReading(socket);
  socket.pause();
  t.equal(isReading(socket), false);
  socket.resume();
  await until('the parser reads on', () => isReading(socket));
  client.destroy();
  await until('it is closed', () => socket.closed);
  t.equal(isReading(socket), false);
});

t.test('_handle.getpeername, _handle.fd: after an end the system says whether it was a reset', async (t) => {
  const endings: readonly (readonly [string, (socket: Socket) => void, boolean])[] = [
    ['end', (socket) => socket.end(), false],
    ['reset', (socket) => socket.resetAndDestroy(), true],
    ['end and reset', (socket) => socket.end(() => setTimeout(() => socket.resetAndDestroy(), 30)), false],
  ];
  for (const [how, end, expected] of endings) {
    const { port } = await listen(
      t,
      createTcpServer({ allowHalfOpen: true }, (socket) => {
        socket.on('error', () => undefined);
        socket.once('data', () => socket.write('all', () => end(socket)));
      }),
    );
    const client = connect(port, '127.0.0.1');
    t.teardown(() => client.destroy());
    const told: (string | boolean)[] = [];
    client
      .on('data', () => undefined)
      .on('error', () => told.push('error'))
      .on('end', () => told.push(wasReset(client)))
      .write('ask');
    await once(client, 'connect');
    stopReading(client);
    // By then all of it has come.
    await delay(150);
    startReading(client);
    await until('it is over', () => told.length > 0);
    // libuv 1.52 (Node.js 24) tells a reset as one.
    t.ok(told[0] === expected || (expected && told[0] === 'error'), `${how}: ${String(told[0])}`);
  }
});
