/** Names whose addresses change: whoever is found there is asked nothing unless its certificate bears the name. */
import { createServer } from 'node:https';
import { createRequire } from 'node:module';
import t from 'tap';
import { certificates, type Certificate } from '../../support/certificates.js';
import { freePort } from '../../support/listening.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { startCalling } from './calling.js';

type Done = (
  error: Error | null,
  address: string | readonly { address: string; family: number }[],
  family?: number,
) => void;

/** Has each `.test` name lead to an address, and tells how often one was looked up. */
function nameService(t: Scope, address: string): { address: string; lookups: number } {
  const service = { address, lookups: 0 };
  // What `net` and everything above it asks: not a copy of it.
  const dns = createRequire(import.meta.url)('node:dns') as { lookup: unknown };
  const before = dns.lookup as (name: string, options: unknown, done: Done) => void;
  dns.lookup = (name: string, options: { readonly all?: boolean }, done: Done): void => {
    if (!name.endsWith('.test')) {
      before(name, options, done);
      return;
    }
    service.lookups += 1;
    const found = { address: service.address, family: 4 };
    if (options.all === true) setImmediate(done, null, [found]);
    else setImmediate(done, null, found.address, found.family);
  };
  t.teardown(() => {
    dns.lookup = before;
  });
  return service;
}

interface Place {
  readonly asked: () => number;
  readonly breakOff: () => void;
}

/** A server at one address of this machine. */
async function startAt(t: Scope, address: string, port: number, { cert, key }: Certificate): Promise<Place> {
  let asked = 0;
  const server = createServer({ cert, key }, (_req, res) => {
    asked += 1;
    res.end(address);
  });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return { asked: () => asked, breakOff: () => server.closeAllConnections() };
}

t.test('an answer of DNS that changes leads to nobody else', async (t) => {
  const { ca, server, misnamed, strangerServer } = certificates(t);
  const port = await freePort();
  const own = await startAt(t, '127.0.0.1', port, server);
  const others = [
    ['127.0.0.2', await startAt(t, '127.0.0.2', port, misnamed), 'of another name'],
    ['127.0.0.3', await startAt(t, '127.0.0.3', port, strangerServer), 'of an authority that is not trusted'],
  ] as const;
  const names = nameService(t, '127.0.0.1');
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
