/** Connections whose requests never come to their end, and what they cost. */
import type { Test } from 'tap';
import { childrenOf, openDescriptors, residentBytes } from '../support/linux.js';
import { connectRaw, request, type RawConnection } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { startProxyProcess, usualWorkers, type ProxyProcess } from '../support/proxy-process.js';

/** So many at once fit into the queue of a listening socket. */
const lot = 200;

/**
 * Opens so many, with a credential and half a head on each. A socket that was not taken is closed, which is no error
 * here.
 */
async function openSlow(t: Test, proxy: ProxyProcess, count: number): Promise<RawConnection[]> {
  const open: RawConnection[] = [];
  t.teardown(() => {
    for (const connection of open) connection.end();
  });
  const head = `GET /orders HTTP/1.1\r\nHost: a\r\nAuthorization: ${proxy.authorization()['Authorization'] ?? ''}\r\nX-Slow: `;
  while (open.length < count) {
    const made = await Promise.all(
      Array.from({ length: Math.min(lot, count - open.length) }, async () => connectRaw(proxy.port)),
    );
    for (const connection of made) connection.write(head);
    open.push(...made);
  }
  return open;
}

/** Of all of its processes. */
function sumOf({ process: { pid } }: ProxyProcess, of: (pid: number) => number): number {
  return [pid, ...childrenOf(pid)].reduce((sum, one) => sum + of(one), 0);
}

/**
 * All of them are taken: honest callers are served beside them, in memory that each connection has its small part of.
 */
export async function holdSlow(t: Test, count: number, bytesEach: number): Promise<void> {
  const proxy = await startProxyProcess(t, {
    config: { listen: { header_timeout: '10m', max_in_flight: Math.max(count / 4, 1) } },
  });
  const honest = async (): Promise<number> =>
    (await request(proxy.port, { path: '/orders', headers: proxy.authorization() })).status;
  for (let warm = 0; warm < 20; warm += 1) await honest();
  const [before, filesBefore] = [sumOf(proxy, residentBytes), sumOf(proxy, openDescriptors)];
  const slow = await openSlow(t, proxy, count);
  // Those of the honest ones close meanwhile.
  await until('all are taken', () => sumOf(proxy, openDescriptors) >= filesBefore + count - 10, 120_000);
  for (let turn = 0; turn < 20; turn += 1) t.equal(await honest(), 200);
  const growth = sumOf(proxy, residentBytes) - before;
  const mebibyte = 1024 * 1024;
  t.comment(
    `${count} slow connections: ${Math.round(growth / mebibyte)} MiB more than ${Math.round(before / mebibyte)} MiB, ${growth / count} bytes each`,
  );
  t.ok(growth < count * bytesEach + usualWorkers * 32 * 1024 * 1024, `${growth} bytes for ${count}`);
  t.equal(slow.filter((connection) => connection.isClosed()).length, 0);
  for (const connection of slow) connection.end();
  await until('all are let go', () => sumOf(proxy, openDescriptors) <= filesBefore + 5, 120_000);
  t.equal(await honest(), 200);
  t.ok(proxy.process.isRunning());
}

/**
 * More than are taken: those beyond are closed at once, and who holds the places loses them with the time for a head.
 */
export async function outlastSlow(t: Test, count: number): Promise<void> {
  // Each process has as many places; connections come to them in turn.
  const places = usualWorkers * 1_025;
  const proxy = await startProxyProcess(t, {
    config: { listen: { header_timeout: '2s', max_in_flight: 1, max_websockets: 1 } },
  });
  const filesBefore = sumOf(proxy, openDescriptors);
  const slow = await openSlow(t, proxy, count);
  t.ok(sumOf(proxy, openDescriptors) <= filesBefore + places + 5, 'no more than 1,024 and a WebSocket');
  await until(
    'those beyond are closed',
    () => slow.filter((connection) => connection.isClosed()).length >= count - places,
  );
  await until('honest callers have their turn', async () =>
    request(proxy.port, { path: '/orders', headers: proxy.authorization() }).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  await until('the slow ones are turned out', () => slow.every((connection) => connection.isClosed()));
  const late = await proxy.metric('sallyport_denials_total{reason="header_timeout"}');
  const gaveWay = await proxy.metric('sallyport_connections_ended_total{reason="gave_way"}');
  t.ok(gaveWay >= count - places, `${gaveWay} gave way to new ones`);
  t.ok(late <= count && late + gaveWay >= count, `${late} were told 408`);
  t.ok(proxy.process.isRunning());
}
