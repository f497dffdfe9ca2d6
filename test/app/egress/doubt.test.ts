/** What callers of the calling side are told of writes that may have been carried out, and that none runs in part. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { listen } from '../../support/listening.js';
import { connectRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startCalling, startTarget, type Answer } from './calling.js';

const own503 = { 'Proxy-Status': 'sallyport; error=proxy_internal_error', 'Retry-After': '0' };

const cutOff: Answer = (_seen, _number, res) => void res.socket?.destroy();

/** What follows an attempt that may have been carried out, each of which says that it was not. */
const refusals: readonly (readonly [string, Answer])[] = [
  ["a Sallyport's 503", (_seen, _number, res) => res.writeHead(503, own503).end('no')],
  ['425', (_seen, _number, res) => res.writeHead(425).end('early')],
  ['429', (_seen, _number, res) => res.writeHead(429, { 'Retry-After': '0' }).end('many')],
  ['401', (_seen, _number, res) => res.writeHead(401).end('who?')],
  ['a 401 too long to be held', (_seen, _number, res) => res.writeHead(401).end('x'.repeat(50_000))],
];

t.test('once a write is in doubt, nothing says that it was not carried out', async (t) => {
  for (const [name, refusal] of refusals) {
    const target = await startTarget(t, (seen, number, res) => (number === 1 ? cutOff : refusal)(seen, number, res));
    const { call } = await startCalling(t, target.url, { idempotency: 'generate' });
    const response = await call('/orders/1');
    t.equal(response.status, 502, name);
    t.match(response.text, /it may have acted/, name);
    t.equal(response.field('x-sallyport-attempts'), String(target.seen.length), name);
    t.ok(response.field('x-sallyport-idempotency-key'), `${name}: the caller may ask again`);
    const read = await call('/orders/1', { method: 'GET' });
    t.not(read.status, 502, `${name}: a read is never in doubt`);
  }
});

t.test('nor where the target is gone by then, or a 504 came before', async (t) => {
  for (const [status, first] of [
    [502, cutOff],
    [504, ((_seen, _number, res) => res.writeHead(504, { Connection: 'close' }).end('late')) satisfies Answer],
  ] as const) {
    const target = await startTarget(t, (seen, number, res) => {
      res.socket?.once('close', () => undefined);
      target.server.close();
      first(seen, number, res);
    });
    const { call } = await startCalling(t, target.url, { retries: { attempts: 2 } });
    const response = await call('/orders/1', { headers: { 'Idempotency-Key': 'k', Connection: 'close' } });
    t.equal(response.status, status);
    t.equal(response.field('x-sallyport-attempts'), '2');
    t.equal(response.field('x-sallyport-not-retried'), 'attempts');
  }
});

t.test('a body that outgrows what is held while a retry waits is sent whole or not at all', async (t) => {
  const bodies: (string | null)[] = [];
  const server: Server = createServer((req, res) => {
    const number = bodies.push(null);
    const chunks: Buffer[] = [];
    req.on('error', () => undefined);
    // An early response that does not end: the body would be taken on.
    if (number === 1) req.once('data', () => res.writeHead(503, { ...own503, 'Retry-After': '1' }).write('no'));
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      bodies[number - 1] = Buffer.concat(chunks).toString();
      if (number > 1) res.end('done');
    });
  });
  const { port: targetPort } = await listen(t, server);
  const { port, proxy } = await startCalling(t, `http://127.0.0.1:${String(targetPort)}`, { hold_body: '64B' });
  const connection = await connectRaw(port);
  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
  const head = 'POST /orders/1 HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n';
  connection.write(`${head}${chunk('first,')}`);
  await until('the target was asked', () => bodies.length > 0);
  await sleep(200);
  connection.write(chunk('x'.repeat(100)));
  await sleep(200);
  connection.write(`${chunk('last')}0\r\n\r\n`);
  const response = await connection.readResponse();
  connection.end();
  t.equal(response?.status, 200);
  t.equal(response?.field('x-sallyport-attempts'), '2');
  t.same(bodies, [null, `first,${'x'.repeat(100)}last`]);
  await until('nothing is held', () => proxy.app.status().egress?.held_bytes === 0);
});

t.test('a token that is refused is dropped, also where the request cannot be sent again', async (t) => {
  for (const [name, page, body] of [
    ['a body that is not held', 'who?', 'x'.repeat(100)],
    ['a long page', 'x'.repeat(50_000), 'short'],
  ] as const) {
    const target = await startTarget(t, ({ headers }, _number, res) => {
      if (headers.authorization === 'Bearer token.two.x') res.end('done');
      else res.writeHead(401).end(page);
    });
    const { call, tokenFile } = await startCalling(t, target.url, { hold_body: '64B' });
    t.equal((await call('/orders/1', { method: 'GET' })).status, 401);
    writeFileSync(tokenFile, 'token.two.x');
    // Sooner than the file is read again by itself.
    const response = await call('/orders/1', { body });
    t.equal(response.status === 200 || (await call('/orders/1', { body })).status === 200, true, name);
  }
});

t.test('no room to read a body for its name is no fault of the body', async (t) => {
  const target = await startTarget(t, (_seen, _number, res) => res.end('done'));
  const { call } = await startCalling(t, target.url, { key_from: { json: '/id' } }, { hold_bodies: '80KiB' });
  const response = await call('/orders/1', { body: `{"id":"1","x":"${'x'.repeat(100_000)}"}` });
  t.equal(response.status, 503);
  t.match(response.text, /urn:sallyport:overloaded/);
  t.equal(target.seen.length, 0);
});

t.test('a response that is held back and does not end is judged by its head', async (t) => {
  const broken: string[] = [];
  const trickle = (url: string, res: ServerResponse, head: Record<string, string>, status: number): void => {
    res.writeHead(status, { 'Content-Length': '5000', ...head });
    const beat = setInterval(() => res.write('x'), 100);
    res.on('close', () => {
      clearInterval(beat);
      broken.push(url);
    });
  };
  const problem = { ...own503, 'Content-Type': 'application/problem+json' };
  const target = await startTarget(t, (seen, number, res) => {
    const { url, headers } = seen;
    if (url === '/busy') trickle(url, res, problem, 409);
    else if (url === '/late' && number === 2) cutOff(seen, number, res);
    else if (url === '/late') trickle(url, res, own503, 503);
    else if (headers.authorization === 'Bearer token.two.x') res.end('done');
    else trickle(url, res, {}, 401);
  });
  const { port, tokenFile } = await startCalling(t, target.url, { idempotency: 'generate' });
  const statusOf = async (path: string): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${String(port)}${path}`, { method: 'POST' });
    await response.body?.cancel();
    return response.status;
  };
  t.equal(await statusOf('/orders/busy'), 409, 'where an attempt may be under way');
  t.equal(await statusOf('/orders/late'), 502, 'a doubt is told at once');
  const ends = (): number => broken.filter((url) => url === '/late').length;
  await until('what nobody gets keeps no connection', () => ends() === 2);
  const told = statusOf('/orders/who');
  await until('the token was not taken', () => target.seen.some(({ url }) => url === '/who'));
  writeFileSync(tokenFile, 'token.two.x');
  t.equal(await told, 200, 'where another token is asked for');
});
