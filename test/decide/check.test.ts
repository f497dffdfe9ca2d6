/** Envoy's gRPC at the listener: a real client of `@grpc/grpc-js`, Envoy's schema as it is published. */
import { Client, compressionAlgorithms, credentials, status as codes, type ServiceError } from '@grpc/grpc-js';
import { constants } from 'node:http2';
import t from 'tap';
import { responses } from '../../src/decision/denial.js';
import { rsaKey } from '../support/keys.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { ask as askHttp2, connectHttp2 } from '../support/http2-client.js';
import { request } from '../support/raw-client.js';
import {
  checkClient,
  checkPath,
  checkRequest,
  described,
  readResponse,
  statusCodes,
  type CheckResponse,
} from './check-client.js';
import { identityNames, startDeciding, type Deciding } from './deciding.js';

const open = {
  methods: ['GET', 'POST'],
  subjects: ['checkout'],
  permissions: [],
  idempotency: { mode: 'none', because: 'tests' },
};
const routes = [
  { ...open, name: 'files', path: '/files/**' },
  { ...open, name: 'admin', path: '/admin/**', permissions: ['admin'] },
  { ...open, name: 'small', path: '/small', max_body: '1KiB' },
  { name: 'open', methods: ['GET'], path: '/open/**', access: 'public' },
  { ...open, name: 'limited', path: '/limited', limits: { requests_per_second: 1, burst: 1 } },
];

const prefixed = (message: Buffer, flag = 0): Buffer => {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flag);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
};

const asked = (proxy: Deciding['proxy'], path: string, headers: Record<string, string> = {}): Buffer =>
  checkRequest(described({ path, headers: { Authorization: `Bearer ${proxy.token()}`, ...headers } }));

const setIn = (response: CheckResponse | null): Record<string, string> =>
  Object.fromEntries((response?.okResponse?.headers ?? []).map(({ header: { key, value } }) => [key, value]));

t.test('an allow names what to set, in the place of what is there, and what to remove', async (t) => {
  const { proxy, decidePort } = await startDeciding(t, 'envoy', { routes });
  const check = checkClient(t, decidePort);
  const spoofed = {
    'X-Auth-Subject': 'root',
    X_Auth_Subject: 'root',
    'X-HTTP-Method-Override': 'PUT',
    'Remote-User': 'root',
    'X-Note': 'a',
  };
  const { response, code } = await check(asked(proxy, '/files/a?b=%20c', spoofed));
  t.equal(code, 0);
  t.equal(response?.status.code ?? 0, 0);
  t.equal(setIn(response)['x-auth-subject'], 'checkout');
  t.match(setIn(response)['x-request-id'], /./);
  for (const { append, appendAction } of response?.okResponse?.headers ?? []) {
    t.same(append, {}, 'false, for releases that know no action');
    t.equal(appendAction, 'OVERWRITE_IF_EXISTS_OR_ADD');
  }
  const removed = (response?.okResponse?.headersToRemove ?? []).map((name) => name.toLowerCase());
  for (const name of ['x_auth_subject', 'x-http-method-override', 'remote-user', 'authorization', 'x-auth-token-id']) {
    t.ok(removed.includes(name), name);
  }
  t.notOk(removed.includes('x-note'));
  for (const name of identityNames) {
    t.ok(setIn(response)[name.toLowerCase()] !== undefined || removed.includes(name.toLowerCase()), name);
  }
  t.match(proxy.logs().at(-1), { path: '/files/a', asked_by: 'envoy', decision: 'forwarded', status: 200 });
  t.equal(await proxy.metric('sallyport_decisions_total{form="envoy",outcome="forwarded"}'), 1);
});

t.test('a refusal has the sidecar’s status, headers and problem document', async (t) => {
  const { proxy, decidePort } = await startDeciding(t, 'envoy', { routes });
  const check = checkClient(t, decidePort);
  for (const [path, status, code] of [
    ['/admin/a', 403, codes.PERMISSION_DENIED],
    ['/unknown', 403, codes.PERMISSION_DENIED],
    ['/files/../admin/a', 400, codes.INTERNAL],
    ['/files/a%2fb', 400, codes.INTERNAL],
  ] as const) {
    const { response } = await check(asked(proxy, path));
    const denied = response?.deniedResponse;
    t.equal(statusCodes[denied?.status.code ?? ''], status, path);
    t.equal(response?.status.code, code);
    t.match(JSON.parse(denied?.body ?? '') as unknown, { status });
    const headers = new Map(denied?.headers.map(({ header: { key, value } }) => [key, value]));
    t.equal(headers.get('content-type'), 'application/problem+json');
    t.notOk(response?.okResponse);
  }
  const nobody = await check(checkRequest(described({ path: '/files/a' })));
  t.equal(nobody.response?.status.code, codes.UNAUTHENTICATED);
  t.match(JSON.stringify(nobody.response?.deniedResponse?.headers), /Bearer realm/);
  t.equal((await check(asked(proxy, '/limited'))).response?.status.code ?? 0, 0);
  const limited = await check(asked(proxy, '/limited'));
  t.equal(limited.response?.deniedResponse?.status.code, 'TooManyRequests');
  t.match(JSON.stringify(limited.response?.deniedResponse?.headers), /retry-after/);
  t.match(proxy.logs().at(-1), { reason: 'rate_limited', status: 429, route: 'limited' });
});

t.test('headers come in one of two ways, and a description in one', async (t) => {
  const { proxy, decidePort } = await startDeciding(t, 'envoy', { routes });
  const check = checkClient(t, decidePort);
  const authorization = `Bearer ${proxy.token()}`;
  const http = { method: 'GET', path: '/files/a', host: 'a.example', scheme: 'https' };
  const headers = { authorization };
  const map = (lines: readonly (readonly [string, string])[]): object => ({
    headerMap: { headers: lines.map(([key, value]) => ({ key, rawValue: Buffer.from(value) })) },
  });
  const own = [['authorization', authorization]] as const;
  const rows: readonly (readonly [string, object, string | null])[] = [
    ['a map', { ...http, headers }, null],
    ['a list', { ...http, ...map(own) }, null],
    ['a list of texts', { ...http, headerMap: { headers: [{ key: 'authorization', value: authorization }] } }, null],
    [
      'pseudo-headers that say the same',
      { ...http, ...map([[':path', '/files/a'], [':method', 'GET'], ...own]) },
      null,
    ],
    ['no scheme', { ...http, scheme: '', headers }, null],
    ['a map and a list', { ...http, headers, ...map(own) }, 'description_malformed'],
    [
      'a value in both ways',
      {
        ...http,
        headerMap: { headers: [{ key: 'authorization', value: authorization, rawValue: Buffer.from(authorization) }] },
      },
      'field_repeated',
    ],
    ['two tokens', { ...http, ...map([...own, ...own]) }, 'field_repeated'],
    ['another path', { ...http, ...map([[':path', '/open/a'], ...own]) }, 'description_malformed'],
    ['another path in a map', { ...http, headers: { ...headers, ':path': '/open/a' } }, 'description_malformed'],
    ['another method', { ...http, ...map([[':method', 'POST'], ...own]) }, 'description_malformed'],
    ['another host', { ...http, ...map([['host', 'b.example'], ...own]) }, 'description_malformed'],
    ['two paths', { ...http, ...map([[':path', '/files/a'], [':path', '/files/a'], ...own]) }, 'description_malformed'],
    [
      'a pseudo-header that nobody knows',
      { ...http, ...map([[':protocol', 'websocket'], ...own]) },
      'description_malformed',
    ],
    ['no path', { ...http, path: '', headers }, 'description_malformed'],
    ['no method', { ...http, method: '', headers }, 'description_malformed'],
    ['no host', { ...http, host: '', headers }, 'description_malformed'],
    ['a query of its own', { ...http, query: 'a=b', headers }, 'description_malformed'],
    ['a fragment', { ...http, fragment: 'a', headers }, 'description_malformed'],
    ['another scheme', { ...http, scheme: 'ftp', headers }, 'description_malformed'],
    ['h2c', { ...http, headers: { ...headers, upgrade: 'h2c' } }, 'upgrade_refused'],
    [
      'a handshake',
      { ...http, headers: { ...headers, 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' } },
      'upgrade_refused',
    ],
    ['a body of GET', { ...http, headers: { ...headers, 'content-length': '2' } }, 'body_not_allowed'],
    [
      'a large body',
      { ...http, method: 'POST', path: '/small', headers: { ...headers, 'content-length': '2000' } },
      'body_too_large',
    ],
    ['a large head', { ...http, headers: { ...headers, 'x-note': 'a'.repeat(20_000) } }, 'header_too_large'],
    ['no header that objects lack', { ...http, headers: { ...headers, constructor: 'a', __proto__x: 'b' } }, null],
  ];
  for (const [name, row, reason] of rows) {
    const { response, code } = await check(checkRequest(row));
    t.equal(code, 0, name);
    t.equal(response?.okResponse !== undefined, reason === null, name);
    t.equal(proxy.logs().at(-1)?.['reason'], reason, name);
  }
});

t.test('what is no call of one message fails as a call, and is no 200', async (t) => {
  const { proxy, decidePort } = await startDeciding(t, 'envoy', { routes });
  const session = await connectHttp2(t, `http://127.0.0.1:${String(decidePort)}`);
  const good = asked(proxy, '/files/a');
  const call = {
    ':method': 'POST',
    ':path': checkPath,
    te: 'trailers',
    'content-type': 'application/grpc',
  };
  const rows: readonly (readonly [string, Record<string, string>, Buffer | null, number, number])[] = [
    ['compressed', { ...call, 'grpc-encoding': 'gzip' }, prefixed(good, 1), 400, codes.UNIMPLEMENTED],
    ['another flag', call, prefixed(good, 2), 400, codes.INTERNAL],
    ['two messages', call, Buffer.concat([prefixed(good), prefixed(good)]), 400, codes.UNIMPLEMENTED],
    ['no message', call, Buffer.alloc(0), 400, codes.UNIMPLEMENTED],
    ['a head alone', call, null, 400, codes.UNIMPLEMENTED],
    ['part of a message', call, prefixed(good).subarray(0, -1), 400, codes.INTERNAL],
    ['part of a prefix', call, Buffer.from([0, 0]), 400, codes.INTERNAL],
    ['no protobuf', call, prefixed(Buffer.from('GET / HTTP/1.1\r\n\r\n')), 400, codes.INTERNAL],
    ['a request of TCP', call, prefixed(Buffer.from([0x0a, 0])), 400, codes.INTERNAL],
    ['too long', call, prefixed(Buffer.alloc(200_000)), 413, codes.RESOURCE_EXHAUSTED],
    ['a deadline that is none', { ...call, 'grpc-timeout': '5' }, prefixed(good), 400, codes.INTERNAL],
    [
      'a deadline that has passed',
      { ...call, 'grpc-timeout': '0n' },
      prefixed(good).subarray(0, 9),
      400,
      codes.INTERNAL,
    ],
  ];
  for (const [name, headers, body, status, code] of rows) {
    const answer = await askHttp2(session, headers, body);
    t.equal(answer.status, status, name);
    t.equal(Number(answer.headers['grpc-status'] ?? answer.trailers?.['grpc-status']), code, name);
    t.equal(answer.body.length, 0, name);
  }
  const sound = await askHttp2(session, { ...call, 'content-type': 'application/grpc+proto' }, prefixed(good));
  t.match([sound.status, sound.trailers?.['grpc-status']], [200, '0']);
  t.ok(readResponse(sound.body.subarray(5)).okResponse);
  t.same(
    proxy.logs().filter(({ level, msg }) => level === 'error' || msg === 'bug'),
    [],
  );
});

t.test('a client of gRPC learns why its call failed', async (t) => {
  const { proxy, decidePort } = await startDeciding(t, 'envoy', { routes });
  const client = new Client(`127.0.0.1:${String(decidePort)}`, credentials.createInsecure(), {
    'grpc.default_compression_algorithm': compressionAlgorithms.gzip,
  });
  t.teardown(() => client.close());
  const failed = await new Promise<ServiceError | null>((resolve) => {
    const same = (bytes: Buffer): Buffer => bytes;
    client.makeUnaryRequest(checkPath, same, same, asked(proxy, '/files/a'), (error) => resolve(error));
  });
  t.equal(failed?.code, codes.UNIMPLEMENTED);
  const check = checkClient(t, decidePort);
  const other = await check(asked(proxy, '/files/a'), {}, '/envoy.service.auth.v2.Authorization/Check');
  t.equal(other.code, codes.UNIMPLEMENTED, 'another version of the service');
  t.match(proxy.logs().at(-1), { reason: 'description_malformed', route: 'none', subject: null, asked_by: 'envoy' });
  const method = await check(asked(proxy, '/files/a'), {}, `${checkPath}s`);
  t.equal(method.code, codes.UNIMPLEMENTED, 'another method');
  const longest = await check(asked(proxy, '/files/a', { 'X-Note': 'a'.repeat(10_000) }));
  t.equal(longest.code, 0);
});

t.test('nothing in the words of HTTP is taken for a call, nor a call for that', async (t) => {
  const { proxy, decidePort } = await startDeciding(t, 'envoy', { routes });
  const session = await connectHttp2(t, `http://127.0.0.1:${String(decidePort)}`);
  const authorization = `Bearer ${proxy.token()}`;
  for (const [name, headers] of [
    ['allowed over HTTP/1.1', { ':path': '/files/a', authorization }],
    ['a public route', { ':path': '/open/a' }],
    [
      'another method of the service',
      { ':method': 'POST', ':path': `${checkPath}s`, 'content-type': 'application/grpc' },
    ],
    [
      'another spelling of the path',
      { ':method': 'POST', ':path': `${checkPath}?`, 'content-type': 'application/grpc' },
    ],
    ['another method', { ':method': 'GET', ':path': checkPath, 'content-type': 'application/grpc' }],
    ['no type', { ':method': 'POST', ':path': checkPath }],
    ['another type', { ':method': 'POST', ':path': checkPath, 'content-type': 'application/grpc-web' }],
    ['another format', { ':method': 'POST', ':path': checkPath, 'content-type': 'application/grpc+json' }],
    ['two types', { ':method': 'POST', ':path': checkPath, 'content-type': 'application/grpc, a/b' }],
    [
      'the call without a message, as a client would send it through',
      { ':method': 'POST', ':path': checkPath, 'content-type': 'application/grpc', authorization },
    ],
  ] as const) {
    const answer = await askHttp2(session, { ...headers });
    t.equal(answer.status, 400, name);
  }
  const body = prefixed(asked(proxy, '/open/a'));
  const asHttp1 = await request(decidePort, {
    method: 'POST',
    path: checkPath,
    headers: { 'Content-Type': 'application/grpc', TE: 'trailers' },
    body,
  });
  t.equal(asHttp1.status, 401, 'an ask about that target, like any other');
  t.match(proxy.logs().at(-1), { path: checkPath, route: 'none', reason: 'credential_missing' });
});

t.test('who is not trusted learns and decides nothing', async (t) => {
  const { proxy, decidePort } = await startDeciding(t, 'envoy', { routes }, { trust: ['127.0.0.9'] });
  const refused = await checkClient(t, decidePort)(asked(proxy, '/files/a'));
  t.match(refused, { response: null, code: codes.PERMISSION_DENIED });
  const other = await checkClient(t, decidePort)(asked(proxy, '/files/a'), {}, `${checkPath}s`);
  t.match(other, { response: null, code: codes.PERMISSION_DENIED });
  t.match(proxy.logs().at(-1), { reason: 'asking_refused', route: 'none', subject: null, asked_by: 'envoy' });
});

t.test('a call ends at its deadline, and while its message does not come', async (t) => {
  const { decidePort, proxy } = await startDeciding(t, 'envoy', { routes });
  const session = await connectHttp2(t, `http://127.0.0.1:${String(decidePort)}`);
  const stream = session.request({
    ':method': 'POST',
    ':path': checkPath,
    'content-type': 'application/grpc',
    'grpc-timeout': '50m',
  });
  stream.write(prefixed(asked(proxy, '/files/a')).subarray(0, 20));
  const head = await new Promise<Record<string, unknown>>((resolve) => stream.on('response', resolve));
  t.match(head, { ':status': 400, 'grpc-status': String(codes.DEADLINE_EXCEEDED) });
  await until('its record', () => proxy.logs().some(({ reason }) => reason === 'caller_gone'));
  stream.destroy();

  const gone = session.request({ ':method': 'POST', ':path': checkPath, 'content-type': 'application/grpc' });
  gone.on('error', () => undefined);
  gone.write(prefixed(asked(proxy, '/files/a')).subarray(0, 20));
  await new Promise<void>((resolve) => session.ping(() => resolve()));
  gone.close(constants.NGHTTP2_CANCEL);
  t.equal((await checkClient(t, decidePort)(asked(proxy, '/files/a'))).code, 0, 'others are served on');
  await proxy.app.stop();
  t.same(
    proxy.logs().filter(({ msg }) => msg === 'bug'),
    [],
  );
});

t.test('a deadline ends a call that waits for a key', async (t) => {
  const { decidePort, proxy } = await startDeciding(t, 'envoy', { routes });
  proxy.jwks.behave(() => undefined);
  const session = await connectHttp2(t, `http://127.0.0.1:${String(decidePort)}`);
  const unknown = mintToken({ key: rsaKey('d-2') });
  const call = { ':method': 'POST', ':path': checkPath, 'content-type': 'application/grpc', 'grpc-timeout': '100m' };
  const message = checkRequest(described({ path: '/files/a', headers: { Authorization: `Bearer ${unknown}` } }));
  const { status, headers } = await askHttp2(session, call, prefixed(message));
  t.match([status, headers['grpc-status']], [400, String(codes.DEADLINE_EXCEEDED)]);
  await until('its record', () =>
    proxy.logs().some(({ path, reason }) => path === '/files/a' && reason === 'caller_gone'),
  );
});

t.test('every status of a refusal is one that Envoy knows', (t) => {
  const known = new Set(Object.values(statusCodes));
  for (const [reason, { status }] of Object.entries(responses)) t.ok(known.has(status), `${reason}: ${String(status)}`);
  t.end();
});
