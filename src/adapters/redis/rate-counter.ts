import type { LimitKey } from '../../decision/route/rate-limit.js';
import { accept, refuse } from '../../lib/result.js';
import type { SharedRateCounter } from '../../ports/limits.js';
import { scripts } from './scripts/reservation.js';
import type { Servers } from './topology/primaries.js';
import type { RedisSettings } from './client/settings.js';

/** Counts requests in Redis, by its clock: one round trip each, within the time that a reservation has. */
export function createSharedRateCounter(servers: Pick<Servers, 'run'>, settings: RedisSettings): SharedRateCounter {
  return {
    take: async (key, { perSecond, burst }) => {
      const values = [(1_000_000 / perSecond).toFixed(3), String(burst)];
      const call = {
        script: scripts.limit,
        keys: [limitKeyOf(settings.prefix, key)],
        values,
        replicas: 0,
        deadlineMs: settings.reserveTimeoutMs,
      };
      const ran = await servers.run(key.principal, call);
      if (!ran.ok) {
        const { kind, reason, mayHaveRun } = ran.error;
        return refuse({ kind, reason, mayHaveRun });
      }
      const waitUs = Number(String(ran.value.reply));
      // Another program under our prefix.
      if (!Number.isFinite(waitUs)) {
        return refuse({ kind: 'refused', reason: 'the store answered with something unexpected', mayHaveRun: true });
      }
      return accept(waitUs / 1_000);
    },
  };
}

/** On the slot of the caller's reservations. */
function limitKeyOf(prefix: string, { principal, scope }: LimitKey): string {
  return `${prefix}:{${principal}}:l:${scope}`;
}
