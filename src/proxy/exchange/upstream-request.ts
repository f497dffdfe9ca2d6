import type { Readable } from 'node:stream';
import type { ActiveConfig } from '../auth/active-config.js';
import type { Admission } from '../auth/authorize-request.js';
import type { UpstreamRequest } from '../upstream/call.js';
import { holderOf } from './concurrency.js';
import { assertionHeaders } from './credential-headers.js';

/**
 * Returns what the upstream is asked for an admitted request that is not reserved. To be made when it goes out: its
 * assertion holds for a short time.
 */
export function upstreamRequest(
  admission: Admission,
  method: string,
  body: Readable | Buffer | null,
  activeConfig: ActiveConfig,
  trace: UpstreamRequest['trace'] | null,
): UpstreamRequest {
  const { forwarded, headers, route, target } = admission;
  const assertion = assertionHeaders(admission, method, activeConfig);
  const sent = assertion.length === 0 ? forwarded : [...forwarded, ...assertion];
  // A body that was read for a reservation has a length, however it came.
  const needsLength = headers.chunked && headers.contentLength === null && Buffer.isBuffer(body);
  return {
    holder: holderOf(admission),
    method,
    target: target.raw,
    headers: needsLength ? [...sent, 'Content-Length', String(body.length)] : sent,
    body,
    responseTimeoutMs: Math.min(route.responseTimeoutMs, admission.grpcTimeoutMs ?? Infinity),
    trace: trace ?? undefined,
  };
}
