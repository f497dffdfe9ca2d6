/** A collector that is away, slow or lies: what is not taken is counted, and requests are served on. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import t from 'tap';
import { ExportQueue, type ExportOutcome } from '../../src/adapters/telemetry/export-queue.js';
import { OtlpSender } from '../../src/adapters/telemetry/otlp-sender.js';
import { localFiles } from '../../src/adapters/files/files.js';
import { systemClock, systemTimers } from '../../src/adapters/system/clock.js';
import { startInProcessProxy } from '../app/in-process-proxy.js';
import { startCollector } from '../support/otlp-collector.js';

type Lie = (req: IncomingMessage, res: ServerResponse) => unknown;

const lies: readonly (readonly [name: string, lie: Lie, kind: string, why: RegExp])[] = [
  ['a redirect', (_, res) => res.writeHead(307, { location: '/v1/other' }).end(), 'failed', /status 307/],
  ['an answer without end', (_, res) => endless(res), 'failed', /larger than 64 KiB/],
  ['silence', () => undefined, 'later', /./],
  ['a body that stops', (_, res) => res.writeHead(200, { 'content-length': '9' }).write('x'), 'later', /./],
  ['503', (_, res) => res.writeHead(503).end(), 'later', /status 503/],
  ['400', (_, res) => res.writeHead(400).end('hush-answer'), 'failed', /^the collector answered with status 400$/],
  ['a reset', (req) => req.socket.destroy(), 'later', /./],
];

function endless(res: ServerResponse): void {
  res.writeHead(200);
  const write = (): void => {
    if (!res.destroyed) res.write(Buffer.alloc(64 * 1024), () => setImmediate(write));
  };
  write();
}

for (const [name, lie, kind, why] of lies) {
  t.test(name, async (t) => {
    const collector = await startCollector(t);
    collector.behave(lie);
    const settings = { protocol: 'http/json', headers: [], headersFile: null, caFile: null, timeoutMs: 300 } as const;
    const sender = new OtlpSender(settings, localFiles);
    const sent = await sender.send(`${collector.url}/v1/traces`, Buffer.from('{}'));
    await sender.close();
    t.equal(sent.kind, kind);
    t.match('why' in sent ? sent.why : '', why);
    t.equal(collector.exports.length, 1, 'nothing is followed');
  });
}

t.test('Retry-After is read', async (t) => {
  const collector = await startCollector(t);
  collector.behave((_, res) => res.writeHead(429, { 'retry-after': '7' }).end());
  const settings = { protocol: 'http/json', headers: [], headersFile: null, caFile: null, timeoutMs: 300 } as const;
  const sender = new OtlpSender(settings, localFiles);
  t.match(await sender.send(collector.url, Buffer.from('{}')), { kind: 'later', afterMs: 7_000 });
  await sender.close();
});

function queueOf(send: (items: readonly number[]) => Promise<ExportOutcome>): ExportQueue<number> {
  const limits = { maxItems: 10, maxBatch: 5, delayMs: 1 };
  return new ExportQueue({
    signal: 'traces',
    limits,
    clock: systemClock,
    timers: systemTimers,
    random: () => 0.5,
    send,
  });
}

t.test('a queue has its bound, and counts what it drops', async (t) => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const queue = queueOf(async () => {
    await held;
    return { kind: 'taken', rejected: 0 };
  });
  for (let i = 0; i < 100; i += 1) queue.add(i);
  t.match(queue.state(), { waiting: 10, dropped: 85, exported: 0 });
  release();
  await queue.close(1_000);
  t.match(queue.state(), { waiting: 0, dropped: 85, exported: 15, failed: 0 });
});

t.test('an end waits no longer than it may, and counts what is left', async (t) => {
  // Timers of the product keep no process alive.
  const awake = setInterval(() => undefined, 1_000);
  t.teardown(() => clearInterval(awake));
  const queue = queueOf(() => new Promise(() => undefined));
  for (let i = 0; i < 8; i += 1) queue.add(i);
  await queue.close(20);
  t.match(queue.state(), { waiting: 0, failed: 3 });
});

t.test('a part that the collector rejects is counted as such, and never more than there was', async (t) => {
  const queue = queueOf(() => Promise.resolve({ kind: 'taken', rejected: 1e9 }));
  queue.add(1);
  await queue.close(1_000);
  t.match(queue.state(), { rejected: 1, exported: 0, lastError: 'the collector rejected a part' });
});

t.test('requests are served while the collector says nothing, and an end comes in time', async (t) => {
  const collector = await startCollector(t);
  collector.behave(() => undefined);
  const proxy = await startInProcessProxy(t, {
    config: { telemetry: { otlp: { endpoint: collector.url }, traces: { ratio: 1 } } },
  });
  for (let i = 0; i < 5; i += 1) t.equal((await proxy.request({ path: '/orders' })).status, 200);
  t.match(proxy.app.status().telemetry, { endpoint: collector.url, signals: [{ signal: 'traces' }] });
  await proxy.app.stop();
  t.pass('it ended');
});

const answers: readonly (readonly [protocol: string, body: string | Buffer])[] = [
  ['http/json', '{"partialSuccess":{"rejectedSpans":-5,"errorMessage":"hush"}}'],
  ['http/json', '{"partialSuccess":{"rejectedSpans":1e999}}'],
  ['http/json', '{"partialSuccess":{"rejectedSpans":"99999999999999999999"}}'],
  ['http/json', '{"partialSuccess":{"rejectedSpans":{"valueOf":"hush"}}}'],
  ['http/json', '{"partialSuccess":null}'],
  ['http/json', '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'],
  ['http/json', 'null'],
  ['http/json', '[[[[[["hush"'],
  ['http/protobuf', Buffer.from('0a1208ffffffffffffffffff011a0568757368', 'hex')],
  ['http/protobuf', Buffer.from('0affffffff7f', 'hex')],
  ['http/protobuf', Buffer.alloc(60_000, 0x0b)],
];

const missing = { exported: NaN, failed: NaN, rejected: NaN, last_error: null };

for (const [at, [protocol, body]] of answers.entries()) {
  t.test(`a response that lies is counted within what was sent: ${protocol}, ${String(at)}`, async (t) => {
    const collector = await startCollector(t);
    collector.behave((_, res) => res.writeHead(200).end(body));
    const proxy = await startInProcessProxy(t, {
      config: { telemetry: { otlp: { endpoint: collector.url, protocol }, traces: { ratio: 1 } } },
    });
    t.equal((await proxy.request({ path: '/orders' })).status, 200);
    await proxy.app.stop();
    const { signals = [] } = proxy.app.status().telemetry ?? {};
    const [{ exported, failed, rejected, last_error: lastError } = missing] = signals;
    t.equal(exported + failed + rejected, 2, 'two spans');
    t.ok([exported, failed, rejected].every((count) => count >= 0));
    t.notMatch(lastError ?? '', /hush/);
    t.notOk('polluted' in {});
  });
}
