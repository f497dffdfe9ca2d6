/** A caller that is gone is noticed, whatever it sent behind the request that is being served. */
import type { ServerResponse } from 'node:http';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { connectRaw } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { startReservingProxy } from '../idempotency/reserving-proxy.js';
import { startProxy, type Harness } from '../harness.js';

const approved = { subjects: ['checkout'], permissions: [] };
const routes = [
  { name: 'orders', methods: ['GET', 'POST'], path: '/orders', ...approved, max_body: '4MiB', idempotency: 'none' },
  { name: 'chat', methods: ['GET'], path: '/chat', ...approved, websocket: true },
];

/** Longer than it is waited for anything here. */
const upstream = { response_timeout: '120s', idle_timeout: '120s' };

const get = 'GET /orders HTTP/1.1\r\nHost: a\r\n\r\n';
const chunked = 'POST /orders HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n';

function post(length: number, sent = length, fields = ''): string {
  return `POST /orders HTTP/1.1\r\nHost: a\r\n${fields}Content-Length: ${String(length)}\r\n\r\n${'b'.repeat(sent)}`;
}

function handshake(fields: string): string {
  const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
  return `GET /chat HTTP/1.1\r\nHost: a\r\n${fields}Connection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n`;
}

const firsts = {
  GET: (fields: string) => get.replace('\r\n\r\n', `\r\n${fields}\r\n`),
  POST: (fields: string) => post(5, 5, fields),
  handshake,
};

/** What may be sent behind a request; most of it is no whole message. */
const behind: Readonly<Record<string, string>> = {
  nothing: '',
  'a request': get,
  'half a head': 'GET /ord',
  'a request and half a head': `${get}GET /ord`,
  'some of a body': post(100, 20),
  'some of a chunk': `${chunked}some`,
  'a request and some of a body': get + post(100, 20),
  'many requests and some of a body': post(0).repeat(40) + post(100, 20),
  'more requests than may wait, and half a head': `${get.repeat(150)}GET /ord`,
  'a body of 20 KB': post(20_000),
  'a body of 100 KB': post(100_000),
  'some of a large body': post(300_000, 150_000),
  'what is no request': `${get}${'a'.repeat(100_000)}`,
  'a handshake and what follows it': handshake('') + 'w'.repeat(100_000),
};

async function startWith(t: Scope, { tls }: { readonly tls: boolean }): Promise<Harness> {
  const { server } = certificates(t);
  return startProxy(t, {
    config: {
      ...(tls ? { listen: { tls: { cert_file: '/tls/tls.crt', key_file: '/tls/tls.key' } } } : {}),
      upstream,
      routes,
    },
    ...(tls ? { tls: { cert: server.cert, key: server.key, clientCa: null, clientAuth: 'require' } } : {}),
  });
}

const ways = ['at once', 'later', 'and ends only its side'] as const;

for (const tls of [false, true]) {
  for (const first of ['GET', 'POST', 'handshake'] as const) {
    t.test(`behind a ${first}${tls ? ' over TLS' : ''}`, async (t) => {
      const proxy = await startWith(t, { tls });
      const held: ServerResponse[] = [];
      proxy.receiver.behave((_req, res) => held.push(res));
      const cases = Object.entries(behind)
        // What comes behind a handshake is no request, and waits in its connection.
        .filter(([, rest]) => first !== 'handshake' || rest.length < 50_000)
        .flatMap(([name, rest]) => ways.map((how) => ({ id: `${name}, ${how}`.replaceAll(/\W+/g, '-'), rest, how })));
      const callers = await Promise.all(
        cases.map(async ({ id, rest, how }) => {
          const connection = await connectRaw(proxy.port, tls ? { tls: { rejectUnauthorized: false } } : {});
          t.teardown(connection.end);
          const bytes = firsts[first](`${proxy.bearer()}X-Request-Id: ${id}\r\n`);
          connection.write(how === 'at once' ? bytes + rest : bytes);
          return { connection, rest, how };
        }),
      );
      await until('all are with the receiver', () => held.length === cases.length);
      for (const { connection, rest, how } of callers) {
        if (how !== 'at once') connection.write(rest);
        if (how === 'and ends only its side') connection.socket.end();
        else connection.socket.destroySoon();
      }
      const unnoticed = (): string[] => {
        const noticed = new Set(proxy.records.map(({ request_id, reason }) => reason === 'caller_gone' && request_id));
        return cases.map(({ id }) => id).filter((id) => !noticed.has(id));
      };
      await until('all are noticed', () => unnoticed().length === 0, 10_000).catch(() => undefined);
      t.same(unnoticed(), []);
      await until('the receiver is told', () => held.every(({ closed }) => closed), 10_000);
      t.match(proxy.server.counts(), { inFlight: 0, connections: 0 });
      t.equal(proxy.records.length, cases.length, 'nothing of what waited is served');
    });
  }
}

t.test('behind a reserved write, which is completed all the same', async (t) => {
  const proxy = await startReservingProxy(t, { config: { upstream } });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const connection = await connectRaw(proxy.port);
  const json = 'Content-Type: application/json\r\n';
  connection.write(post(5, 5, `${proxy.bearer({ sub: 'checkout' })}Idempotency-Key: "gone"\r\n${json}`));
  await until('it is with the receiver', () => held.length === 1);
  connection.write(post(100_000));
  connection.socket.destroySoon();
  await until('no connection is left', () => proxy.server.counts().connections === 0, 10_000);
  t.equal(held[0]?.closed, false);
  held[0]?.end('done');
  await until('it is settled', () => proxy.isIdle());
  t.same(proxy.results, ['acquired', 'completed']);
  proxy.receiver.behave(null);
  const again = await proxy.write({ key: '"gone"', body: 'bbbbb' });
  t.match(again, { status: 200, text: 'done' }, 'a retry gets its answer');
});

t.test('more than is kept behind a handshake that is not answered', async (t) => {
  const proxy = await startWith(t, { tls: false });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const connection = await connectRaw(proxy.port);
  connection.write(handshake(proxy.bearer()));
  await until('it is with the receiver', () => held.length === 1);
  connection.write('w'.repeat(200_000));
  connection.socket.destroySoon();
  await until('the receiver is told', () => held[0]?.closed === true, 20_000);
  t.match(proxy.server.counts(), { inFlight: 0, connections: 0 });
  t.match(proxy.records, [{ reason: 'caller_gone' }]);
  t.same(proxy.counted.connectionEndings, ['too_much_waiting']);
});

t.test('whoever ends its side in the midst of the request that is being served is answered', async (t) => {
  const proxy = await startWith(t, { tls: false });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const connection = await connectRaw(proxy.port);
  connection.write(post(200_000, 100_000, proxy.bearer()));
  await until('it is with the receiver', () => held.length === 1);
  connection.socket.end();
  t.match(await connection.readResponse(), { status: 400 });
});
