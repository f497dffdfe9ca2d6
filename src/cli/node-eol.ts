import type { Io } from './io.js';

/** Last day with security fixes of each Node.js line that this program runs on (nodejs/Release, schedule.json). */
const endOfLife: ReadonlyMap<number, string> = new Map([
  [20, '2026-04-30'],
  [22, '2027-04-30'],
  [24, '2028-04-30'],
]);

/** Set to `off`, it says that somebody knows how old the Node.js is. */
const noticeVariable = 'SALLYPORT_NODE_EOL_WARNING';

/** What to tell somebody whose Node.js gets no more security fixes, or `null`. `nodeVersion` is like `20.19.0`. */
export function endOfLifeNotice(nodeVersion: string, nowMs: number, env: Io['env']): string | null {
  if (env[noticeVariable] === 'off') return null;
  const major = Number.parseInt(nodeVersion, 10);
  const day = endOfLife.get(major);
  if (day === undefined || nowMs < Date.parse(`${day}T23:59:59Z`)) return null;
  return `Node.js ${String(major)} has had no security fixes since ${day}; use Node.js 24, or set ${noticeVariable}=off`;
}
