/** Keys over HTTP/2, where what is malformed is dropped before anybody sees it. */
import t from 'tap';
import { connectExact } from '../../support/http2-exact.js';
import { startReservingProxy } from './reserving-proxy.js';

const approved = { subjects: ['checkout'], permissions: ['orders:write'] };
const route = (path: string, idempotency: string): object => {
  return { name: path.slice(1), methods: ['POST'], path, ...approved, idempotency };
};
const config = {
  listen: { http2: true },
  routes: [
    route('/optional', 'optional'),
    route('/required', 'required'),
    route('/anyhow', 'optional_over_http2'),
    { name: 'grpc', grpc: 'shop.v1.Orders', ...approved, idempotency: 'optional' },
  ],
};

/** Each dropped by nghttp2, or read and refused. */
const malformed = ['a ', ' a', '\ta', 'a\t', 'a\x01', '\x7f', 'a\0', 'a\r\nx: y', 'a\xe9', '', 'a b', '"a'];

t.test('a write whose key is malformed never runs as if it had none', async (t) => {
  const proxy = await startReservingProxy(t, { config });
  const client = await connectExact(proxy.port);
  t.teardown(client.close);
  const write = async (path: string, key: readonly string[], type = 'text/plain'): Promise<[number, string]> => {
    const { status, headers } = await client.ask({
      fields: [
        ...[':method', 'POST', ':scheme', 'http', ':path', path, ':authority', 'a', 'content-type', type],
        ...['authorization', proxy.authorization().Authorization, ...key],
      ],
      body: Buffer.from('an order'),
      isHead: false,
    });
    return [status, String(headers['idempotent-replayed'] ?? headers['grpc-status'] ?? '')];
  };
  for (const path of ['/optional', '/required']) {
    for (const value of malformed) {
      t.same(await write(path, ['idempotency-key', value]), [400, ''], `${path} ${JSON.stringify(value)}`);
    }
    t.same(await write(path, ['Idempotency-Key', 'upper-case']), [0, ''], 'of names in upper case the stream is reset');
    t.same(await write(path, []), [400, ''], 'nor one without a key, which looks the same');
  }
  t.same(await write('/shop.v1.Orders/Create', ['idempotency-key', 'a '], 'application/grpc'), [200, '3']);
  t.equal(proxy.executions().length, 0);
  t.same(await write('/optional', ['idempotency-key', 'good']), [200, '']);
  t.same(await write('/optional', ['idempotency-key', 'good']), [200, 'true']);
  t.equal(proxy.executions().length, 1);
  t.same(await write('/anyhow', []), [200, ''], 'where the route says so, none is needed');
  t.same(await write('/anyhow', ['idempotency-key', 'good']), [200, '']);
  t.same(await write('/anyhow', ['idempotency-key', 'good']), [200, 'true']);
  t.equal(proxy.executions().length, 3);
  t.equal((await proxy.write({ path: '/optional', key: null })).status, 200, 'over HTTP/1.1 none is needed');
  t.equal((await proxy.write({ path: '/optional', key: null, headers: { 'Idempotency-Key': 'a b' } })).status, 400);
  t.equal(proxy.executions().length, 4);
});
