/** Names whose addresses change while they are used. */
import { createServer } from 'node:https';
import { createRequire } from 'node:module';
import type { Certificate } from '../../support/certificates.js';
import type { Scope } from '../../support/scope.js';

type Done = (
  error: Error | null,
  address: string | readonly { address: string; family: number }[],
  family?: number,
) => void;

/** Has each `.test` name lead to an address, and tells how often one was looked up. */
export function startNames(t: Scope, address: string): { address: string; lookups: number } {
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

/** A server of HTTPS at one address of this machine. */
export interface Place {
  readonly asked: () => number;
  readonly breakOff: () => void;
}

/** Starts one that answers with its address. */
export async function startAt(t: Scope, address: string, port: number, { cert, key }: Certificate): Promise<Place> {
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
