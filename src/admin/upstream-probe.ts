import type { UpstreamSettings } from '../config/types.js';
import type { Denial } from '../decision/denial.js';
import type { Log } from '../ports/system.js';
import { createUpstream } from '../proxy/upstream/pool/pool.js';
import type { Page } from './server.js';

/** Whom a probe asks: the upstream that is in force. */
export interface ProbedUpstream {
  readonly settings: UpstreamSettings;
  /** Authorities in PEM, or `null` for the system's. */
  readonly ca: string | null;
}

interface AppProbeDeps {
  readonly upstream: () => ProbedUpstream;
  readonly log: Log;
  /** Milliseconds until an upstream is too slow; 5 s unless given. */
  readonly limitMs?: number;
}

/** Kubelet waits for 1 s unless told otherwise; who waits for longer than this learns that the upstream is too slow. */
const standardLimitMs = 5_000;

/** A health page says little; what is larger is a broken response. Characters of names and values. */
const maxHeadLength = 16 * 1024;

/** What one look at the upstream says. `status` is `null` where there was no response. */
interface Finding {
  readonly upstreamStatus: number | null;
  readonly status: number;
}

const unreachable: Finding = { upstreamStatus: null, status: 503 };
const tooSlow: Finding = { upstreamStatus: null, status: 504 };

/**
 * Asks the upstream for a fixed path of the config on behalf of kubelet, which cannot reach its loopback: `GET`,
 * without a header or a byte of whoever asks, on a connection of its own, so that a full pool does not look like a sick
 * upstream. Tells the status and nothing else: 200 for 200 to 399, as kubelet reads them, 400 to 599 as they are, 503
 * where it was not reached and 504 where it was too slow. Those who ask while one look is under way share it.
 */
export function createAppProbe(name: string, path: string, deps: AppProbeDeps): () => Promise<Page> {
  let underWay: Promise<Finding> | null = null;
  let passed: boolean | null = null;

  const look = async (): Promise<Finding> => {
    const finding = await ask(deps.upstream(), path, deps.limitMs ?? standardLimitMs);
    const passes = finding.status === 200;
    if (passes !== passed) report(name, finding, passes, passed, deps.log);
    passed = passes;
    return finding;
  };
  return async () => {
    underWay ??= look().finally(() => {
      underWay = null;
    });
    const { upstreamStatus, status } = await underWay;
    return {
      status,
      type: 'application/json',
      body: JSON.stringify({ status: status === 200 ? 'passed' : 'failed', receiver_status: upstreamStatus }),
    };
  };
}

/** Only changes: a probe comes every few seconds. */
function report(
  name: string,
  { upstreamStatus, status }: Finding,
  passes: boolean,
  before: boolean | null,
  log: Log,
): void {
  const fields = { probe: name, receiver_status: upstreamStatus, answered: status };
  if (!passes) log.warn('the upstream fails its probe', fields);
  else if (before !== null) log.info('the upstream passes its probe again', fields);
}

/** Asks over one connection like those of requests, which is closed then. Never rejects. */
async function ask({ settings, ca }: ProbedUpstream, path: string, limitMs: number): Promise<Finding> {
  const upstream = createUpstream({ ...settings, maxConnections: 1, reuse: 'never' }, ca);
  let tellTooSlow = (): void => undefined;
  const timer = setTimeout(() => tellTooSlow(), limitMs);
  try {
    return await new Promise<Finding>((resolve) => {
      tellTooSlow = () => resolve(tooSlow);
      const headers = ['Host', upstream.host, 'User-Agent', 'sallyport-probe', 'Accept', '*/*'];
      const request = { holder: '', method: 'GET', target: path, headers, body: null, responseTimeoutMs: limitMs };
      upstream.send(request, {
        // The status is all that is told; an endless page would hold the connection.
        onHead: (upstreamStatus, rawHeaders) => resolve(findingOf(upstreamStatus, rawHeaders)),
        onData: () => true,
        onEnd: () => undefined,
        onError: (reason) => resolve(failureOf(reason)),
      });
    });
  } finally {
    clearTimeout(timer);
    await upstream.close();
  }
}

function findingOf(upstreamStatus: number, rawHeaders: readonly string[]): Finding {
  const isBroken = upstreamStatus > 599 || rawHeaders.join('').length > maxHeadLength;
  return isBroken ? unreachable : { upstreamStatus, status: upstreamStatus < 400 ? 200 : upstreamStatus };
}

/** What failed is told by the proxy's own refusals; here it is a yes or a no. */
function failureOf({ reason }: Denial): Finding {
  return reason === 'upstream_timeout' ? tooSlow : unreachable;
}
