/**
 * Holds Node to what of its servers is used beside their documented interface: the title begins with the symbol that is
 * gone where the test fails.
 */
import { once } from 'node:events';
import { createServer, type Server, type ServerOptions as HttpOptions } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { connect, createServer as createNetServer, Server as NetServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import {
  adoptConnection,
  connectionHandle,
  longestAcceptMs,
  namesAuthorities,
  stopAccepting,
  takeConnectionListener,
  watchForLateHeads,
} from '../../../src/proxy/node-internals/server.js';
import { startReading, stopReading } from '../../../src/proxy/node-internals/socket.js';
import { certificates } from '../../support/certificates.js';
import { listen } from '../../support/listening.js';
import { connectRaw, type RawConnection } from '../../support/raw-client.js';
import { until } from '../../support/until.js';

t.test(
  'net.Server.prototype.close: stops accepting, and leaves idle connections and the look for late heads as they are',
  async (t) => {
    const server = createServer({ connectionsCheckingInterval: 20, headersTimeout: 60_000 }, (_req, res) =>
      res.end('served'),
    );
    const { port } = await listen(t, server);
    const raw = await connectRaw(port);
    t.teardown(raw.end);
    raw.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    t.equal((await raw.readResponse())?.text, 'served');
    let isClosed = false;
    stopAccepting(server, 250, {
      onClosed: () => {
        isClosed = true;
      },
    });
    await until(
      'a new connection is refused',
      () =>
        new Promise((resolve) => {
          const late = connect(port, '127.0.0.1', () => {
            late.destroy();
            resolve(false);
          });
          late.once('error', () => resolve(true));
        }),
    );
    raw.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    t.equal((await raw.readResponse())?.text, 'served', 'an idle connection is not ended');
    server.headersTimeout = 50;
    raw.write('GET / HTTP/1.1\r\n');
    await raw.closed;
    await until('it is told of the last connection', () => isClosed);
  },
);

t.test(
  'listeners("connection"): the first one of a server is its parser, which can be given a connection later',
  async (t) => {
    const server = createServer((req, res) => res.end(req.url));
    const parse = takeConnectionListener(server, 'connection');
    server.on('connection', (socket: Socket) => {
      socket.once('data', (first: Buffer) => {
        parse(socket);
        socket.emit('data', first);
      });
    });
    const { port } = await listen(t, server);
    const raw = await connectRaw(port);
    t.teardown(raw.end);
    for (const target of ['/first', '/second']) {
      raw.write(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
      t.equal((await raw.readResponse())?.text, target);
    }
    t.throws(() =>
      takeConnectionListener(
        createServer().on('connection', () => undefined),
        'connection',
      ),
    );
  },
);

t.test(
  'listeners("connection"): of a server of TLS it begins TLS, also where the first bytes were put back',
  async (t) => {
    const files = certificates(t);
    const server = createTlsServer({ cert: files.server.cert, key: files.server.key }, (req, res) => res.end(req.url));
    const begin = takeConnectionListener(server, 'connection');
    server.on('connection', (socket: Socket) => {
      socket.once('data', (first: Buffer) => {
        socket.pause();
        stopReading(socket);
        socket.unshift(first);
        setTimeout(() => {
          begin(socket);
          startReading(socket);
        }, 20);
      });
    });
    const { port } = await listen(t, server);
    const raw = await connectRaw(port, { tls: { ca: files.ca.cert, servername: 'localhost' } });
    t.teardown(raw.end);
    raw.write('GET /first HTTP/1.1\r\nHost: a\r\n\r\n');
    t.equal((await raw.readResponse())?.text, '/first');
  },
);

/**
 * Opens connections, one after another in so many loops, until one is refused; counts those that were reset. It runs in
 * the thread of the server: there a handshake is complete when `connect` comes back. Of callers on another processor
 * one may stand in the middle of its handshake at the close.
 */
async function flood(port: number, callers: number, onBusy: () => void): Promise<number> {
  let [reset, served] = [0, 0];
  let isRefused = false;
  const call = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.on('connect', () => socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'));
      socket.on('data', () => {
        served += 1;
        if (served === 100) onBusy();
      });
      socket.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNRESET') reset += 1;
        else isRefused = true;
      });
      socket.on('close', () => {
        resolve();
      });
    });
  const loop = async (): Promise<void> => {
    while (!isRefused) {
      await call();
      await delay(Math.random() * 10);
    }
  };
  await Promise.all(Array.from({ length: callers }, loop));
  return reset;
}

/** How many connections are reset in each of so many rounds in which a server is closed like that under a flood. */
async function resetWhileClosing(t: Test, rounds: number, end: (server: Server) => void): Promise<number[]> {
  const reset: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const server = createServer((_req, res) => res.end('served'));
    const { port } = await listen(t, server);
    reset.push(
      await flood(port, 20, () => {
        end(server);
      }),
    );
  }
  return reset;
}

t.test(
  '_handle.listen and _handle.getpeername: of connections that come in the moment of the close none is reset',
  async (t) => {
    const reset = await resetWhileClosing(t, 12, (server) => {
      stopAccepting(server, 1_000, { onClosed: () => undefined });
    });
    t.same(reset, Array(12).fill(0));
    const resetOtherwise = await resetWhileClosing(t, 12, (server) => {
      NetServer.prototype.close.call(server);
    });
    t.ok(Math.max(...resetOtherwise) > 0, 'without it, some are');
  },
);

t.test('of connections that wait, none is reset where the server is slow to take each', async (t) => {
  const waiting = 30;
  const slowMs = 20;
  let taken = 0;
  const server = createNetServer((socket) => {
    const untilMs = performance.now() + slowMs;
    while (performance.now() < untilMs);
    taken += 1;
    socket.end();
  });
  const { port } = await listen(t, server);
  const ends = Array.from({ length: waiting }, async () => once(connect(port, '127.0.0.1').resume(), 'close'));
  // Connections are made in the next tick: the system has them all before one is accepted.
  process.nextTick(() => {
    stopAccepting(server, longestAcceptMs(25_000), { onClosed: () => undefined });
  });
  await Promise.all(ends);
  t.equal(taken, waiting);
});

t.test('server.ca and server[kSNICallback]: whose certificates a server verifies can be read', async (t) => {
  const { ca, server } = certificates(t);
  const pair = { cert: server.cert, key: server.key };
  const rows: readonly (readonly [name: string, options: ServerOptions, names: boolean])[] = [
    ['both', { ...pair, requestCert: true, ca: ca.cert }, true],
    ['no authority', { ...pair, requestCert: true }, false],
    ['no certificate', { ...pair, ca: ca.cert }, false],
    ['contexts by name', { ...pair, requestCert: true, ca: ca.cert, SNICallback: () => undefined }, false],
  ];
  for (const [name, options, names] of rows) t.equal(namesAuthorities(createTlsServer(options)), names, name);
  const added = createTlsServer({ ...pair, requestCert: true, ca: ca.cert });
  added.addContext('other', pair);
  t.notOk(namesAuthorities(added), 'a context that was added');
  t.notOk(namesAuthorities(createServer()), 'no TLS');
});

/** What a connection to `server`, which listens nowhere, is served through. */
interface Adopted {
  readonly raw: RawConnection;
  /** What its handle was told. */
  readonly told: readonly string[];
}

/** Accepts a connection elsewhere, and has `server` serve it. */
async function adopt(t: Test, server: Server): Promise<Adopted> {
  const acceptor = createNetServer({ pauseOnConnect: true, allowHalfOpen: true });
  const { port } = await listen(t, acceptor);
  const accepting = once(acceptor, 'connection') as Promise<[Socket]>;
  const raw = await connectRaw(port);
  t.teardown(raw.end);
  const [accepted] = await accepting;
  const handle = connectionHandle(accepted) as Record<string, (...given: unknown[]) => unknown> | null;
  if (handle === null) throw new Error('an open socket has no _handle');
  // Another process has one of its own; here there is only this one, and it is taken away from who accepted it.
  Object.assign(accepted, { _handle: null });
  t.equal(connectionHandle(accepted), null, 'a socket that is closed has none');
  accepted.destroy();
  const told: string[] = [];
  for (const name of ['setNoDelay', 'setKeepAlive']) {
    const method = handle[name];
    t.type(method, 'function', `_handle.${name}`);
    handle[name] = (...given) => {
      told.push(`${name} ${given.map(String).join(' ')}`);
      return method?.apply(handle, given);
    };
  }
  adoptConnection(server, handle);
  return { raw, told };
}

const usual: HttpOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 7_000 };

function answering(options: HttpOptions): Server {
  return createServer(options, (req, res) => res.end(req.url));
}

t.test(
  '_handle, server.noDelay, .keepAlive and .keepAliveInitialDelay: a connection can be given to a server',
  async (t) => {
    const { raw, told } = await adopt(t, answering(usual));
    raw.write('GET /here HTTP/1.1\r\nHost: a\r\n\r\n');
    t.equal((await raw.readResponse())?.text, '/here');
    t.same(told, ['setNoDelay true', 'setKeepAlive true 7'], 'with the options of its sockets');
    const plain = await adopt(t, answering({ noDelay: false }));
    t.same(plain.told, [], 'which may be off');
  },
);

t.test(
  'server._connections, socket.server and socket._server: what is given is counted, and counted off',
  async (t) => {
    const own = answering(usual);
    const { port } = await listen(t, own);
    const accepting = once(own, 'connection') as Promise<[Socket]>;
    const other = await connectRaw(port);
    t.teardown(other.end);
    const [accepted] = await accepting;
    t.match(accepted, { server: own, _server: own }, 'Node sets both of what it accepts');

    const server = answering(usual);
    const count = async (): Promise<number> =>
      new Promise((resolve) => server.getConnections((_error, open) => resolve(open)));
    const [first, second] = [await adopt(t, server), await adopt(t, server)];
    t.equal(await count(), 2);
    server.maxConnections = 2;
    let dropped = 0;
    server.on('drop', () => {
      dropped += 1;
    });
    const third = await adopt(t, server);
    await third.raw.closed;
    t.equal(await count(), 2, 'one too many is closed');
    t.equal(dropped, 1, 'and told of');
    let isClosed = false;
    stopAccepting(server, 250, {
      onClosed: () => {
        isClosed = true;
      },
    });
    first.raw.end();
    await until('the first is counted off', async () => (await count()) === 1);
    t.notOk(isClosed);
    second.raw.end();
    await until('the server is closed with the last', () => isClosed);
  },
);

t.test('server.allowHalfOpen: what is given has it as what is accepted: not over TLS', async (t) => {
  const { server: files } = certificates(t);
  const cases: readonly (readonly [Server, boolean])[] = [
    [answering({}), true],
    [createTlsServer({ cert: files.cert, key: files.key }), false],
  ];
  for (const [server, allowHalfOpen] of cases) {
    const giving = once(server, 'connection') as Promise<[Socket]>;
    const { raw } = await adopt(t, server);
    const [given] = await giving;
    t.equal(given.allowHalfOpen, allowHalfOpen);
    const { port } = await listen(t, server);
    const accepting = once(server, 'connection') as Promise<[Socket]>;
    const other = await connectRaw(port);
    t.teardown(other.end);
    const [accepted] = await accepting;
    t.equal(accepted.allowHalfOpen, allowHalfOpen, 'so has Node');
    raw.end();
    await raw.closed;
  }
});

t.test("emit('listening'): a server that listens nowhere looks for heads that take too long", async (t) => {
  const server = answering({ connectionsCheckingInterval: 20, headersTimeout: 50 });
  watchForLateHeads(server);
  const { raw } = await adopt(t, server);
  raw.write('GET / HTTP/1.1\r\n');
  await raw.closed;
  server.close();
});
