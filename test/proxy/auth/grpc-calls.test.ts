/** What is judged of gRPC calls by their head, by the pipeline that serves. */
import t from 'tap';
import type { Ruling } from '../../../src/policy-test/simulate/decide.js';
import { headOf, rule } from '../../../src/policy-test/simulate/decide.js';
import { decideOnly } from '../../../src/policy-test/simulate/offline-config.js';
import { assumeToken } from '../../../src/policy-test/simulate/test-credentials.js';
import { assumedSessions, createAssumedKeys } from '../../../src/policy-test/simulate/test-keys.js';
import { authorizeRequest } from '../../../src/proxy/auth/authorize-request.js';
import { compiled } from '../harness.js';

const keys = createAssumedKeys();
const nowMs = Date.now();
const config = compiled({
  receiver: {
    case_sensitive: true,
    strict_slash: true,
    format_suffix: false,
    trailing_dots: false,
    head_as_get: false,
  },
  routes: [
    {
      name: 'list',
      grpc: 'shop.v1.Orders/List',
      subjects: ['checkout'],
      permissions: ['read'],
      max_body: '1KiB',
      idempotency: { mode: 'none', because: 'reads' },
    },
    { name: 'stock', grpc: 'shop.v1.Stock', access: 'public', idempotency: { mode: 'none', because: 'reads' } },
    { name: 'http', methods: ['POST'], path: '/http', access: 'public', idempotency: { mode: 'none', because: 'x' } },
  ],
});
const activeConfig = decideOnly(config, keys.sourceOf, assumedSessions(config, keys));

interface Call {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly (readonly [string, string])[];
  readonly permissions?: readonly string[] | null;
}

async function ruled({
  method = 'POST',
  path = '/shop.v1.Orders/List',
  headers = [['Content-Type', 'application/grpc']],
  permissions = ['read'],
}: Call): Promise<Ruling> {
  const request = { method, path, headers, body: null };
  const claims = { sub: 'checkout', permissions: permissions ?? [] };
  const shown = permissions === null ? [] : assumeToken(claims, request, activeConfig, keys, nowMs).headers;
  return rule(headOf(request, shown), 0, activeConfig, nowMs);
}

const type = ['Content-Type', 'application/grpc'] as const;
const rows: readonly { readonly name: string; readonly call: Call; readonly expected: string | null }[] = [
  { name: 'as usual', call: {}, expected: null },
  { name: 'with a format', call: { headers: [['Content-Type', 'application/grpc+proto']] }, expected: null },
  { name: 'no content type', call: { headers: [] }, expected: 'content_type_refused' },
  {
    name: 'gRPC-Web, which is another protocol',
    call: { headers: [['Content-Type', 'application/grpc-web+proto']] },
    expected: 'content_type_refused',
  },
  { name: 'JSON', call: { headers: [['Content-Type', 'application/json']] }, expected: 'content_type_refused' },
  {
    name: 'who may not call is not told that the type is wrong',
    call: { headers: [], permissions: [] },
    expected: 'permission_missing',
  },
  { name: 'nor who shows nothing', call: { headers: [], permissions: null }, expected: 'credential_missing' },
  { name: 'a deadline', call: { headers: [type, ['grpc-timeout', '100m']] }, expected: null },
  { name: 'a malformed deadline', call: { headers: [type, ['grpc-timeout', '1s']] }, expected: 'field_malformed' },
  {
    name: 'two deadlines',
    call: { headers: [type, ['grpc-timeout', '1S'], ['Grpc-Timeout', '2S']] },
    expected: 'field_malformed',
  },
  {
    name: 'a body that is too large',
    call: { headers: [type, ['Content-Length', '1025']] },
    expected: 'body_too_large',
  },
  { name: 'another method of HTTP', call: { method: 'PUT' }, expected: 'route_unknown' },
  { name: 'another method of gRPC', call: { path: '/shop.v1.Orders/Cancel' }, expected: 'route_unknown' },
  { name: 'a name in another case', call: { path: '/shop.v1.orders/List' }, expected: 'route_unknown' },
  { name: 'a trailing slash', call: { path: '/shop.v1.Orders/List/' }, expected: 'route_unknown' },
  { name: 'any method of a service', call: { path: '/shop.v1.Stock/Any', permissions: null }, expected: null },
  { name: 'the service without a method', call: { path: '/shop.v1.Stock/' }, expected: 'route_unknown' },
  { name: 'more than a method', call: { path: '/shop.v1.Stock/Any/x' }, expected: 'route_unknown' },
  {
    name: 'a service that is public takes gRPC alone as well',
    call: { path: '/shop.v1.Stock/Any', permissions: null, headers: [] },
    expected: 'content_type_refused',
  },
  {
    name: 'on other routes nothing of it is judged',
    call: { path: '/http', headers: [type, ['grpc-timeout', '1s']], permissions: null },
    expected: null,
  },
];

for (const { name, call, expected } of rows) {
  t.test(`a gRPC call: ${name}`, async (t) => {
    t.equal((await ruled(call)).reason, expected);
  });
}

t.test('an escape in the path has a second reading, as everywhere', async (t) => {
  t.equal((await ruled({ path: '/shop.v1.Orders/L%69st' })).reason, 'target_malformed');
});

t.test('the deadline is known where the call is admitted, and only on gRPC routes', async (t) => {
  const peer = { remoteAddress: '192.0.2.7', encrypted: false, trusted: false };
  for (const [path, timeout, expected] of [
    ['/shop.v1.Stock/Any', '1500m', 1_500],
    ['/shop.v1.Stock/Any', null, null],
    ['/http', '1500m', null],
  ] as const) {
    const headers = [type, ...(timeout === null ? [] : [['grpc-timeout', timeout] as const])];
    const head = headOf({ method: 'POST', path, headers, body: null });
    const judgement = await authorizeRequest(head, peer, activeConfig, nowMs);
    if (!judgement.ok) return t.fail(judgement.error.denial.reason);
    t.equal(judgement.value.grpcTimeoutMs, expected, `${path} ${String(timeout)}`);
    t.ok(timeout === null || judgement.value.forwarded.includes(timeout), 'and goes on as it came');
  }
  return undefined;
});
