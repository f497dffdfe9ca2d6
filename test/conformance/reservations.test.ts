/** docs/contract.md 2, 3.7, 3.9 and 4: writes that are reserved by their key, and tokens that pass once. */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import t from 'tap';
import { idempotencyKeys, isFieldText } from '../support/attacks/idempotency-keys.js';
import { connectRaw, requestBytes, type RawResponse } from '../support/raw-client.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { until } from '../support/until.js';
import { startProxyProcess, type ConfigTree } from '../support/proxy-process.js';
import { checkRefusal, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

const approved: ConfigTree = { methods: ['POST'], subjects: ['checkout', 'migration'], permissions: [] };
const proxy = await startProxyProcess(t, {
  receiver: await startUpstreamServer(t, { alike: true }),
  config: {
    store: { memory: {} },
    upstream: { connect_timeout: '500ms', response_timeout: '500ms' },
    routes: [
      { name: 'required', path: '/required', ...approved, idempotency: 'required' },
      { name: 'optional', path: '/optional', ...approved, idempotency: 'optional' },
      { name: 'unreserved', path: '/none', ...approved, idempotency: 'none' },
      { name: 'single', path: '/single', ...approved, idempotency: 'none', single_use: true },
      { name: 'both', path: '/both', ...approved, idempotency: 'optional', single_use: true },
      {
        name: 'settings',
        path: '/settings/{id}',
        ...approved,
        idempotency: {
          mode: 'required',
          retention: '2h',
          operation: 'shared',
          fields: ['If-Match'],
          store_headers: ['X-Total'],
          release_on: [409],
          receiver: 'reports',
          max_body: '1KiB',
          max_stored_response: '1KiB',
        },
      },
    ],
  },
});

interface Write {
  readonly path?: string;
  readonly key?: string | null;
  readonly body?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

async function write({
  path = '/required',
  key = randomUUID(),
  body = '{"item":1}',
  claims,
  headers,
}: Write = {}): Promise<RawResponse> {
  const keyField = key === null ? {} : { 'Idempotency-Key': key };
  if (key !== null) proxy.markSecret(key);
  return proxy.request({
    method: 'POST',
    path,
    headers: { ...proxy.authorization(claims), ...keyField, ...headers },
    body,
  });
}

function recordOf({ text }: RawResponse): string {
  return (JSON.parse(text) as { record?: string }).record ?? '';
}

t.beforeEach(() => {
  proxy.receiver.behave(null);
  proxy.receiver.requests.length = 0;
});

t.test('a write with a key runs once; a retry gets its response, marked as such', async (t) => {
  const key = randomUUID();
  const first = await write({ key });
  t.equal(first.status, 200);
  const retry = await write({ key, claims: { jti: 'another' } });
  t.equal(retry.status, 200);
  t.ok(retry.body.equals(first.body));
  t.equal(retry.field('Idempotent-Replayed'), 'true');
  t.equal(retry.field('Proxy-Status'), null);
  t.equal(retry.field('Cache-Control'), 'no-store');
  t.equal(retry.field('Idempotency-Key'), key);
  t.equal(proxy.receiver.requests.length, 1);
  const line = await proxy.logOf(retry.field('X-Request-Id') ?? '');
  t.match(line, { decision: 'replayed', reason: null, upstream_ms: null, record: /^[\w-]{43}\.[\w-]{43}$/ });
  t.equal(await proxy.metric('sallyport_requests_total{route="required",outcome="replayed"}'), 1);
  t.equal(await proxy.metric('sallyport_reservations_total{result="replayed"}'), 1);
});

t.test('required, optional and none', async (t) => {
  checkRefusal(t, await write({ key: null }), refusals.idempotencyKeyMissing, 'required');
  t.equal((await write({ path: '/optional', key: null })).status, 200);
  const key = randomUUID();
  for (const [path, replayed] of [
    ['/required', 'true'],
    ['/optional', 'true'],
    ['/none', null],
  ] as const) {
    await write({ path, key });
    t.equal((await write({ path, key })).field('Idempotent-Replayed'), replayed, path);
  }
});

t.test('who is refused reserves nothing', async (t) => {
  for (const path of ['/required', '/both']) {
    const key = randomUUID();
    const request = { method: 'POST', path, body: '{"item":1}', headers: { 'Idempotency-Key': key } };
    checkRefusal(t, await proxy.request(request), refusals.unauthorized, `${path}, nobody`);
    checkRefusal(
      t,
      await write({ path, key, claims: { sub: 'stranger', jti: randomUUID() } }),
      refusals.forbidden,
      `${path}, a stranger`,
    );
    const claims = { jti: randomUUID() };
    const first = await write({ path, key, claims });
    t.equal(first.status, 200, path);
    t.equal(first.field('Idempotent-Replayed'), null, `${path}: the key was free`);
    if (path === '/both') {
      checkRefusal(t, await write({ path, claims }), refusals.unauthorized, 'the token again, with another key');
    }
  }
  t.equal(proxy.receiver.requests.length, 2);
});

t.test('a malformed key is 400', async (t) => {
  const malformed = idempotencyKeys.filter(({ expected, value }) => expected === null && isFieldText(value));
  for (const { name, value } of [...malformed, { name: 'a parameter behind a blank', value: '"a"; p=1' }]) {
    checkRefusal(t, await write({ key: value }), refusals.idempotencyKeyInvalid, name);
  }
  t.equal(proxy.receiver.requests.length, 0);
});

t.test('409 in progress, 422 for another request', async (t) => {
  const key = randomUUID();
  const held: ServerResponse[] = [];
  proxy.receiver.behave((req, res) => {
    req.resume().on('end', () => held.push(res));
  });
  const first = write({ key });
  await until('the receiver to have it', () => held.length === 1);
  const again = await write({ key });
  checkRefusal(t, again, { ...refusals.idempotencyInProgress, record: recordOf(again) }, 'in progress');
  t.match(again.field('Retry-After'), /^\d+$/);
  checkRefusal(t, await write({ key, body: 'other' }), refusals.idempotencyKeyReused, 'another request');
  held[0]?.end('done');
  t.equal((await first).text, 'done');
  checkRefusal(t, await write({ key, body: 'other' }), refusals.idempotencyKeyReused, 'another request, later');
  t.equal((await write({ key })).text, 'done');
  t.equal(held.length, 1);
});

t.test('502 and 504 name the record, which is 409 from then on', async (t) => {
  for (const [behave, refusal] of [
    ['reset', refusals.upstreamFailed],
    ['silence', refusals.upstreamTimeout],
  ] as const) {
    const key = randomUUID();
    proxy.receiver.behave((req) => {
      if (behave === 'reset') req.socket.destroy();
      else req.resume();
    });
    const first = await write({ key });
    t.match(recordOf(first), /^[\w-]{43}\.[\w-]{43}$/);
    checkRefusal(t, first, { ...refusal, record: recordOf(first) }, behave);
    proxy.receiver.behave(null);
    const retry = await write({ key });
    checkRefusal(t, retry, { ...refusals.idempotencyOutcomeUnknown, record: recordOf(first) }, 'outcome unknown');
  }
  t.equal(proxy.receiver.requests.length, 2);
});

t.test('409 where the result cannot be shown again', async (t) => {
  const key = randomUUID();
  proxy.receiver.behave((req, res) => {
    req.resume().on('end', () => res.end(Buffer.alloc(300 * 1024)));
  });
  t.equal((await write({ key })).body.length, 300 * 1024);
  const retry = await write({ key });
  checkRefusal(t, retry, { ...refusals.idempotencyNotReplayable, record: recordOf(retry) }, 'not replayable');
});

t.test(
  'retention, operation, fields, store_headers, release_on, receiver, max_body and max_stored_response of a route',
  async (t) => {
    const path = '/settings/1';
    const answer = (status: number, headers: Record<string, string>, body = 'x'): void =>
      proxy.receiver.behave((req, res) => {
        req.resume().on('end', () => res.writeHead(status, headers).end(body));
      });
    const key = randomUUID();
    answer(200, { 'X-Total': '7', 'X-Other': '8' });
    await write({ path, key });
    const kept = await write({ path, key });
    t.match({ total: kept.field('X-Total'), other: kept.field('X-Other') }, { total: '7', other: null });
    checkRefusal(
      t,
      await write({ path, key, headers: { 'If-Match': '"1"' } }),
      refusals.idempotencyKeyReused,
      'a listed field',
    );
    checkRefusal(
      t,
      await write({ path: '/settings/2', key }),
      refusals.idempotencyKeyReused,
      'one operation, another path',
    );
    checkRefusal(t, await write({ path, body: 'x'.repeat(1025) }), refusals.bodyTooLarge, 'max_body');

    for (const [status, headers] of [
      [409, {}],
      [200, { 'Idempotency-Outcome': 'not-applied' }],
    ] as const) {
      const released = randomUUID();
      answer(status, headers);
      t.equal((await write({ path, key: released })).status, status);
      answer(201, {});
      t.equal((await write({ path, key: released })).status, 201, 'the key was free');
    }
    answer(429, {});
    const limited = randomUUID();
    await write({ path, key: limited });
    t.equal(
      (await write({ path, key: limited })).field('Idempotent-Replayed'),
      'true',
      'release_on replaces the usual statuses',
    );

    answer(200, {}, 'x'.repeat(1025));
    const large = randomUUID();
    await write({ path, key: large });
    t.match(JSON.parse((await write({ path, key: large })).text), {
      type: 'urn:sallyport:idempotency-result-not-replayable',
    });
  },
);

t.test('a single-use token passes once, for any request', async (t) => {
  const claims = { jti: randomUUID() };
  t.equal((await write({ path: '/single', key: null, claims })).status, 200);
  checkRefusal(t, await write({ path: '/single', key: null, claims }), refusals.unauthorized, 'again');
  checkRefusal(
    t,
    await write({ path: '/single', key: null, claims, body: 'other' }),
    refusals.unauthorized,
    'another request',
  );
  checkRefusal(
    t,
    await write({ path: '/single', key: null, claims: { jti: undefined } }),
    refusals.unauthorized,
    'without jti',
  );
  t.equal(proxy.receiver.requests.length, 1);
});

t.test('a caller that leaves does not cancel a reserved write', async (t) => {
  const key = randomUUID();
  const held: ServerResponse[] = [];
  proxy.receiver.behave((req, res) => {
    req.resume().on('end', () => held.push(res));
  });
  const connection = await connectRaw(proxy.port);
  const headers = { ...proxy.authorization(), 'Idempotency-Key': key };
  connection.write(requestBytes(proxy.port, { method: 'POST', path: '/required', headers, body: '{"item":1}' }));
  await until('the receiver to have it', () => held.length === 1);
  connection.end();
  await until(
    'it to be over',
    async () => (await proxy.metric('sallyport_requests_total{route="required",outcome="forwarded"}')) > 0,
  );
  held[0]?.end('done');
  await until('its result', async () => (await write({ key })).text === 'done');
  t.equal(held.length, 1);
});

t.test('the upstream learns of the reservation from us, not from the caller', async (t) => {
  await write({ headers: { 'Idempotency-Record': 'forged', 'Idempotency-Fence': '0', idempotency_record: 'forged' } });
  const [received] = proxy.receiver.requests;
  t.match(received?.field('Idempotency-Record'), [/^[\w-]{43}\.[\w-]{43}$/]);
  t.match(received?.field('Idempotency-Fence'), [/^\d+$/]);
});

checkSilence(t, proxy);
