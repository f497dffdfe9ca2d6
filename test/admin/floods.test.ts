/** Packets full of requests to the listeners of monitors and operators: callers of the proxy are served beside them. */
import { connect } from 'node:net';
import t from 'tap';
import { startProxyProcess } from '../support/proxy-process.js';
import { request } from '../support/raw-client.js';
import { containerHeap, residentMiB } from '../chaos/strangers.js';

t.setTimeout(240_000);

const routes = [{ name: 'list', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: [] }];
const packetBytes = 64 * 1024;
const honestRequests = 40;
/** At rest it is about half of this. */
const mostMiB = 200;

interface Flood {
  /** Responses that each of its connections was given. */
  readonly answers: readonly number[];
  readonly end: () => Promise<void>;
}

/** Keeps so many connections open, each of which writes a packet at once; whichever is closed is opened anew. */
function flood(port: number, head: string, connections: number, reads: boolean): Flood {
  const packet = head.repeat(Math.ceil(packetBytes / head.length)).slice(0, packetBytes);
  const answers: number[] = [];
  const open = new Set<{ readonly end: () => void; readonly closed: Promise<void> }>();
  let isOver = false;
  const begin = (): void => {
    const index = answers.push(0) - 1;
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const entry = { end: () => socket.destroy(), closed };
    open.add(entry);
    socket.write(packet);
    if (reads) {
      let text = '';
      socket.on('data', (bytes: Buffer) => {
        text += bytes.toString('latin1');
        answers[index] = text.split('HTTP/1.1 ').length - 1;
      });
    }
    void closed.then(() => {
      open.delete(entry);
      if (!isOver) setTimeout(begin, 1);
    });
  };
  for (let count = 0; count < connections; count += 1) begin();
  return {
    answers,
    end: async () => {
      isOver = true;
      const all = [...open];
      for (const { end } of all) end();
      await Promise.all(all.map(async ({ closed }) => closed));
    },
  };
}

for (const { name, workers } of [
  { name: 'one process', workers: 1 },
  { name: 'two workers', workers: 2 },
]) {
  t.test(name, async (t) => {
    const proxy = await startProxyProcess(t, {
      env: containerHeap,
      config: { workers, routes, probes: { host: '127.0.0.1', port: 0 } },
    });
    const probes = await proxy.process.port('probes');
    for (const { listener, path, connections, reads = true } of [
      { listener: 'probes', path: '/metrics', connections: 8 },
      { listener: 'probes', path: '/metrics', connections: 100, reads: false },
      { listener: 'probes', path: '/readyz', connections: 16 },
      { listener: 'admin', path: '/metrics', connections: 8 },
      { listener: 'admin', path: '/status', connections: 16 },
    ]) {
      const whose = `${String(connections)} connections${reads ? '' : ' that do not read'}`;
      await t.test(`${listener}: packets of GET ${path} on ${whose}`, async (t) => {
        const port = listener === 'admin' ? proxy.adminPort : probes;
        const { answers, end } = flood(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`, connections, reads);
        t.teardown(end);
        const headers = proxy.authorization();
        const statuses: number[] = [];
        while (statuses.length < honestRequests) {
          statuses.push((await proxy.request({ path: '/orders', headers })).status);
        }
        t.same(new Set(statuses), new Set([200]), 'callers of the proxy are served');
        for (const page of ['/livez', '/readyz', '/metrics']) {
          t.equal((await request(probes, { path: page })).status, 200, `probes ${page}`);
          t.equal((await request(proxy.adminPort, { path: page })).status, 200, `admin ${page}`);
        }
        t.equal((await proxy.admin('/status')).status, 200);
        const held = residentMiB(proxy);
        await end();
        t.ok(answers.length >= connections);
        t.same(
          answers.filter((count) => count > 1),
          [],
          'no connection of the flood was answered more than once',
        );
        t.ok(held < mostMiB, `${String(held)} MiB are held`);
        t.comment(`${String(answers.length)} connections of the flood, ${String(held)} MiB`);
      });
    }
    t.ok(proxy.process.isRunning(), proxy.process.output().slice(-500));
  });
}
