/**
 * Load of writes, each with a key of its own, as a process of its own:
 *
 *   node write-load.js URL SECONDS CONNECTIONS RATE AUTHORIZATION …
 *
 * With rate 0 as many as there is time for; several credentials take turns. Prints its result as JSON.
 */
import { randomBytes } from 'node:crypto';
import { runClosedLoop } from './closed-loop.js';

const [url = '', seconds = '1', connections = '1', rate = '0', ...authorizations] = process.argv.slice(2);
const body = JSON.stringify({ items: [{ sku: 'A-1', quantity: 2 }], note: 'x'.repeat(100) });
// Keys are cheap to make, so that the load is not what is measured.
const run = randomBytes(12).toString('hex');

const result = await runClosedLoop({
  connections: Number(connections),
  ...(rate === '0' ? {} : { perSecond: Number(rate) }),
  next: (sent, elapsedMs) => {
    if (elapsedMs >= Number(seconds) * 1000) return null;
    const authorization = authorizations[sent % authorizations.length];
    const headers = {
      authorization,
      'content-type': 'application/json',
      'content-length': body.length,
      'idempotency-key': `${run}-${String(sent)}`,
    };
    return { url, options: { method: 'POST', headers }, body };
  },
});
process.stdout.write(JSON.stringify(result));
