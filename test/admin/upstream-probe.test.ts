import { createServer } from 'node:net';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { createAppProbe, type ProbedUpstream } from '../../src/admin/upstream-probe.js';
import type { LogFields } from '../../src/ports/system.js';
import { certificates } from '../support/certificates.js';
import { listen } from '../support/listening.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

type Lines = { readonly level: string; readonly fields: LogFields | undefined }[];

function recordingLog(lines: Lines): Parameters<typeof createAppProbe>[2]['log'] {
  const keep =
    (level: string) =>
    (_message: string, fields?: LogFields): void => {
      lines.push({ level, fields });
    };
  return { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') };
}

function receiverAt(url: string, ca: string | null = null): ProbedUpstream {
  return {
    settings: {
      url,
      caFile: null,
      serverName: null,
      host: 'preserve',
      beginsTrace: true,
      stripFields: [],
      passFields: [],
      connectTimeoutMs: 1_000,
      responseTimeoutMs: 1_000,
      idleTimeoutMs: 1_000,
      maxConnections: 1,
      http2: false,
      maxStreams: 100,
      sensitiveHeaders: ['authorization'],
      reuse: 'safe',
      readsBodies: false,
    },
    ca,
  };
}

const statuses: readonly { readonly receiver: number; readonly expected: number }[] = [
  { receiver: 200, expected: 200 },
  { receiver: 204, expected: 200 },
  { receiver: 302, expected: 200 },
  { receiver: 399, expected: 200 },
  { receiver: 400, expected: 400 },
  { receiver: 401, expected: 401 },
  { receiver: 404, expected: 404 },
  { receiver: 500, expected: 500 },
  { receiver: 503, expected: 503 },
];

t.test("a probe answers the upstream's status, and nothing else of it", async (t) => {
  const receiver = await startUpstreamServer(t);
  const lines: Lines = [];
  const probe = createAppProbe('live', '/health?full=1', {
    upstream: () => receiverAt(receiver.url),
    log: recordingLog(lines),
  });
  for (const { receiver: status, expected } of statuses) {
    receiver.behave((_req, res) => {
      res
        .writeHead(status, { 'x-secret': 'from the receiver', location: 'http://elsewhere.example/' })
        .end('a body of the receiver');
    });
    const page = await probe();
    t.equal(page.status, expected, String(status));
    t.same(JSON.parse(page.body), { status: expected === 200 ? 'passed' : 'failed', receiver_status: status });
  }
  t.ok(
    receiver.requests.every(({ method, target }) => method === 'GET' && target === '/health?full=1'),
    'GET of the fixed path',
  );
  t.same(
    receiver.requests[0]?.rawHeaders
      .filter((_, index) => index % 2 === 0)
      .map((name) => name.toLowerCase())
      .sort(),
    ['accept', 'connection', 'host', 'user-agent'],
    'no identity, nothing of whoever asks',
  );
  t.equal(receiver.connections(), statuses.length, 'a connection of its own each time');
  await until('connections closed', () => receiver.open() === 0);
  t.same(
    lines,
    [{ level: 'warn', fields: { probe: 'live', receiver_status: 400, answered: 400 } }],
    'one line for the change',
  );
});

t.test('an upstream that is not there is 503, and it is told when it comes back', async (t) => {
  const receiver = await startUpstreamServer(t);
  const { url } = receiver;
  let at = 'http://127.0.0.1:1';
  const lines: Lines = [];
  const probe = createAppProbe('ready', '/', { upstream: () => receiverAt(at), log: recordingLog(lines) });
  t.match(await probe(), { status: 503, body: '{"status":"failed","receiver_status":null}' });
  t.match(await probe(), { status: 503 });
  at = url;
  t.match(await probe(), { status: 200 }, 'asks the receiver that is in force');
  t.same(
    lines.map(({ level }) => level),
    ['warn', 'info'],
  );
});

t.test('an upstream that breaks off or says no HTTP is 503', async (t) => {
  for (const answer of ['', 'HELLO\r\n\r\n', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`]) {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end(answer));
    });
    const { port } = await listen(t, server);
    const probe = createAppProbe('live', '/', {
      upstream: () => receiverAt(`http://127.0.0.1:${String(port)}`),
      log: recordingLog([]),
    });
    t.equal((await probe()).status, 503, answer.slice(0, 10));
  }
});

t.test('bounded: an upstream that does not answer is 504, asked once by however many', async (t) => {
  const receiver = await startUpstreamServer(t);
  receiver.behave(() => undefined);
  const probe = createAppProbe('live', '/', {
    upstream: () => receiverAt(receiver.url),
    log: recordingLog([]),
    limitMs: 300,
  });
  const pages = await Promise.all(Array.from({ length: 50 }, probe));
  t.ok(pages.every(({ status }) => status === 504));
  t.equal(receiver.requests.length, 1);
  await until('the connection is closed', () => receiver.open() === 0);
});

t.test('bounded: an endless page is left after its head', async (t) => {
  const receiver = await startUpstreamServer(t);
  const endless: ServerResponse[] = [];
  receiver.behave((_req, res) => {
    res.writeHead(200);
    res.write('x'.repeat(1_000));
    endless.push(res);
  });
  const probe = createAppProbe('live', '/', { upstream: () => receiverAt(receiver.url), log: recordingLog([]) });
  t.equal((await probe()).status, 200);
  await until('the connection is closed', () => receiver.open() === 0);
});

t.test('a unix socket and a verified certificate', async (t) => {
  const path = join(tempDir(t), 'app.sock');
  const onSocket = await startUpstreamServer(t, { unix: path });
  t.equal(
    (await createAppProbe('a', '/', { upstream: () => receiverAt(onSocket.url), log: recordingLog([]) })()).status,
    200,
  );
  const { ca, server } = certificates(t);
  const overTls = await startUpstreamServer(t, { tls: { cert: server.cert, key: server.key } });
  const trusting = receiverAt(overTls.url, ca.cert);
  t.equal((await createAppProbe('b', '/', { upstream: () => trusting, log: recordingLog([]) })()).status, 200);
  t.equal(
    (await createAppProbe('c', '/', { upstream: () => receiverAt(overTls.url), log: recordingLog([]) })()).status,
    503,
    'not verified',
  );
});
