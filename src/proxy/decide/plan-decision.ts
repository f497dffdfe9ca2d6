/** What a decide listener makes of a request that was admitted. */
import type { DecideSettings } from '../../config/types.js';
import { answeredNames, removesNames, unremovableHeader } from '../../decision/decide/allow.js';
import { limitsOf } from '../../decision/decide/limits.js';
import { denial, type Denial } from '../../decision/denial.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import type { Result } from '../../lib/result.js';
import type { ActiveConfig } from '../auth/active-config.js';
import type { Admission } from '../auth/authorize-request.js';
import { planReservation, type Plan } from '../idempotency/plan-reservation.js';

/**
 * Names that every answer has. The assertion's is among them even where none is given, so that a client's never goes
 * on.
 */
export function namesOf({ config: { identity, assertion } }: Pick<ActiveConfig, 'config'>): readonly string[] {
  return answeredNames(identity, assertion?.header ?? null);
}

/**
 * Says what becomes of a request that was admitted: it is allowed, but for what only the sidecar can see to. Decide
 * listeners and `sallyport test` both ask this.
 */
export function planDecision(
  admission: Admission,
  activeConfig: ActiveConfig,
  { rawHeaders }: RequestHead,
  { form, accepts }: Pick<DecideSettings, 'form' | 'accepts'>,
): Plan {
  const refused = (reason: Denial): Plan => ({ kind: 'refuse', denial: reason, reservationId: null });
  const { route, headers } = admission;
  if (!removesNames(form) && unremovableIn(rawHeaders, activeConfig) !== null) return refused(denial('field_refused'));
  const reserved = reservationOf(admission, activeConfig);
  // As with the sidecar, shadow mode may waive what a reservation lacks, and what only the sidecar can see to.
  const waived = reserved.ok ? null : admission.shadowAdmission(reserved.error);
  if (!reserved.ok && waived === null) return refused(reserved.error);
  const limits = limitsOf({
    reservation: reserved.ok && reserved.value ? route.reservation : null,
    opensConnections: headers.upgrade !== null || route.isGrpc,
  });
  const unsupported = denial('decide_unsupported');
  const isSupported = limits.every(({ acceptance }) => accepts.has(acceptance));
  const passed =
    waived ?? (isSupported || admission.shadow !== null ? admission : admission.shadowAdmission(unsupported));
  if (passed === null) return refused(unsupported);
  const isTooLarge = (headers.contentLength ?? 0) > route.maxBodyBytes;
  return isTooLarge ? refused(denial('body_too_large')) : { kind: 'forward', admission: passed };
}

/** The header that a proxy would pass on, though the upstream must not get it, where it cannot be told to remove it. */
export function unremovableIn(
  rawHeaders: readonly string[],
  activeConfig: Pick<ActiveConfig, 'config' | 'headerRules'>,
): string | null {
  const answered = new Set(namesOf(activeConfig).map((name) => name.toLowerCase()));
  return unremovableHeader(rawHeaders, activeConfig.headerRules, answered);
}

/** Whether this request would be reserved: a key that is malformed or missing is refused as by the sidecar. */
function reservationOf(admission: Admission, activeConfig: ActiveConfig): Result<boolean, Denial> {
  if (admission.route.reservation === null || admission.shadow !== null) return { ok: true, value: false };
  const planned = planReservation(admission, activeConfig, null);
  return planned.ok ? { ok: true, value: planned.value !== null } : planned;
}
