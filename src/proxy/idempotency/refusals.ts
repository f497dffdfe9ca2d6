import { denial, type Denial } from '../../decision/denial.js';
import type { Reserved } from '../../decision/idempotency/record.js';

/** The longest that a caller is told to wait for a write in progress, seconds: most end long before their lease. */
const longestRetryAfterS = 5;

/** Why a request that found its key or token taken does not go on. */
export function refusalOf(
  reserved: Exclude<Reserved, { kind: 'acquired' | 'replayed' }>,
  recordId: string | null,
): Denial {
  const record = recordId === null ? {} : { record: recordId };
  switch (reserved.kind) {
    case 'in_progress': {
      const retryAfterS = Math.min(longestRetryAfterS, Math.max(1, Math.ceil(reserved.retryAfterMs / 1000)));
      return { reason: 'idempotency_in_progress', retryAfterS, ...record };
    }
    case 'unknown':
      return { reason: 'idempotency_outcome_unknown', ...record };
    case 'tombstone':
      return { reason: 'idempotency_not_replayable', ...record };
    case 'mismatch':
      return denial('idempotency_key_reused');
    case 'token_replayed':
      return denial('token_replayed');
    case 'unsupported':
      return denial('store_unavailable');
  }
}
