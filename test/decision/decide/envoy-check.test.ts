import t from 'tap';
import {
  describeChecked,
  isCheck,
  isOtherCall,
  type CheckedRequest,
} from '../../../src/decision/decide/envoy-check.js';

const checked: CheckedRequest = {
  method: 'POST',
  path: '/a%20b?q',
  host: 'a.example',
  scheme: 'https',
  query: '',
  fragment: '',
  headers: ['x-note', 'a'],
  headerMap: null,
};

t.test('a description becomes a head', (t) => {
  const head = { method: 'POST', target: '/a%20b?q', httpVersion: '1.1' };
  const rows: readonly (readonly [string, Partial<CheckedRequest>, readonly string[], boolean])[] = [
    ['a map', {}, ['x-note', 'a'], true],
    ['a list', { headers: [], headerMap: ['x-note', 'a', 'x-note', 'b'] }, ['x-note', 'a', 'x-note', 'b'], true],
    ['nothing', { headers: [] }, [], true],
    ['an empty list', { headers: [], headerMap: [] }, [], true],
    ['plaintext', { scheme: 'http' }, ['x-note', 'a'], false],
    ['no scheme', { scheme: '' }, ['x-note', 'a'], false],
    ['another case', { scheme: 'HTTPS' }, ['x-note', 'a'], true],
    ['a secure WebSocket', { scheme: 'wss' }, ['x-note', 'a'], true],
    ['the same once more', { headers: [':path', '/a%20b?q', ':method', 'POST', ':authority', 'a.example'] }, [], true],
    ['the host once more', { headers: ['Host', 'a.example', ':scheme', 'https'] }, [], true],
    ['a handshake', { headers: ['upgrade', 'WebSocket'] }, ['upgrade', 'WebSocket', 'Connection', 'Upgrade'], true],
    [
      'a handshake without its word',
      { headers: ['sec-websocket-key', 'a'] },
      ['sec-websocket-key', 'a', 'Connection', 'Upgrade', 'Upgrade', 'websocket'],
      true,
    ],
  ];
  for (const [name, change, rawHeaders, encrypted] of rows) {
    const value = { head: { ...head, rawHeaders: ['Host', 'a.example', ...rawHeaders] }, encrypted };
    t.strictSame(describeChecked({ ...checked, ...change }, 1_000), { ok: true, value }, name);
  }
  t.end();
});

t.test('what is missing, told in two ways or too large is no description', (t) => {
  const rows: readonly (readonly [string, Partial<CheckedRequest>, string])[] = [
    ['no method', { method: '' }, 'description_malformed'],
    ['no path', { path: '' }, 'description_malformed'],
    ['no host', { host: '' }, 'description_malformed'],
    ['a query beside the path', { query: 'q' }, 'description_malformed'],
    ['a fragment', { fragment: 'f' }, 'description_malformed'],
    ['another scheme', { scheme: 'ftp' }, 'description_malformed'],
    ['a map and a list', { headerMap: [] }, 'description_malformed'],
    ['another path', { headers: [':path', '/a b?q'] }, 'description_malformed'],
    ['a path in another case', { headers: [':path', '/A%20B?q'] }, 'description_malformed'],
    ['the path twice more', { headers: [':path', '/a%20b?q', ':path', '/a%20b?q'] }, 'description_malformed'],
    ['another host', { headers: ['host', 'b.example'] }, 'description_malformed'],
    ['the host twice more', { headers: ['host', 'a.example', 'host', 'a.example'] }, 'description_malformed'],
    ['a pseudo-header of its own', { headers: [':protocol', 'websocket'] }, 'description_malformed'],
    ['h2c', { headers: ['upgrade', 'h2c'] }, 'upgrade_refused'],
    ['settings of HTTP/2', { headers: ['http2-settings', ''] }, 'upgrade_refused'],
    ['a large head', { headers: ['x-note', 'a'.repeat(1_000)] }, 'header_too_large'],
  ];
  for (const [name, change, reason] of rows) {
    t.match(describeChecked({ ...checked, ...change }, 1_000), { ok: false, error: { reason } }, name);
  }
  t.end();
});

t.test('only the call itself is one', (t) => {
  const call = {
    method: 'POST',
    target: '/envoy.service.auth.v3.Authorization/Check',
    httpVersion: '2.0',
    rawHeaders: ['host', 'decide', 'content-type', 'application/grpc'],
  };
  const typed = (...types: readonly string[]): object => ({
    rawHeaders: types.flatMap((type) => ['content-type', type]),
  });
  for (const [name, change, expected] of [
    ['a call', {}, true],
    ['with its format', typed('application/grpc+proto'), true],
    ['over HTTP/1.1', { httpVersion: '1.1' }, false],
    ['another method', { method: 'GET' }, false],
    ['a query', { target: `${call.target}?` }, false],
    ['another version', { target: call.target.replace('v3', 'v2') }, false],
    ['no type', typed(), false],
    ['two types', typed('application/grpc', 'application/grpc'), false],
    ['another format', typed('application/grpc+json'), false],
    ['of browsers', typed('application/grpc-web'), false],
    ['a parameter', typed('application/grpc;a=b'), false],
  ] as const) {
    t.equal(isCheck({ ...call, ...change }), expected, name);
  }
  t.end();
});

t.test('another call of gRPC is told from what is none', (t) => {
  const head = (change: object): Parameters<typeof isOtherCall>[0] => ({
    method: 'POST',
    target: '/envoy.service.auth.v3.Authorization/Other',
    httpVersion: '2.0',
    rawHeaders: ['content-type', 'application/grpc+proto'],
    ...change,
  });
  const check = '/envoy.service.auth.v3.Authorization/Check';
  for (const [name, change, expected] of [
    ['another method of the service', {}, true],
    ['another service', { target: '/grpc.health.v1.Health/Check' }, true],
    ['another format', { rawHeaders: ['content-type', 'application/grpc+json'] }, true],
    ['the call itself', { target: check }, false],
    ['HTTP/1.1', { httpVersion: '1.1' }, false],
    ['GET', { method: 'GET' }, false],
    ['another type', { rawHeaders: ['content-type', 'application/json'] }, false],
    ['no type', { rawHeaders: [] }, false],
  ] as const) {
    t.equal(isOtherCall(head(change)), expected, name);
  }
  t.end();
});
