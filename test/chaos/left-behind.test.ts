/**
 * What callers and strangers leave behind once they are gone: of each kind many come and go, until no more is held than
 * after as many before. What is held meanwhile is what `ledger.test.ts` looks at.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import t from 'tap';
import { timesAtOnce } from '../support/at-once.js';
import { certificates, type Certificates } from '../support/certificates.js';
import { flags, frame, frameTypes, headers, preface, uint32 } from '../support/http2-frames.js';
import { startRedis } from '../support/redis-server.js';
import { startLedger, type Ledger } from './ledger.js';

t.setTimeout(600_000);

/** Of each kind so many come and go to warm up, and then between two looks. */
const warmUp = 300;
const count = 600;
const atOnce = 32;

/** Looks at most: what is compiled meanwhile, and what is freed late, differs from look to look. */
const looks = 4;

/**
 * What each may leave, bytes, on the average of all since it is warm: what V8 learns of the code is some hundred. A
 * connection of HTTP/2 that was never freed took 7,000.
 */
const slackEach = 1_000;

/** One that comes, does something and goes. */
interface Visit {
  readonly name: string;
  /** TLS with this protocol, or without an offer of one. */
  readonly tls?: 'h2' | 'http/1.1' | 'no handshake';
  readonly bytes: (ledger: Ledger) => string | Buffer;
  /** When it goes: as soon as it has written, with the first bytes that come, or once the proxy closes. */
  readonly leaves: 'at once' | 'at the answer' | 'when told';
  readonly how?: 'end' | 'reset';
  /** For how long it is remembered on purpose, milliseconds. */
  readonly rememberedMs?: number;
}

/** What was settled is kept for a fail-over for 15 s. */
const settledMs = 16_000;

const settings = Buffer.concat([preface, frame(frameTypes.settings, 0, 0)]);
const acknowledged = Buffer.concat([settings, frame(frameTypes.settings, flags.ack, 0)]);

const none: Buffer = Buffer.alloc(0);

function random(): string {
  return randomBytes(12).toString('hex');
}

function get(path: string, fields = ''): (ledger: Ledger) => string {
  return (ledger) => ledger.head(`GET ${path}`, fields);
}

function write(fields: string, body = ''): (ledger: Ledger) => string {
  return (ledger) => `${ledger.head('POST /write', `Idempotency-Key: "${random()}"\r\n${fields}`)}${body}`;
}

function overHttp2(path: string, { method = 'GET', endStream = true, behind = none } = {}): Visit['bytes'] {
  return ({ proxy }) => {
    const fields = [':method', method, ':scheme', 'http', ':path', path, ':authority', 'a'];
    const own = ['authorization', proxy.authorization()['Authorization'] ?? '', 'idempotency-key', `"${random()}"`];
    return Buffer.concat([acknowledged, headers(1, [...fields, ...own], endStream), behind]);
  };
}

const upgrade =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

const visits: readonly Visit[] = [
  { name: 'a connection that says nothing', bytes: () => '', leaves: 'at once' },
  { name: 'the same, reset', bytes: () => '', leaves: 'at once', how: 'reset' },
  { name: 'half a head', bytes: () => 'GET /read HTTP/1.1\r\nHost: a\r\nX-A: ', leaves: 'at once' },
  { name: 'no HTTP', bytes: () => `${random()}\r\n\r\n`, leaves: 'when told' },
  {
    name: 'a bad token',
    bytes: () => `GET /read HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${random()}.${random()}.${random()}\r\n\r\n`,
    leaves: 'at the answer',
  },
  { name: 'a path that no route has', bytes: (ledger) => get(`/${random()}`)(ledger), leaves: 'at the answer' },
  {
    name: 'a host of its own',
    bytes: () => `GET /read HTTP/1.1\r\nHost: ${random()}\r\n\r\n`,
    leaves: 'at the answer',
  },
  { name: 'a whole answer', bytes: get('/read?whole'), leaves: 'at the answer' },
  { name: 'an answer in the midst of which it goes', bytes: get('/read'), leaves: 'at the answer' },
  { name: 'the same, reset', bytes: get('/read'), leaves: 'at the answer', how: 'reset' },
  { name: 'a request that nobody waits for', bytes: get('/read'), leaves: 'at once', how: 'reset' },
  {
    name: 'ten requests in one packet',
    bytes: (ledger) => get('/read')(ledger).repeat(10),
    leaves: 'at the answer',
    how: 'reset',
  },
  { name: 'a body that breaks off', bytes: write('Content-Length: 1000\r\n', 'x'), leaves: 'at once' },
  {
    name: 'a chunked body that breaks off',
    bytes: write('Transfer-Encoding: chunked\r\n', '5\r\nx'),
    leaves: 'at once',
  },
  { name: 'a body that is too large', bytes: write('Content-Length: 1000000000\r\n'), leaves: 'at the answer' },
  {
    name: 'a body that waits to be asked for',
    bytes: write('Content-Length: 5\r\nExpect: 100-continue\r\n'),
    leaves: 'at once',
  },
  {
    name: 'a reserved write',
    bytes: write('Content-Length: 0\r\n'),
    leaves: 'at the answer',
    rememberedMs: settledMs,
  },
  { name: 'a reserved write, left alone', bytes: write('Content-Length: 0\r\n'), leaves: 'at once', how: 'reset' },
  {
    name: 'an upgrade without a token',
    bytes: () => `GET /live HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n`,
    leaves: 'at the answer',
  },
  { name: 'an upgrade that nobody waits for', bytes: get('/live', upgrade), leaves: 'at once', how: 'reset' },
  { name: 'a WebSocket', bytes: get('/live', upgrade), leaves: 'at the answer' },
  { name: 'CONNECT', bytes: () => 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n', leaves: 'at the answer' },
  { name: 'HTTP/2: a preface', bytes: () => preface.subarray(0, 20), leaves: 'at once' },
  { name: 'HTTP/2: settings that are not acknowledged', bytes: () => settings, leaves: 'at the answer' },
  { name: 'HTTP/2: the same, reset', bytes: () => settings, leaves: 'at the answer', how: 'reset' },
  { name: 'HTTP/2: a whole answer', bytes: overHttp2('/read?whole'), leaves: 'at the answer' },
  { name: 'HTTP/2: an answer in the midst of which it goes', bytes: overHttp2('/read'), leaves: 'at the answer' },
  { name: 'HTTP/2: a request that nobody waits for', bytes: overHttp2('/read'), leaves: 'at once', how: 'reset' },
  {
    name: 'HTTP/2: a stream that is reset',
    bytes: overHttp2('/read', { behind: frame(frameTypes.reset, 0, 1, uint32(8)) }),
    leaves: 'at the answer',
  },
  {
    name: 'HTTP/2: a body that breaks off',
    bytes: overHttp2('/write', {
      method: 'POST',
      endStream: false,
      behind: frame(frameTypes.data, 0, 1, Buffer.from('x')),
    }),
    leaves: 'at the answer',
  },
  {
    name: 'HTTP/2: a frame of a wrong size',
    bytes: overHttp2('/read', { behind: frame(frameTypes.ping, 0, 0, Buffer.alloc(3)) }),
    leaves: 'at the answer',
  },
  {
    name: 'HTTP/2: a farewell',
    bytes: overHttp2('/read', { behind: frame(frameTypes.goAway, 0, 0, Buffer.alloc(8)) }),
    leaves: 'at the answer',
  },
  { name: 'TLS: a connection that says nothing', tls: 'no handshake', bytes: () => '', leaves: 'at once' },
  { name: 'TLS: bytes that are none', tls: 'no handshake', bytes: () => 'GET / HTTP/1.1\r\n\r\n', leaves: 'when told' },
  {
    name: 'TLS: half a hello',
    tls: 'no handshake',
    bytes: () => Buffer.from('16030101000100', 'hex'),
    leaves: 'at once',
  },
  { name: 'TLS: a handshake', tls: 'http/1.1', bytes: () => '', leaves: 'at once' },
  { name: 'TLS: a handshake, reset', tls: 'http/1.1', bytes: () => '', leaves: 'at once', how: 'reset' },
  { name: 'TLS: a whole answer', tls: 'http/1.1', bytes: get('/read?whole'), leaves: 'at the answer' },
  {
    name: 'TLS: an answer in the midst of which it goes',
    tls: 'http/1.1',
    bytes: get('/read'),
    leaves: 'at the answer',
    how: 'reset',
  },
  {
    name: 'TLS, HTTP/2: settings that are not acknowledged',
    tls: 'h2',
    bytes: () => settings,
    leaves: 'at the answer',
  },
  { name: 'TLS, HTTP/2: a whole answer', tls: 'h2', bytes: overHttp2('/read?whole'), leaves: 'at the answer' },
  { name: 'TLS, HTTP/2: nothing', tls: 'h2', bytes: () => '', leaves: 'at once', how: 'reset' },
];

t.test('what is over leaves nothing behind', async (t) => {
  const files = certificates(t);
  for (const isTls of [false, true]) {
    const redis = await startRedis(t);
    const { certFile: cert_file, keyFile: key_file } = files.server;
    const ledger = await startLedger(t, {
      listen: { http2: true, ...(isTls ? { tls: { cert_file, key_file } } : {}) },
      store: { redis: { url: `redis://127.0.0.1:${String(redis.port)}` } },
      token_cache: '64KiB',
    });
    ledger.proxy.receiver.behave((req, res) => {
      if (req.url === '/read') res.flushHeaders();
      else res.end('done');
    });
    const of = visits.filter(({ tls }) => isTls === (tls !== undefined));
    for (const visit of of) {
      await come(ledger, files, visit, warmUp);
      const before = await heldAtRest(ledger, visit);
      let each = Infinity;
      for (let look = 1; look <= looks && each > slackEach; look += 1) {
        await come(ledger, files, visit, count);
        each = ((await heldAtRest(ledger, visit)) - before) / (look * count);
      }
      t.ok(each <= slackEach, `${visit.name}: ${each.toFixed(0)} bytes each`);
    }
  }
});

/** Bytes that are held once nobody is there. */
async function heldAtRest(ledger: Ledger, { rememberedMs = 0 }: Visit): Promise<number> {
  await ledger.gauge('sallyport_requests_in_flight', 0);
  await ledger.gauge('sallyport_websockets_open', 0);
  await ledger.gauge('sallyport_connections_open', 0);
  await sleep(rememberedMs);
  return ledger.held();
}

async function come(ledger: Ledger, files: Certificates, visit: Visit, times: number): Promise<void> {
  await timesAtOnce(times, atOnce, async () => comeOnce(ledger, files, visit));
}

async function comeOnce(ledger: Ledger, { ca }: Certificates, visit: Visit): Promise<void> {
  const { port } = ledger.proxy;
  const tcp = connect(port, '127.0.0.1').setNoDelay();
  const hasTls = visit.tls !== undefined && visit.tls !== 'no handshake';
  const socket: Socket = hasTls
    ? connectTls({ socket: tcp, ca: ca.cert, servername: 'localhost', ALPNProtocols: [visit.tls] })
    : tcp;
  for (const each of [tcp, socket]) each.on('error', () => undefined);
  // A reset is a way to go, and no failure.
  const closed = new Promise<void>((resolve) => {
    tcp.once('close', () => resolve());
  });
  await Promise.race([once(socket, hasTls ? 'secureConnect' : 'connect').catch(() => undefined), closed]);
  const told = new Promise<void>((resolve) => {
    socket.once(visit.leaves === 'at the answer' ? 'data' : 'end', () => resolve());
    socket.once('close', () => resolve());
  });
  socket.resume();
  const bytes = visit.bytes(ledger);
  if (bytes.length > 0) await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
  if (visit.leaves !== 'at once') await told;
  if (visit.how === 'reset') tcp.resetAndDestroy();
  else {
    socket.end();
    tcp.destroySoon();
  }
  await closed;
}
