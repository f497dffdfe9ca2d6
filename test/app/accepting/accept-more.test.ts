/** Further handles of a listener's socket, which another process makes. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { acceptMore, acceptsPerTurn } from '../../../src/app/accepting/accept-more.js';
import { duplicateHandles } from '../../../src/app/accepting/socket-duplicates.js';
import { acceptBeside, listeningHandle, stopAccepting } from '../../../src/proxy/node-internals/server.js';
import { silentLog, type Log } from '../../../src/ports/system.js';
import { collectGarbage } from '../../support/garbage.js';
import { childrenOf } from '../../support/linux.js';
import { listen } from '../../support/listening.js';
import { startProxyProcess } from '../../support/proxy-process.js';
import { connectRaw } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { projectDir } from '../../support/project-dir.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';

t.setTimeout(120_000);

const main = join(projectDir, 'dist/main.js');

/** Descriptors of a process for the socket that listens on a port of IPv4: inode and state of `/proc/net/tcp`. */
function listeningDescriptors(pid: number | 'self', port: number): number {
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  const row = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .find(([, local, , state]) => state === '0A' && local?.endsWith(`:${hexPort}`) === true);
  if (row === undefined) return 0;
  const folder = `/proc/${String(pid)}/fd`;
  return readdirSync(folder).filter((fd) => linkOf(join(folder, fd)) === `socket:[${row[9] ?? ''}]`).length;
}

/** It may be closed meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** A program for the helper's process. */
function program(t: Scope, source: string): string {
  const file = join(tempDir(t), 'helper.mjs');
  writeFileSync(file, source);
  return file;
}

function handleOf(server: Server): object {
  const handle = listeningHandle(server);
  if (handle === null) throw new Error('it does not listen');
  return handle;
}

async function isRefused(port: number): Promise<boolean> {
  return connectRaw(port).then(
    ({ end }) => {
      end();
      return false;
    },
    () => true,
  );
}

/** Later tests look at the processes that there are. */
function endAtTeardown(t: Scope, child: ChildProcess): void {
  t.teardown(async () => {
    const exited = once(child, 'exit');
    if (child.kill('SIGKILL')) await exited;
  });
}

/** Connections at once of another process; it ends with its channel. */
async function connectFrom(t: Scope, port: number, count: number): Promise<void> {
  const child = fork(
    program(
      t,
      `import { connect } from 'node:net';
      let open = 0;
      for (let i = 0; i < ${String(count)}; i++) connect(${String(port)}, '127.0.0.1', () => { if (++open === ${String(count)}) process.send('open'); });`,
    ),
    { execArgv: [] },
  );
  endAtTeardown(t, child);
  await once(child, 'message');
}

/** How many connections each turn of the event loop brings, of those that wait for the first one. */
async function acceptedByTurn(t: Scope, server: Server, waiting: number): Promise<readonly number[]> {
  const { port } = server.address() as AddressInfo;
  const turns: number[] = [];
  let inTurn = 0;
  server.on('connection', () => {
    if (inTurn === 0) {
      setImmediate(() => {
        turns.push(inTurn);
        inTurn = 0;
      });
    }
    inTurn += 1;
  });
  const allOpen = join(tempDir(t), 'open');
  // Nothing is accepted while this process stands still, until the system has all of them.
  const connecting = fork(
    program(
      t,
      `import { connect } from 'node:net';
      import { writeFileSync } from 'node:fs';
      let open = 0;
      for (let i = 0; i < ${String(waiting)}; i++) {
        connect(${String(port)}, '127.0.0.1', () => {
          if (++open === ${String(waiting)}) writeFileSync(${JSON.stringify(allOpen)}, '');
        }).on('error', () => undefined);
      }`,
    ),
    { execArgv: [] },
  );
  endAtTeardown(t, connecting);
  const lateMs = performance.now() + 30_000;
  while (!existsSync(allOpen)) {
    if (performance.now() > lateMs) throw new Error('the connections are not open');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
  }
  await until('all are accepted', () => turns.reduce((sum, count) => sum + count, 0) === waiting, 20_000);
  return turns;
}

t.test('a server accepts several connections in a turn, and one without further handles', async (t) => {
  const waiting = 3 * acceptsPerTurn;
  const plain = createServer((socket) => socket.on('error', () => undefined));
  await listen(t, plain);
  t.equal(Math.max(...(await acceptedByTurn(t, plain, waiting))), 1, 'libuv accepts once by each handle');

  const server = createServer((socket) => socket.on('error', () => undefined));
  await listen(t, server);
  const { handles, problem } = await duplicateHandles(
    [handleOf(server)],
    acceptsPerTurn - 1,
    AbortSignal.timeout(20_000),
    main,
  );
  t.equal(problem, null);
  for (const { handle } of handles) acceptBeside(server, handle, 511);
  t.equal(Math.max(...(await acceptedByTurn(t, server, waiting))), acceptsPerTurn);
});

t.test('connections of further handles count, and the port is closed with all of them', async (t) => {
  const server = createServer((socket) => socket.on('error', () => undefined));
  server.maxConnections = 2;
  const { port } = await listen(t, server);
  const { handles } = await duplicateHandles([handleOf(server)], 3, AbortSignal.timeout(20_000), main);
  for (const { handle } of handles) acceptBeside(server, handle, 511);
  t.equal(listeningDescriptors('self', port), 4);
  await connectFrom(t, port, 12);
  const count = async (): Promise<number> =>
    new Promise((resolve) => server.getConnections((_error, open) => resolve(open)));
  await until('two are left', async () => (await count()) === 2);
  const stopped = new Promise<void>((resolve) =>
    stopAccepting(server, 1_000, { onStopped: resolve, onClosed: () => undefined }),
  );
  await stopped;
  t.equal(listeningDescriptors('self', port), 0);
  t.ok(await isRefused(port));
});

t.test('a handle that comes when the server has stopped is closed', async (t) => {
  const server = createServer();
  const { port } = await listen(t, server);
  const { handles } = await duplicateHandles([handleOf(server)], 1, AbortSignal.timeout(20_000), main);
  await new Promise<void>((resolve) => stopAccepting(server, 1_000, { onClosed: resolve }));
  t.equal(listeningDescriptors('self', port), 1, 'the further handle keeps the port open');
  acceptBeside(server, handles[0]?.handle, 511);
  t.equal(listeningDescriptors('self', port), 0);
  t.ok(await isRefused(port));
});

t.test('a helper that does not do its work', async (t) => {
  const server = createServer();
  const { port } = await listen(t, server);
  const cases: readonly (readonly [string, string, RegExp, number])[] = [
    ['ends at once', 'process.exit(7)', /ended with 7/, 0],
    ['does nothing', 'setInterval(() => undefined, 1_000)', /ended with SIGKILL/, 0],
    [
      'stops in the middle',
      "process.on('message', (asked, handle) => process.send({ index: asked.index }, handle, { keepOpen: true }));",
      /ended with SIGKILL/,
      1,
    ],
    [
      'sends no handle',
      "process.on('message', ({ index }) => { process.send({ index }); process.disconnect(); });",
      /ended with/,
      0,
    ],
    [
      'is killed with a handle on its way',
      "process.on('message', () => process.kill(process.pid, 'SIGKILL'));",
      /ended with SIGKILL/,
      0,
    ],
  ];
  for (const [name, source, problem, count] of cases) {
    const duplicates = await duplicateHandles([handleOf(server)], 3, AbortSignal.timeout(4_000), program(t, source));
    t.match(duplicates.problem, problem, name);
    t.equal(duplicates.handles.length, count, name);
    t.same(childrenOf(process.pid), [], `${name}: no process is left`);
    for (const { handle } of duplicates.handles) (handle as { close: () => void }).close();
    await until('what came is closed', () => listeningDescriptors('self', port) === 1);
  }
});

t.test('the helper is given nothing of the environment', async (t) => {
  const server = createServer();
  await listen(t, server);
  process.env['SALLYPORT_TEST_SECRET'] = 'hidden';
  t.teardown(() => delete process.env['SALLYPORT_TEST_SECRET']);
  const { handles, problem } = await duplicateHandles(
    [handleOf(server)],
    1,
    AbortSignal.timeout(20_000),
    program(
      t,
      `process.on('message', ({ index }, handle) => {
        if (process.env.SALLYPORT_TEST_SECRET !== undefined) process.exit(9);
        process.send({ index }, handle, { keepOpen: true });
      });`,
    ),
  );
  t.equal(problem, null);
  t.equal(handles.length, 1);
  for (const { handle } of handles) (handle as { close: () => void }).close();
});

t.test('listeners go on with one handle where there are no further ones, and the log says so', async (t) => {
  const told: unknown[] = [];
  const log: Log = { ...silentLog, warn: (...line: unknown[]) => told.push(line) };
  const accepted: unknown[] = [];
  const listening = (handle: object | null): Parameters<typeof acceptMore>[0][number] => ({
    listeningHandle: () => handle,
    acceptBeside: (given) => accepted.push(given),
  });
  await acceptMore([listening({}), listening(null)], {
    program: main,
    log,
    shutdown: new AbortController().signal,
    duplicate: async (handles, count) => {
      t.equal(handles.length, 1, 'not for one that does not listen');
      t.equal(count, acceptsPerTurn - 1);
      return Promise.resolve({ handles: [{ index: 0, handle: 'one' }], problem: 'it ended' });
    },
  });
  t.same(accepted, ['one']);
  t.match(told, [[/new connections may wait/, { problem: 'it ended' }]]);
});

t.test('a helper that hangs is killed when its time is over, whatever garbage is collected', async (t) => {
  const server = createServer();
  const { port } = await listen(t, server);
  const told: unknown[] = [];
  const accepted: unknown[] = [];
  const accepting = acceptMore(
    [
      {
        listeningHandle: () => handleOf(server),
        acceptBeside: (given) => {
          accepted.push(given);
          (given as { close: () => void }).close();
        },
      },
    ],
    {
      program: program(
        t,
        "process.on('message', ({ index }, handle) => process.send({ index }, handle, { keepOpen: true }));",
      ),
      log: { ...silentLog, warn: (...line: unknown[]) => told.push(line) },
      shutdown: new AbortController().signal,
      limitMs: 3_000,
    },
  );
  await until('the helper runs', () => childrenOf(process.pid).length === 1);
  for (let round = 0; round < 3; round += 1) {
    await delay(100);
    collectGarbage();
  }
  await accepting;
  t.same(childrenOf(process.pid), []);
  t.match(told, [[/new connections may wait/, { problem: /ended with SIGKILL/ }]]);
  t.equal(accepted.length, 1, 'what came is used');
  t.equal(listeningDescriptors('self', port), 1);
});

t.test('a shutdown waits for no helper, and nothing is said of it', async (t) => {
  const server = createServer();
  const { port } = await listen(t, server);
  const shutdown = new AbortController();
  const told: unknown[] = [];
  const accepting = acceptMore(
    [{ listeningHandle: () => handleOf(server), acceptBeside: (given) => acceptBeside(server, given, 511) }],
    {
      program: program(t, 'setInterval(() => undefined, 1_000)'),
      log: { ...silentLog, warn: (...line: unknown[]) => told.push(line) },
      shutdown: shutdown.signal,
    },
  );
  await until('the helper runs', () => childrenOf(process.pid).length === 1);
  shutdown.abort();
  await accepting;
  t.same(childrenOf(process.pid), []);
  t.same(told, []);
  t.equal(listeningDescriptors('self', port), 1);
});

t.test('serve accepts by eight handles, alone, and closes its port with them', async (t) => {
  const proxy = await startProxyProcess(t, {});
  const { pid } = proxy.process;
  await until(
    'it has its handles',
    () => listeningDescriptors(pid, proxy.port) === acceptsPerTurn && childrenOf(pid).length === 0,
    20_000,
  );
  for (let round = 0; round < 3 * acceptsPerTurn; round += 1) {
    t.equal((await proxy.request({ path: '/orders', headers: proxy.authorization() })).status, 200);
  }
  t.same(
    proxy.process.logs().filter(({ level }) => level === 'error' || level === 'fatal'),
    [],
  );
  t.equal((await proxy.process.stop()).code, 0);
  t.ok(await isRefused(proxy.port));
});
