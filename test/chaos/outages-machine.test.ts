import { openSync, closeSync } from 'node:fs';
import t from 'tap';
import { childrenOf, fullDevice, hasAllHandles } from '../support/linux.js';
import { limitDescriptors } from '../support/prlimit.js';
import { connectRaw, requestBytes, type RawConnection } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { clockOutages, machineOutages, startLogging } from './outages-machine.js';
import { startSetup } from './outages-setup.js';
import { outage } from './outages.js';

const setup = await startSetup(t);

for (const row of clockOutages) {
  t.test(`the clock ${row.name}`, async (t) => {
    await outage(t, setup, row);
  });
}

t.test(machineOutages.fullDisk.name, async (t) => {
  const full = openSync(fullDevice, 'w');
  const proxy = await startLogging(t, full);
  closeSync(full);
  for (let count = 0; count < 100; count += 1) t.equal(await proxy.ask(), 200);
  t.match(await proxy.metrics(), /sallyport_requests_total\{route="list-orders",outcome="forwarded",code="2xx"\} 100/);
  t.ok(proxy.isRunning());
  // That lines come again once there is room: adapters/log/log-stream-full-disk.test.ts.
});

t.test(machineOutages.closedLog.name, async (t) => {
  const proxy = await startLogging(t, 'pipe');
  proxy.child.stdout?.destroy();
  for (let count = 0; count < 100; count += 1) t.equal(await proxy.ask(), 200);
  t.match(await proxy.metrics(), /sallyport_requests_total\{route="list-orders",outcome="forwarded",code="2xx"\} 100/);
  t.ok(proxy.isRunning());
  const exited = new Promise((resolve) => proxy.child.once('exit', resolve));
  proxy.child.kill('SIGTERM');
  t.equal(await exited, 0, 'and it ends as ever');
});

t.test(machineOutages.hungLog.name, async (t) => {
  const proxy = await startLogging(t, 'pipe');
  // Nobody reads: what a pipe holds is full after 64 KiB.
  for (let count = 0; count < 400; count += 1) t.equal(await proxy.ask(), 200);
  let text = '';
  proxy.child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await until('every line, once it is read', () => text.split('"route":"list-orders"').length - 1 === 400);
  // That no more than 8 MiB wait, and what is dropped is counted: adapters/log/log-stream.test.ts.
  t.ok(proxy.isRunning());
});

t.test(machineOutages.noDescriptors.name, async (t) => {
  const proxy = await startProxyProcess(t);
  await hasAllHandles(proxy.process.pid);
  const ask = async (connection: RawConnection): Promise<number | null> => {
    connection.write(requestBytes(proxy.port, { path: '/orders', headers: proxy.authorization() }));
    return (await connection.readResponse())?.status ?? null;
  };
  const before = await Promise.all(Array.from({ length: 5 }, async () => connectRaw(proxy.port)));
  for (const connection of before) t.teardown(connection.end);
  for (const connection of before) t.equal(await ask(connection), 200);
  limitDescriptors(proxy.process.pid, 0);
  const others: RawConnection[] = [];
  t.teardown(() => {
    for (const connection of others) connection.end();
  });
  await until('a new connection is closed without an answer', async () => {
    const connection = await connectRaw(proxy.port).catch(() => null);
    if (connection === null) return true;
    others.push(connection);
    return (await Promise.race([ask(connection), connection.closed.then(() => null)])) === null;
  });
  const answered = await Promise.all(before.map(ask));
  t.same(
    answered.filter((status) => status !== 200 && status !== 503),
    [],
    'open connections are served, or told that the receiver was not reached',
  );
  t.ok(proxy.process.isRunning());
  limitDescriptors(proxy.process.pid, 1_000);
  await until('new connections are served', async () => {
    const connection = await connectRaw(proxy.port).catch(() => null);
    if (connection === null) return false;
    others.push(connection);
    return (await ask(connection)) === 200;
  });
  await until('ready', async () => (await proxy.admin('/readyz')).status === 200);
  t.ok(proxy.process.isRunning());
});

t.test(`${machineOutages.noDescriptors.name}, in every worker`, async (t) => {
  const proxy = await startProxyProcess(t, { config: { workers: 2 } });
  const open: RawConnection[] = [];
  t.teardown(() => {
    for (const connection of open) connection.end();
  });
  const ask = async (): Promise<number | null> => {
    const connection = await connectRaw(proxy.port).catch(() => null);
    if (connection === null) return null;
    open.push(connection);
    connection.write(requestBytes(proxy.port, { path: '/orders', headers: proxy.authorization() }));
    return Promise.race([
      connection.readResponse().then((response) => response?.status ?? null),
      connection.closed.then(() => null),
    ]);
  };
  t.equal(await ask(), 200);
  const workers = childrenOf(proxy.process.pid);
  t.equal(workers.length, 2);
  for (const worker of workers) limitDescriptors(worker, 0);
  await until('a connection that nobody can take is closed', async () => (await ask()) === null);
  t.ok((await Promise.all(Array.from({ length: 40 }, ask))).includes(null), 'and so are others that come at once');
  for (const connection of open.splice(0)) connection.end();
  for (const worker of workers) limitDescriptors(worker, 1_000);
  await until('new connections are served', async () => (await ask()) === 200);
  await until('by each worker at once', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, ask));
    return answers.every((status) => status === 200);
  });
  t.same(childrenOf(proxy.process.pid), workers, 'the same ones');
});
