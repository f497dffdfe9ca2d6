import { createHash } from 'node:crypto';
import t from 'tap';
import type { Complete, Mark, Release, Reserve } from '../../../src/decision/idempotency/record.js';
import type { ReservationScope } from '../../../src/decision/idempotency/scope.js';
import type { ReservationStore } from '../../../src/ports/idempotency.js';
import { until } from '../../support/until.js';
import { startReservingProxy } from './reserving-proxy.js';

t.test('200 identical requests at once: one execution, every response 409 or the result', async (t) => {
  const proxy = await startReservingProxy(t);
  proxy.receiver.behave((req, res) => {
    req
      .resume()
      .on('end', () => setTimeout(() => res.writeHead(201, { 'Content-Type': 'text/plain' }).end('made'), 30));
  });
  const answers = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => proxy.write({ key: i % 2 === 0 ? 'burst' : '"burst"' })),
  );
  t.equal(proxy.executions().length, 1);
  for (const answer of answers) {
    if (answer.status === 409) t.match(JSON.parse(answer.text), { type: 'urn:sallyport:idempotency-in-progress' });
    else t.match({ status: answer.status, text: answer.text }, { status: 201, text: 'made' });
  }
  t.equal(
    answers.filter((answer) => answer.status === 201 && answer.field('Idempotent-Replayed') === null).length,
    1,
    'one of them ran it',
  );
  await until('everything to be over', proxy.isIdle);
});

t.test('of what a caller sends, and of tokens, nothing reaches the store but hashes', async (t) => {
  const seen: unknown[] = [];
  const proxy = await startReservingProxy(t, { watch: (inner) => watched(inner, seen) });
  const secrets = {
    key: 'key-secret-1234',
    body: 'body-secret-1234',
    query: 'query-secret-1234',
    jti: 'jti-secret-1234',
    sub: 'migration',
    cookie: 'cookie-secret-1234',
    answerCookie: 'answer-cookie-1234',
    listed: 'listed-secret-1234',
  };
  proxy.receiver.behave((req, res) => {
    req
      .resume()
      .on('end', () =>
        res
          .writeHead(200, { 'Set-Cookie': secrets.answerCookie, 'WWW-Authenticate': secrets.answerCookie })
          .end('kept answer'),
      );
  });
  const answer = await proxy.write({
    path: `/fields?q=${secrets.query}`,
    key: secrets.key,
    body: secrets.body,
    claims: { sub: secrets.sub, jti: secrets.jti },
    headers: { Cookie: secrets.cookie, 'If-Match': secrets.listed },
  });
  t.equal(answer.status, 200);
  await proxy.write({ path: '/both', key: secrets.key, claims: { jti: secrets.jti } });
  const dump = seen.map(everything).join('\n');
  t.match(dump, /kept answer/, 'it is all there');
  const [header, payload, signature] = proxy.authorization().Authorization.replace('Bearer ', '').split('.');
  const forbidden = [
    ...Object.values(secrets),
    'Bearer',
    'checkout',
    header ?? '',
    (payload ?? '').slice(0, 20),
    signature ?? '',
  ];
  for (const secret of forbidden) t.notOk(dump.includes(secret), secret);
  for (const secret of Object.values(secrets)) {
    t.notOk(
      dump.includes(createHash('sha256').update(secret).digest('base64url')),
      'nor a hash that a guess would find without the rest of the scope',
    );
  }
  t.same(proxy.logged, []);
  const logged = JSON.stringify(proxy.records);
  for (const secret of [secrets.key, secrets.body, secrets.query, secrets.jti, secrets.cookie, secrets.listed]) {
    t.notOk(logged.includes(secret));
  }
});

/** Remembers everything that the store is given. */
function watched(inner: ReservationStore, seen: unknown[]): ReservationStore {
  const see =
    <C, R>(run: (scope: ReservationScope, command: C) => R) =>
    (scope: ReservationScope, command: C): R => {
      seen.push(scope, command);
      return run(scope, command);
    };
  return {
    ...inner,
    reserve: see<Reserve, ReturnType<ReservationStore['reserve']>>(inner.reserve),
    complete: see<Complete, ReturnType<ReservationStore['complete']>>(inner.complete),
    release: see<Release, ReturnType<ReservationStore['release']>>(inner.release),
    mark: see<Mark, ReturnType<ReservationStore['mark']>>(inner.mark),
  };
}

/** Every text and every byte in it. */
function everything(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value)
      .map(([name, inner]) => `${name}=${everything(inner)}`)
      .join(' ');
  }
  return String(value);
}
