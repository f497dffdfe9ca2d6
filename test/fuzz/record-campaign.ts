/** Stored records by the thousand, as a store that is damaged would hand them back. */
import { readReserved } from '../../src/adapters/redis/scripts/replies.js';
import { accept, refuse } from '../../src/lib/result.js';
import type { ReservationStore } from '../../src/ports/idempotency.js';
import { startReservingProxy } from '../proxy/idempotency/reserving-proxy.js';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { drawFrom, once, pick, several, type Draw } from './draw.js';
import { changedText } from './mutations.js';

export interface RecordReport {
  readonly cases: number;
  readonly shown: number;
  readonly faults: readonly string[];
}

const names = [
  'Content-Type',
  'ETag',
  'Location',
  'Link',
  'Set-Cookie',
  'Content-Length',
  'Transfer-Encoding',
  'Connection',
  'X-Auth-Subject',
  'Proxy-Status',
  'Idempotent-Replayed',
  'X-Request-Id',
  'Cache-Control',
  '',
  'Bad Name',
  'a\r\nSet-Cookie',
  'Caf\u00e9',
  'Date',
  '__proto__',
  'Trailer',
  'Upgrade',
  'WWW-Authenticate',
];
const values = [
  'text/plain',
  '"1"',
  '/orders/7',
  'a\r\nSet-Cookie: b=c',
  'a\nb',
  'a\0b',
  '\u00e9',
  '\u{1f642}',
  '',
  '5',
  'chunked',
  'close',
  'x'.repeat(9000),
  '\x7f',
  'a\tb',
];

/** Fields of the answer that are ours, whatever is stored. */
const always = [
  'x-request-id',
  'cache-control',
  'idempotency-key',
  'idempotent-replayed',
  'content-length',
  'date',
  'connection',
  'keep-alive',
];

const serverTime = Buffer.from('1800000000000');

/** The reply of the reserve script, behind the time, for a result that is kept, with whatever may be damaged in it. */
function someReply(draw: Draw): unknown[] {
  const fields = JSON.stringify(
    several(draw, pick(draw, [0, 1, 1, 2, 3]), (one) => [pick(one, names), pick(one, values)]).flat(),
  );
  const parts = [
    'replayed',
    pick(draw, ['200', '201', '204', '304', '404', '500', '599', '999', '199', '101', '1000', '0', '', '1e3', '2OO']),
    once(draw, 6) ? changedText(draw, fields) : fields,
    pick(draw, ['', 'hello', '\xff\0', 'x'.repeat(70_000), 'HTTP/1.1 200 OK\r\n\r\n']),
  ];
  const bytes: unknown[] = parts.map((part, index) => Buffer.from(part, index === 3 ? 'latin1' : 'utf8'));
  if (once(draw, 20)) bytes.splice(draw.below(4), 1);
  if (once(draw, 20)) bytes[draw.below(4)] = pick(draw, [null, 7, [], 'text']);
  return bytes;
}

export async function runRecords(t: Scope, seed: number, cases: number): Promise<RecordReport> {
  const faults: string[] = [];
  let reply: readonly unknown[] = [];
  // As the Redis store reads it: what cannot be read is an odd record, which refuses.
  const watch = (store: ReservationStore): ReservationStore => ({
    ...store,
    reserve: async () => {
      try {
        return accept({ reserved: readReserved([serverTime, ...reply]), confirmedReplicas: 0 });
      } catch {
        return refuse({ kind: 'refused', reason: 'odd', mayHaveRun: true });
      }
    },
  });
  const proxy = await startReservingProxy(t, { watch });
  const headers = { ...proxy.authorization(), 'Idempotency-Key': 'k' };
  let number = 0;
  let shown = 0;
  for (; number < cases && faults.length < 10; number++) {
    reply = someReply(drawFrom(seed, number));
    const answer = await request(proxy.port, { method: 'POST', path: '/orders', headers, body: 'x' });
    const isShown = answer.field('idempotent-replayed') === 'true';
    if (isShown) shown += 1;
    const refused = answer.status === 503 ? null : `answered ${String(answer.status)} ${answer.text}`;
    const ran = proxy.receiver.requests.length > 0 ? 'it ran again' : null;
    const fault = ran ?? (isShown ? differenceOf(answer.fields, answer.status, answer.body, reply) : refused);
    if (fault !== null) {
      faults.push(`seed ${String(seed)}, record ${String(number)}: ${fault}\n${JSON.stringify(reply).slice(0, 1000)}`);
    }
  }
  return { cases: number, shown, faults };
}

/** What a shown result has that was not stored, in words. */
function differenceOf(
  fields: readonly (readonly [string, string])[],
  status: number,
  body: Buffer,
  reply: unknown,
): string | null {
  const parts = reply as readonly Buffer[];
  const stored = JSON.parse(String(parts[2])) as string[];
  if (String(status) !== String(parts[1])) return `shows ${String(status)}`;
  const mayHaveBody = status !== 204 && status !== 304;
  if (mayHaveBody && !body.equals(parts[3] ?? Buffer.alloc(0))) return 'shows another body';
  for (const [name, value] of fields) {
    if (always.includes(name.toLowerCase())) continue;
    const isStored = stored.some(
      (text, index) => index % 2 === 0 && text === name && stored[index + 1]?.trim() === value.trim(),
    );
    if (!isStored) return `shows ${name}: ${value}`;
    if (/^(set-cookie|transfer-encoding|proxy-status|www-authenticate|upgrade|trailer)$/i.test(name)) {
      return `shows ${name}, which is never kept`;
    }
  }
  return null;
}
