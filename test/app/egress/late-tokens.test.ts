/** Retries that need another token, of an issuer that takes its time. */
import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { listen } from '../../support/listening.js';
import type { RawResponse } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { startCalling, startTarget, type Answer } from './calling.js';

const slowMs = 1_500;

/** Calls a target once, with an issuer whose tokens from `slowFrom` on are slow. */
async function callOnce(t: Scope, slowFrom: number, within: string, answer: Answer): Promise<RawResponse & Timed> {
  const target = await startTarget(t, answer);
  let issued = 0;
  const issuer = createServer((_req, res) => {
    issued += 1;
    const token = { access_token: `had-${String(issued)}`, token_type: 'Bearer', expires_in: 60 };
    setTimeout(() => res.end(JSON.stringify(token)), issued < slowFrom ? 0 : slowMs);
  });
  const { port } = await listen(t, issuer);
  const url = `http://127.0.0.1:${String(port)}`;
  const secretFile = join(tempDir(t), 'secret');
  writeFileSync(secretFile, 'a secret of the client', { mode: 0o600 });
  const oauth = { issuer: url, token_url: `${url}/token`, client_id: 'me', auth: { secret_file: secretFile } };
  const limits = { idempotency: 'generate', retries: { within } };
  const { call } = await startCalling(t, target.url, limits, { tokens: { own: { oauth } } });
  const startedMs = performance.now();
  const response = await call('/orders/1');
  return { ...response, tookMs: performance.now() - startedMs, sent: target.seen.length };
}

interface Timed {
  readonly tookMs: number;
  /** How many requests the target got. */
  readonly sent: number;
}

const refuse: Answer = (_seen, _number, res) => res.writeHead(401).end('who?');

t.test('a retry whose token does not come within its time is not sent, and the 401 is passed on', async (t) => {
  const { status, text, tookMs, sent, field } = await callOnce(t, 2, '400ms', refuse);
  t.match([status, text], [401, 'who?']);
  t.ok(tookMs < slowMs - 300, `${String(tookMs)} ms`);
  t.same([field('x-sallyport-attempts'), field('x-sallyport-not-retried'), sent], ['1', 'time', 1]);
});

t.test('nor where the 401 is not held, or a doubt came before', async (t) => {
  const long = await callOnce(t, 2, '400ms', (_seen, _number, res) => res.writeHead(401).end('x'.repeat(50_000)));
  t.match([long.status, long.text], [503, /token_unavailable|token-unavailable/]);
  t.same([long.field('x-sallyport-not-retried'), long.sent], ['time', 1]);
  const doubtful = await callOnce(t, 2, '700ms', (seen, number, res) => {
    if (number === 1) res.socket?.destroy();
    else refuse(seen, number, res);
  });
  t.same([doubtful.status, doubtful.field('x-sallyport-not-retried'), doubtful.sent], [502, 'time', 2]);
  t.ok(Math.max(long.tookMs, doubtful.tookMs) < slowMs - 300);
});

t.test('one whose token comes in time is sent, and the first attempt waits for its token', async (t) => {
  const again = await callOnce(t, 2, '10s', (seen, number, res) => {
    if (number === 1) refuse(seen, number, res);
    else res.end(String(seen.headers.authorization));
  });
  t.same([again.status, again.text, again.field('x-sallyport-not-retried')], [200, 'Bearer had-2', null]);
  const first = await callOnce(t, 1, '400ms', (_seen, _number, res) => res.end('done'));
  t.same([first.status, first.sent], [200, 1]);
  t.ok(first.tookMs > slowMs - 100);
});
