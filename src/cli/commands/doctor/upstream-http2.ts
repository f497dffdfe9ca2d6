import { randomUUID } from 'node:crypto';
import type { UpstreamSettings } from '../../../config/types.js';
import type { Denial } from '../../../decision/denial.js';
import { createUpstream } from '../../../proxy/upstream/pool/pool.js';
import { version } from '../../../version.js';
import { ok, problem, unreachable, warning, type Finding } from './finding.js';

const subject = 'receiver http2';

/** How long a response may take; milliseconds. */
const responseLimitMs = 3_000;

/** Asks the service over HTTP/2 for a path that no service has, without a credential or an identity. */
export async function checkHttp2(settings: UpstreamSettings, ca: string | null): Promise<Finding> {
  const upstream = createUpstream({ ...settings, maxConnections: 1 }, ca);
  try {
    return await new Promise<Finding>((resolve) => {
      const request = {
        holder: '',
        method: 'GET',
        target: `/sallyport-doctor-${randomUUID()}`,
        headers: ['Host', upstream.host, 'User-Agent', `sallyport-doctor/${version}`],
        body: null,
        responseTimeoutMs: responseLimitMs,
      };
      upstream.send(request, {
        onHead: () => resolve(ok(subject, 'speaks HTTP/2')),
        onData: () => true,
        onEnd: () => undefined,
        onError: (reason) => resolve(findingOf(reason, settings.connectTimeoutMs)),
      });
    });
  } finally {
    await upstream.close();
  }
}

function findingOf({ reason, error }: Denial, connectTimeoutMs: number): Finding {
  if (reason !== 'upstream_unreachable') {
    return warning(subject, 'speaks HTTP/2, but gave no whole answer to GET', 'see why it does not answer');
  }
  // Busy, or waiting for the request line of HTTP/1.1.
  return error === 'connection_timeout'
    ? unreachable(
        subject,
        `made no HTTP/2 connection within ${String(connectTimeoutMs)} ms`,
        'see why it is slow, or set upstream.http2: false where it speaks HTTP/1.1 alone',
      )
    : problem(subject, 'does not speak HTTP/2', 'set upstream.http2: false, or have it speak HTTP/2');
}
