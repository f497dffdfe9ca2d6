import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { Registry } from 'prom-client';
import t from 'tap';
import { showProcess } from '../../../src/adapters/metrics/process.js';
import { seriesValue } from '../../support/proxy-process.js';
import type { Scope } from '../../support/scope.js';

/** What is told of open files before there are 20 connections more, and whenever it is asked for behind that. */
async function openMore(
  t: Scope,
  nowMs: () => number,
): Promise<{ readonly registry: Registry; readonly before: number; readonly told: () => Promise<number> }> {
  const registry = new Registry();
  showProcess(registry, nowMs);
  const told = async (): Promise<number> => seriesValue(await registry.metrics(), 'process_open_fds');
  const before = await told();
  await openConnections(t, 20);
  return { registry, before, told };
}

/** A clock by which each look takes so long. */
function slowClock(tookMs: number): { readonly nowMs: () => number; passed: number } {
  const clock = { passed: 0, nowMs: () => (clock.passed += tookMs) };
  return clock;
}

async function openConnections(t: Scope, count: number): Promise<void> {
  const server = createServer((socket) => socket.on('error', () => undefined));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await Promise.all(sockets.map(async (socket) => once(socket, 'connect')));
}

t.test('what takes long to find out is told again for a while, and then anew', async (t) => {
  const clock = slowClock(2);
  const { before, told } = await openMore(t, clock.nowMs);
  t.equal(await told(), before);
  clock.passed += 1_900;
  t.equal(await told(), before);
  clock.passed += 200;
  const after = await told();
  t.ok(after >= before + 20, `${String(before)} ${String(after)}`);
});

t.test('nothing is told for longer than five seconds', async (t) => {
  const clock = slowClock(60);
  const { before, told } = await openMore(t, clock.nowMs);
  clock.passed += 4_000;
  t.equal(await told(), before);
  clock.passed += 1_000;
  t.ok((await told()) >= before + 20);
});

t.test('what is found out at once is always of now', async (t) => {
  const { registry, before, told } = await openMore(t, () => 0);
  t.ok((await told()) >= before + 20);
  t.match(await registry.metrics(), /^nodejs_active_handles\{type="Socket"\} \d+$/m);
});
