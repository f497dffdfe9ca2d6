/**
 * Begins so many reserved writes a second whatever becomes of them, as a process of its own: `RATE CA_FILE CERT_FILE
 * KEY_FILE`. Whom it calls comes on standard input, one line of JSON at a time, which holds from then on: `{ port,
 * bearers }`, the bearers in turn. Writes one line for each write once that is over: milliseconds since the epoch when
 * it began and when it ended, the place of its bearer, and what became of it.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { createInterface } from 'node:readline';

/** What the caller is told on standard input. */
export interface Callee {
  readonly port: number;
  readonly bearers: readonly string[];
}

/** So often writes begin, as many as are due. */
const tickMs = 5;

const [rate = '', ca = '', cert = '', key = ''] = process.argv.slice(2);
const agent = new Agent({
  keepAlive: true,
  ca: readFileSync(ca),
  cert: readFileSync(cert),
  key: readFileSync(key),
  maxSockets: 500,
});
let callee: Callee = { port: 0, bearers: [] };
let began = 0;
let startedMs = 0;

createInterface({ input: process.stdin }).on('line', (line) => {
  callee = JSON.parse(line) as Callee;
  if (startedMs !== 0) return;
  startedMs = performance.now();
  setInterval(begin, tickMs);
});

/**
 * What was missed while the process did not run is made up for: the rate is that of the callers, not of the machine.
 */
function begin(): void {
  const everyMs = 1000 / Number(rate);
  for (; began * everyMs < performance.now() - startedMs; began += 1) void write();
}

async function write(): Promise<void> {
  const beganMs = performance.now();
  const place = began % callee.bearers.length;
  const outcome = await post(callee.port, `Bearer ${callee.bearers[place] ?? ''}`);
  const times = [beganMs, performance.now()].map((ms) => (performance.timeOrigin + ms).toFixed(1));
  process.stdout.write(`${times.join(' ')} ${String(place)} ${outcome}\n`);
}

async function post(port: number, bearer: string): Promise<string> {
  return new Promise((resolve) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: '/orders',
        agent,
        headers: { Authorization: bearer, 'Idempotency-Key': `"${randomUUID()}"` },
      },
      (response) => {
        let text = '';
        const { statusCode = 0 } = response;
        response
          .setEncoding('utf8')
          .on('data', (chunk: string) => (text += chunk))
          .on('error', () => resolve('cut off'));
        response.on('end', () =>
          resolve(`${statusCode}${statusCode === 200 ? '' : ` ${/urn:sallyport:([\w-]+)/.exec(text)?.[1] ?? ''}`}`),
        );
      },
    );
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'failed'));
    sent.end('a body');
  });
}
