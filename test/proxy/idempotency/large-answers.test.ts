import { createHash, randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:http2';
import t from 'tap';
import { BufferedResponse } from '../../../src/proxy/idempotency/buffered-response.js';
import { listen } from '../../support/listening.js';
import { connectRaw, requestBytes } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { commandLost, gate } from './faulty-store.js';
import { answering, startReservingProxy, writeOf } from './reserving-proxy.js';

const notReplayable = {
  type: 'urn:sallyport:idempotency-result-not-replayable',
  status: 409,
  record: /^[\w-]{43}\.[\w-]{43}$/,
};

t.test('up to the limit a response is kept, beyond it its status is, and it is passed on whole', async (t) => {
  const proxy = await startReservingProxy(t);
  for (const [bytes, framing] of [
    [1024, 'length'],
    [1025, 'length'],
    [1024, 'chunks'],
    [1025, 'chunks'],
  ] as const) {
    const body = randomBytes(bytes);
    proxy.receiver.behave((req, res) => {
      req.resume().on('end', () => {
        res.writeHead(201, framing === 'length' ? { 'Content-Length': bytes } : {});
        res.write(body.subarray(0, 500));
        res.end(body.subarray(500));
      });
    });
    const write = { path: '/small', key: `${framing}-${bytes}` };
    const first = await proxy.write(write);
    t.equal(first.status, 201);
    t.ok(first.complete && first.body.equals(body), `${framing} ${bytes}`);
    await until('it to be over', proxy.isIdle);
    const retry = await proxy.write(write);
    if (bytes === 1024) t.ok(retry.field('Idempotent-Replayed') === 'true' && retry.body.equals(body));
    else t.match(JSON.parse(retry.text), notReplayable);
  }
  t.equal(proxy.executions().length, 4);
});

t.test('fields over 8 KiB are not kept either; the caller gets them', async (t) => {
  const proxy = await startReservingProxy(t);
  proxy.receiver.behave(answering(200, { Link: ['<a>', 'x'.repeat(8 * 1024)] }, 'small'));
  const first = await proxy.write({ key: 'k' });
  t.equal(first.text, 'small');
  t.equal(first.field('Link')?.length, 8 * 1024 + 5);
  t.match(JSON.parse((await proxy.write({ key: 'k' })).text), notReplayable);
});

t.test('a response over the limit reaches nobody before its status is written down', async (t) => {
  const proxy = await startReservingProxy(t);
  const held = gate();
  proxy.store.behave('complete', held.fault);
  proxy.receiver.behave(answering(200, { 'Content-Length': '300000' }, Buffer.alloc(300_000, 'x')));
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(requestBytes(proxy.port, writeOf(proxy, { key: 'k' })));
  await until('the status to be written', () => held.waiting() === 1);
  await proxy.write({ path: '/plain', key: null });
  t.equal(connection.pending().length, 0);
  held.open();
  t.equal((await connection.readResponse())?.body.length, 300_000);
});

t.test(
  'where the status cannot be written down, the caller gets the response, and the store the status later',
  async (t) => {
    const proxy = await startReservingProxy(t);
    proxy.store.behave('complete', commandLost);
    const body = randomBytes(2_000_000);
    proxy.receiver.behave(answering(200, {}, body));
    t.ok((await proxy.write({ key: 'k' })).body.equals(body));
    proxy.store.behave('complete', null);
    await until('the status', () => proxy.results.includes('tombstone'));
    t.match(JSON.parse((await proxy.write({ key: 'k' })).text), notReplayable);
  },
);

t.test('a long response waits for a caller that does not read, and reaches it whole', async (t) => {
  const proxy = await startReservingProxy(t);
  // More than the buffers of all sockets between take.
  const total = 64 * 1024 * 1024;
  const chunk = randomBytes(64 * 1024);
  const [sent, received] = [createHash('sha256'), createHash('sha256')];
  let written = 0;
  proxy.receiver.behave((req, res) => {
    req.resume();
    res.writeHead(200, { 'Content-Length': total });
    const more = (): void => {
      while (written < total) {
        written += chunk.length;
        sent.update(chunk);
        if (!res.write(chunk)) {
          res.once('drain', more);
          return;
        }
      }
      res.end();
    };
    more();
  });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.socket.removeAllListeners('data').pause();
  connection.write(requestBytes(proxy.port, writeOf(proxy, { key: 'k' })));
  await until('the status to be written down', () => proxy.results.includes('tombstone'));
  // What the sockets between hold is all that is under way: then it stands still.
  let before = -1;
  await until('the receiver to be stopped', () => {
    const still = written === before;
    before = written;
    return still && written > 256 * 1024;
  });
  t.ok(written < total, `it is stopped after ${written} bytes`);
  let head = '';
  let bytes = 0;
  connection.socket.on('data', (data: Buffer) => {
    let body = data;
    if (!head.includes('\r\n\r\n')) {
      head += data.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      body = Buffer.from(head.slice(head.indexOf('\r\n\r\n') + 4), 'latin1');
    }
    bytes += body.length;
    received.update(body);
  });
  connection.socket.resume();
  await until('all of it', () => bytes >= total);
  t.equal(bytes, total);
  t.equal(received.digest('hex'), sent.digest('hex'));
  await until('it to be over', proxy.isIdle);
});

t.test('an endless response is streamed on until its time is up, and the caller sees that it is cut', async (t) => {
  const proxy = await startReservingProxy(t, {
    config: { upstream: { connect_timeout: '100ms', response_timeout: '500ms' } },
  });
  proxy.receiver.behave((req, res) => {
    req.resume();
    endless(res);
  });
  const answer = await proxy.write({ key: 'k' });
  t.equal(answer.status, 200);
  t.equal(answer.complete, false, 'no clean end');
  t.ok(answer.body.length > 256 * 1024);
  await until('it to be over', proxy.isIdle);
  t.match(JSON.parse((await proxy.write({ key: 'k' })).text), notReplayable);
  await until('the record', () => proxy.records.some(({ reason }) => reason === 'upstream_timeout'));
});

t.test('an upstream that breaks off a long response: the caller sees the cut', async (t) => {
  const proxy = await startReservingProxy(t);
  proxy.receiver.behave((req, res) => {
    req.resume();
    res.writeHead(200, {});
    res.write(Buffer.alloc(400_000), () => res.socket?.destroy());
  });
  const answer = await proxy.write({ key: 'k' });
  t.equal(answer.status, 200);
  t.equal(answer.complete, false);
  t.match(JSON.parse((await proxy.write({ key: 'k' })).text), notReplayable);
});

t.test('a caller that leaves a long response: the upstream is let go, the status is kept', async (t) => {
  const proxy = await startReservingProxy(t);
  const answers: ServerResponse[] = [];
  proxy.receiver.behave((req, res) => {
    req.resume();
    answers.push(res);
    endless(res);
  });
  const connection = await connectRaw(proxy.port);
  connection.write(requestBytes(proxy.port, writeOf(proxy, { key: 'k' })));
  await until('the answer to come', () => connection.pending().length > 0);
  connection.end();
  await until('it to be over', () => proxy.isIdle() && answers[0]?.destroyed === true);
  t.match(JSON.parse((await proxy.write({ key: 'k' })).text), notReplayable);
  t.equal(answers.length, 1);
});

function endless(res: ServerResponse): void {
  res.writeHead(200, {});
  const more = (): void => {
    while (!res.destroyed && res.write(Buffer.alloc(16 * 1024))) continue;
    if (!res.destroyed) res.once('drain', more);
  };
  more();
}

t.test('over HTTP/2 a length that nobody can count to has nothing held without a bound', async (t) => {
  const receiver = createServer();
  let sentBytes = 0;
  receiver.on('stream', (stream) => {
    stream.on('error', () => undefined).respond({ ':status': 201, 'content-length': '9007199254740993' });
    const piece = Buffer.alloc(65_536);
    const goOn = (): void => {
      while (sentBytes < 60_000_000 && !stream.destroyed) {
        sentBytes += piece.length;
        if (!stream.write(piece)) return;
      }
    };
    stream.on('drain', goOn);
    goOn();
  });
  const upstreamUrl = `http://127.0.0.1:${String((await listen(t, receiver)).port)}`;
  const config = { upstream: { url: upstreamUrl, http2: true } };
  const proxy = await startReservingProxy(t, { upstreamUrl, config });
  t.equal((await proxy.write({ key: 'k' })).status, 502);
  await until('it to be over', proxy.isIdle);
  t.ok(sentBytes < 10_000_000, `${String(sentBytes)} bytes were sent`);
});

t.test('a response whose length cannot be read is too large to keep', (t) => {
  const write = {
    method: 'POST',
    preparation: { rules: { maxStoredResponseBytes: 10 } },
  } as unknown as ConstructorParameters<typeof BufferedResponse>[2];
  for (const [length, expected] of [
    ['10', false],
    ['11', true],
    ['9007199254740993', true],
  ] as const) {
    t.equal(new BufferedResponse(200, ['Content-Length', length], write).isTooLarge(), expected, length);
  }
  t.end();
});
