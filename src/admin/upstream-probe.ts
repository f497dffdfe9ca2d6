import { Client } from 'undici';
import type { UpstreamSettings } from '../config/types.js';
import type { Log } from '../ports/system.js';
import { createConnector, undiciConnector, type Connector } from '../proxy/upstream/connector.js';
import type { Page } from './server.js';

/** Whom a probe asks: the receiving service that is in force. */
export interface ProbedReceiver {
  readonly settings: UpstreamSettings;
  /** Authorities in PEM, or `null` for the system's. */
  readonly ca: string | null;
}

export interface AppProbeDeps {
  readonly receiver: () => ProbedReceiver;
  readonly log: Log;
  /** Milliseconds until a receiver is too slow; 5 s unless given. */
  readonly limitMs?: number;
}

/** Kubelet waits for 1 s unless told otherwise; who waits for longer than this learns that the receiver is too slow. */
const standardLimitMs = 5_000;

/** A health page says little; what is larger is a broken answer. */
const maxHeadBytes = 16 * 1024;

/** What one look at the receiver says. `status` is `null` where there was no answer. */
interface Finding {
  readonly status: number | null;
  readonly answer: number;
}

/**
 * Asks the receiver for a fixed path of the config on behalf of kubelet, which cannot reach its loopback: `GET`,
 * without a field or a byte of whoever asks, on a connection of its own, so that a full pool does not look like a sick
 * receiver. Tells the status and nothing else: 200 for 200 to 399, as kubelet reads them, 400 to 599 as they are, 503
 * where it was not reached and 504 where it was too slow. Those who ask while one look is under way share it.
 */
export function createAppProbe(name: string, path: string, deps: AppProbeDeps): () => Promise<Page> {
  let underWay: Promise<Finding> | null = null;
  let passed: boolean | null = null;

  const look = async (): Promise<Finding> => {
    const finding = await ask(deps.receiver(), path, deps.limitMs ?? standardLimitMs);
    const passes = finding.answer === 200;
    if (passes !== passed) report(name, finding, passes, passed, deps.log);
    passed = passes;
    return finding;
  };
  return async () => {
    underWay ??= look().finally(() => {
      underWay = null;
    });
    const { status, answer } = await underWay;
    return {
      status: answer,
      type: 'application/json',
      body: JSON.stringify({ status: answer === 200 ? 'passed' : 'failed', receiver_status: status }),
    };
  };
}

/** Only changes: a probe comes every few seconds. */
function report(name: string, { status, answer }: Finding, passes: boolean, before: boolean | null, log: Log): void {
  const fields = { probe: name, receiver_status: status, answered: answer };
  if (!passes) log.warn('the receiver fails its probe', fields);
  else if (before !== null) log.info('the receiver passes its probe again', fields);
}

async function ask({ settings, ca }: ProbedReceiver, path: string, limitMs: number): Promise<Finding> {
  const signal = AbortSignal.timeout(limitMs);
  const connector = createConnector(settings, ca);
  const client = clientOf(connector);
  try {
    const status = await statusOf(client, connector, path, signal);
    return { status, answer: status >= 200 && status < 400 ? 200 : status };
  } catch {
    // What failed is told by the proxy's own refusals; here it is a yes or a no.
    return { status: null, answer: signal.aborted ? 504 : 503 };
  } finally {
    await client.destroy();
  }
}

function clientOf({ origin, connect }: Connector): Client {
  return new Client(origin, {
    connect: undiciConnector(connect),
    pipelining: 1,
    maxHeaderSize: maxHeadBytes,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

async function statusOf(client: Client, { origin }: Connector, path: string, signal: AbortSignal): Promise<number> {
  const headers = { host: new URL(origin).host, 'user-agent': 'sallyport-probe', accept: '*/*', connection: 'close' };
  const { statusCode, body } = await client.request({ path, method: 'GET', headers, signal });
  // The status is all that is told; an endless page would hold the connection.
  body.on('error', () => undefined).destroy();
  return statusCode;
}
