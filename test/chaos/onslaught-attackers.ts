/**
 * The process that the attacks of an onslaught come from, so that they take no time of whoever measures. Prints what it
 * sent.
 */
import { setPriority } from 'node:os';
import {
  deaf,
  dripped,
  frames,
  hungUp,
  idle,
  pipelined,
  pipelinedPages,
  sent,
  slowReaders,
  type Attack,
} from './attacks.js';

/**
 * Some each second, from strangers and from one caller: what one machine with an ordinary line sends without a break.
 */
const attacks: readonly Attack[] = [
  pipelined({ count: 20, perSecond: 4 }, 'stranger'),
  pipelined({ count: 10, perSecond: 1 }, 'caller'),
  pipelinedPages({ count: 20, perSecond: 4 }, 'probes', '/metrics'),
  pipelinedPages({ count: 20, perSecond: 4 }, 'admin', '/status'),
  idle({ count: 3_000, perSecond: 50 }, 'stranger'),
  idle({ count: 500, perSecond: 10 }, 'caller'),
  dripped('plain', 'stranger', 40, { bytes: 1, everyMs: 40 }),
  dripped('plain', 'caller', 40, { bytes: 1, everyMs: 40 }),
  dripped('reserved', 'caller', 40, { bytes: 1, everyMs: 40 }),
  deaf({ count: 20, perSecond: 10 }, 'stranger'),
  deaf({ count: 20, perSecond: 10 }, 'caller'),
  slowReaders({ count: 40, perSecond: 10 }, 'stranger'),
  slowReaders({ count: 40, perSecond: 10 }, 'caller'),
  hungUp('stranger', { connections: 2, everyMs: 200 }),
  hungUp('caller', { connections: 2, everyMs: 200 }),
  frames({ count: 100, perSecond: 20 }, 'stranger', { frames: 1, everyMs: 50 }),
  frames({ count: 100, perSecond: 20 }, 'caller', { frames: 1, everyMs: 50 }),
];

const [ports = '', bearer = '', seconds = '', only = ''] = process.argv.slice(2);
// Whoever is measured goes first.
setPriority(19);
const [port = NaN, probes = NaN, admin = NaN] = ports.split(',').map(Number);
const endsAt = performance.now() + Number(seconds) * 1_000;
await Promise.all(
  attacks
    .filter(({ name }) => name.includes(only))
    .map(async ({ run }) => run({ port, probes, admin, bearer }, () => performance.now() >= endsAt)),
);
// The last sockets count themselves when they are closed.
setTimeout(() => {
  const { user, system } = process.cpuUsage();
  process.stdout.write(`${JSON.stringify({ ...sent, cpuSeconds: (user + system) / 1e6 })}\n`);
}, 500);
