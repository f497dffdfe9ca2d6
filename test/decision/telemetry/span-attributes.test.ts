import t from 'tap';
import {
  clientAttributes,
  clientError,
  serverAttributes,
  serverError,
  spanName,
  type SentResult,
  type ServedRequest,
} from '../../../src/decision/telemetry/span-attributes.js';

const served: ServedRequest = {
  method: 'GET',
  path: '/orders/{id}',
  route: 'orders',
  isGrpc: false,
  scheme: 'https',
  httpVersion: '2',
  status: 200,
  grpcStatus: null,
  decision: 'forwarded',
  reason: null,
};
const call = { ...served, path: '/shop.Orders/Get', method: 'POST', isGrpc: true };

t.test('a name is the method and the path of the route', (t) => {
  t.equal(spanName(served), 'GET /orders/{id}');
  t.equal(spanName({ ...served, path: null }), 'GET');
  t.equal(spanName({ ...served, method: 'MAKE-UP' }), 'HTTP /orders/{id}');
  t.equal(spanName(call), 'shop.Orders/Get');
  t.equal(spanName({ ...call, path: '/shop.Orders/**' }), '_OTHER');
  t.equal(spanName({ ...call, path: null }), '_OTHER');
  t.end();
});

t.test('a request as its caller sees it', (t) => {
  t.same(serverAttributes(served), {
    'http.request.method': 'GET',
    'sallyport.route': 'orders',
    'http.route': '/orders/{id}',
    'url.path': '/orders/{id}',
    'url.scheme': 'https',
    'network.protocol.version': '2',
    'http.response.status_code': 200,
    'sallyport.decision': 'forwarded',
  });
  t.match(serverAttributes({ ...served, status: 503, decision: 'failed', reason: 'overloaded' }), {
    'error.type': 'overloaded',
    'sallyport.reason': 'overloaded',
  });
  t.match(serverAttributes({ ...served, status: 502 }), { 'error.type': '502' });
  t.match(serverAttributes({ ...call, grpcStatus: 14 }), {
    'rpc.system.name': 'grpc',
    'rpc.method': 'shop.Orders/Get',
    'rpc.status_code': 'UNAVAILABLE',
    'error.type': 'UNAVAILABLE',
  });
  t.match(serverAttributes({ ...call, grpcStatus: 99 }), { 'rpc.status_code': '_OTHER' });
  const silent = serverAttributes({ ...served, path: null, method: 'MAKE-UP', status: 0 });
  t.equal(silent['http.request.method'], '_OTHER');
  t.notOk('http.response.status_code' in silent || 'http.route' in silent);
  t.end();
});

t.test('what its caller did is no error of ours', (t) => {
  t.notOk(serverError({ ...served, status: 404, decision: 'denied' }));
  t.notOk(serverError({ ...call, grpcStatus: 5 }));
  t.ok(serverError({ ...served, status: 0, decision: 'failed' }));
  t.end();
});

const answered: SentResult = { status: 200, grpcStatus: null, reason: null };
const sent = { ...served, origin: 'http://127.0.0.1:3000/', resends: 0 };

t.test('a request to the upstream', (t) => {
  t.match(clientAttributes(sent, answered), {
    'server.address': '127.0.0.1',
    'server.port': 3000,
    'url.full': 'http://127.0.0.1:3000/orders/{id}',
  });
  t.match(clientAttributes({ ...sent, origin: 'https://[::1]', path: null, resends: 2 }, answered), {
    'server.address': '::1',
    'server.port': 443,
    'url.full': 'https://[::1]/',
    'http.request.resend_count': 2,
  });
  t.equal(clientAttributes({ ...sent, origin: 'http://orders' }, answered)['server.port'], 80);
  t.match(clientAttributes({ ...sent, origin: 'unix:/run/app.sock' }, answered), {
    'server.address': '/run/app.sock',
    'network.transport': 'unix',
  });
  t.end();
});

t.test('what came of it', (t) => {
  const after = (result: Partial<SentResult>) => clientAttributes(sent, { ...answered, ...result });
  t.equal(after({})['http.response.status_code'], 200);
  t.notOk('error.type' in after({}) || 'rpc.status_code' in after({}));
  t.match(after({ status: 404 }), { 'http.response.status_code': 404, 'error.type': '404' });
  t.match(after({ grpcStatus: 5 }), { 'error.type': 'NOT_FOUND' });
  const silent = after({ status: 0, reason: 'upstream_timeout' });
  t.equal(silent['error.type'], 'upstream_timeout');
  t.notOk('http.response.status_code' in silent);
  t.notOk(clientError({ ...answered, grpcStatus: 0 }));
  t.end();
});
