/** Names whose addresses change: whoever is found there is asked nothing unless its certificate bears the name. */
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { freePort } from '../../support/listening.js';
import { until } from '../../support/until.js';
import { startCalling } from './calling.js';
import { startAt, startNames } from './changing-names.js';

t.test('an answer of DNS that changes leads to nobody else', async (t) => {
  const { ca, server, misnamed, strangerServer } = certificates(t);
  const port = await freePort();
  const own = await startAt(t, '127.0.0.1', port, server);
  const others = [
    ['127.0.0.2', await startAt(t, '127.0.0.2', port, misnamed), 'of another name'],
    ['127.0.0.3', await startAt(t, '127.0.0.3', port, strangerServer), 'of an authority that is not trusted'],
  ] as const;
  const names = startNames(t, '127.0.0.1');
  const { call, proxy } = await startCalling(t, `https://orders.test:${String(port)}`, {
    ca_file: ca.certFile,
    server_name: 'localhost',
    retries: { attempts: 2 },
  });
  const get = async (): Promise<readonly [number, string]> => {
    const { status, text } = await call('/orders/1', { method: 'GET' });
    return [status, text];
  };
  t.same(await get(), [200, '127.0.0.1']);
  t.same(await get(), [200, '127.0.0.1']);
  t.equal(names.lookups, 1, 'once for a connection, which is kept');
  for (const [address, place, what] of others) {
    names.address = address;
    t.same(await get(), [200, '127.0.0.1'], 'a connection stays where it is');
    own.breakOff();
    await until('it is noticed', () => proxy.app.status().egress?.targets[0]?.connections === 0);
    const before = names.lookups;
    t.equal((await get())[0], 503, `a certificate ${what}`);
    t.equal(names.lookups - before, 2, 'once for each attempt');
    t.equal(place.asked(), 0, `${what}: was asked nothing`);
    names.address = '127.0.0.1';
    t.same(await get(), [200, '127.0.0.1']);
  }
});
