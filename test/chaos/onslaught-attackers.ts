/**
 * The process that the attacks of an onslaught come from, so that they take no time of whoever measures. Prints what it
 * sent.
 */
import { setPriority } from 'node:os';
import { sent } from './attacks.js';
import { chosenAttacks } from './onslaught-attacks.js';

const [ports = '', bearer = '', seconds = '', only = '', without = ''] = process.argv.slice(2);
// Whoever is measured goes first.
setPriority(19);
const [port = NaN, probes = NaN, admin = NaN] = ports.split(',').map(Number);
const endsAt = performance.now() + Number(seconds) * 1_000;
await Promise.all(
  chosenAttacks(only, without).map(async ({ run }) =>
    run({ port, probes, admin, bearer }, () => performance.now() >= endsAt),
  ),
);
// The last sockets count themselves when they are closed.
setTimeout(() => {
  const { user, system } = process.cpuUsage();
  process.stdout.write(`${JSON.stringify({ ...sent, cpuSeconds: (user + system) / 1e6 })}\n`);
}, 500);
