/** What an onslaught consists of. */
import {
  deaf,
  dripped,
  frames,
  heavyHeads,
  hungUp,
  idle,
  pipelined,
  pipelinedPages,
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
  heavyHeads({ count: 4, perSecond: 20 }),
  hungUp('stranger', { connections: 2, everyMs: 200 }),
  hungUp('caller', { connections: 2, everyMs: 200 }),
  frames({ count: 100, perSecond: 20 }, 'stranger', { frames: 1, everyMs: 50 }),
  frames({ count: 100, perSecond: 20 }, 'caller', { frames: 1, everyMs: 50 }),
];

/** Those with `only` in their names, and none of the parts that `without` has, separated by `|`. */
export function chosenAttacks(only: string, without: string): readonly Attack[] {
  const leftOut = without.split('|').filter((part) => part !== '');
  return attacks.filter(({ name }) => name.includes(only) && !leftOut.some((part) => name.includes(part)));
}
