/**
 * Load at a fixed rate, as a process of its own:
 *
 *   node rate-load.js URL RATE SECONDS CONNECTIONS AUTHORIZATION
 *
 * Each request has its time, whether or not those before it were answered, and its latency counts from that time: a
 * proxy that stalls is charged for all that would have come meanwhile. Prints its result as JSON.
 */
import { Agent, request } from 'node:http';
import type { RateResult } from './latency.js';

const [url = '', rate = '1', seconds = '1', connections = '1', authorization = ''] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: Number(connections) });
const latenciesMs: number[] = [];
const count = Math.floor(Number(rate) * Number(seconds));
let [sent, failed] = [0, 0];

async function ask(plannedMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const req = request(url, { agent, headers: { authorization } }, (res) => {
      res.resume().on('end', () => {
        latenciesMs.push(performance.now() - plannedMs);
        if (res.statusCode !== 200) failed += 1;
        resolve();
      });
    });
    req.on('error', () => {
      failed += 1;
      resolve();
    });
    req.end();
  });
}

const startedMs = performance.now();
const asked: Promise<void>[] = [];
await new Promise<void>((resolve) => {
  const send = (): void => {
    for (
      let plannedMs = startedMs + (sent * 1000) / Number(rate);
      sent < count && plannedMs <= performance.now();
      plannedMs += 1000 / Number(rate)
    ) {
      sent += 1;
      asked.push(ask(plannedMs));
    }
    if (sent >= count) {
      resolve();
      return;
    }
    // Timers have milliseconds only, which is more than what is measured: the last of them is not slept through.
    const earlyMs = startedMs + (sent * 1000) / Number(rate) - performance.now();
    if (earlyMs > 3) setTimeout(send, earlyMs - 2);
    else setImmediate(send);
  };
  send();
});
await Promise.all(asked);
agent.destroy();
const result: RateResult = { latenciesMs, failed };
process.stdout.write(JSON.stringify(result));
