import t from 'tap';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import { readHeaders, type RequestHeaders } from '../../../src/decision/http/request-headers.js';
import type { RequestHead } from '../../../src/decision/http/request-head.js';
import { readTarget, type RequestTarget } from '../../../src/decision/http/request-target.js';
import type { Route } from '../../../src/decision/route/policy.js';
import { grpcTimeoutOf, refusedBody, refusedOnAnyRoute } from '../../../src/decision/route/request-form.js';
import { createRouteTable, matchRoute } from '../../../src/decision/route/route-table.js';
import { handshakeFields } from '../../support/attacks/handshakes.js';
import { routeOf } from './route-samples.js';

const rules = createHeaderRules({ identityNames: [], underscoreFields: 'drop', http10: 'allow' });
const length = (bytes: number): readonly string[] => ['Content-Length', String(bytes)];
const grpc = ['Content-Type', 'application/grpc'];

interface Read {
  readonly head: RequestHead;
  readonly headers: RequestHeaders;
  readonly target: RequestTarget;
}

/** @param line such as `GET /orders`. */
function readRequest(line: string, fields: readonly string[] = []): Read {
  const [method = '', path = ''] = line.split(' ');
  const head = { method, target: path, httpVersion: '1.1', rawHeaders: ['Host', 'a', ...fields] };
  const headers = readHeaders(head, rules);
  const target = readTarget(path, 8_192);
  if (!headers.ok || !target.ok) throw new Error(`${line} could not be read`);
  return { head, headers: headers.value, target: target.value };
}

t.test('what no route takes is refused on any, and what the public route does not that was meant', (t) => {
  const rows: readonly {
    readonly name: string;
    readonly routes?: readonly Route[];
    readonly line: string;
    readonly fields?: readonly string[];
    readonly expected: string | null;
  }[] = [
    { name: 'nothing odd', line: 'GET /a', expected: null },
    { name: 'a handshake', line: 'GET /a', fields: handshakeFields({}), expected: 'upgrade_refused' },
    {
      name: 'a handshake where some route takes one',
      routes: [routeOf('GET /a', ['x'], { allowsWebSocket: true })],
      line: 'GET /b',
      fields: handshakeFields({}),
      expected: null,
    },
    { name: 'an encoded slash', line: 'GET /a%2Fb', expected: 'target_malformed' },
    { name: 'a path parameter', line: 'GET /a;b', expected: 'target_malformed' },
    {
      name: 'an escape that routers leave, of a public route that others do not find',
      routes: [routeOf('GET /r/@me', 'public'), routeOf('GET /r/{id}', ['x'])],
      line: 'GET /r/%40me',
      expected: 'target_malformed',
    },
    {
      name: 'of a protected one, which nobody is told of',
      routes: [routeOf('GET /r/@me', ['x']), routeOf('GET /r/{id}', 'public')],
      line: 'GET /r/%40me',
      expected: null,
    },
    { name: 'of none', line: 'GET /r/%40me', expected: null },
    { name: 'a body of GET', line: 'GET /a', fields: length(1), expected: 'body_not_allowed' },
    { name: 'a body of HEAD', line: 'HEAD /a', fields: length(1), expected: 'body_not_allowed' },
    { name: 'an empty body of GET', line: 'GET /a', fields: length(0), expected: null },
    { name: 'a body of POST', line: 'POST /a', fields: length(1), expected: null },
    {
      name: 'what some route takes, on none',
      routes: [routeOf('GET /a/**', ['x']), routeOf('GET /b/**', ['x'], { encodedSlashes: true })],
      line: 'GET /a/b%2Fc',
      expected: null,
    },
    {
      name: 'what some route takes, on a public one that does not',
      routes: [routeOf('GET /a/**', 'public'), routeOf('GET /b/**', ['x'], { encodedSlashes: true })],
      line: 'GET /a/b%2Fc',
      expected: 'target_malformed',
    },
    {
      name: 'what some route takes, where none is',
      routes: [routeOf('GET /b/**', ['x'], { encodedSlashes: true })],
      line: 'GET /a/b%2Fc',
      expected: null,
    },
  ];
  for (const { name, routes = [routeOf('GET /a')], line, fields, expected } of rows) {
    const table = createRouteTable(routes);
    const request = readRequest(line, fields);
    const route = matchRoute(table, request.head.method, request.target);
    t.equal(refusedOnAnyRoute(request, route, table)?.reason ?? null, expected, name);
  }
  t.end();
});

t.test('what the route does not take', (t) => {
  const rows: readonly {
    readonly name: string;
    readonly route?: Partial<Route>;
    readonly line?: string;
    readonly fields?: readonly string[];
    readonly expected: string | null;
  }[] = [
    { name: 'nothing odd', expected: null },
    { name: 'a handshake', line: 'GET /a', fields: handshakeFields({}), expected: 'upgrade_refused' },
    {
      name: 'a handshake where it is meant',
      route: { allowsWebSocket: true },
      line: 'GET /a',
      fields: handshakeFields({}),
      expected: null,
    },
    { name: 'a body of GET', line: 'GET /a', fields: length(1), expected: 'body_not_allowed' },
    {
      name: 'a body of GET where it is meant',
      route: { allowsBody: true },
      line: 'GET /a',
      fields: length(1),
      expected: null,
    },
    { name: 'a body of the size that may be', route: { maxBodyBytes: 4 }, fields: length(4), expected: null },
    { name: 'a body beyond it', route: { maxBodyBytes: 4 }, fields: length(5), expected: 'body_too_large' },
    { name: 'a gRPC call', route: { isGrpc: true }, fields: grpc, expected: null },
    { name: 'another media type', route: { isGrpc: true }, fields: [], expected: 'content_type_refused' },
    {
      name: 'a malformed grpc-timeout',
      route: { isGrpc: true },
      fields: [...grpc, 'grpc-timeout', 'soon'],
      expected: 'field_malformed',
    },
    { name: 'what means nothing elsewhere', fields: ['grpc-timeout', 'soon'], expected: null },
  ];
  for (const { name, route, line = 'POST /a', fields, expected } of rows) {
    t.equal(refusedBody(readRequest(line, fields), routeOf('* /a', ['x'], route)), expected, name);
  }
  t.end();
});

t.test('how long a gRPC caller waits', (t) => {
  const call = routeOf('POST /a', ['x'], { isGrpc: true });
  const waits = (route: Route, fields: readonly string[]): number | null =>
    grpcTimeoutOf(readRequest('POST /a', fields).headers, route);
  t.equal(waits(call, ['grpc-timeout', '5S']), 5_000);
  t.equal(waits(call, []), null);
  t.equal(waits(call, ['grpc-timeout', 'soon']), null);
  t.equal(waits(routeOf('POST /a'), ['grpc-timeout', '5S']), null);
  t.end();
});
