/**
 * Outages: what goes wrong around a proxy, and what its callers and its operators then see. `docs/outages.md`
 * is made of these rows.
 */
import type { Test } from 'tap';
import { isFailure, type Reason } from '../../src/decision/denial.js';
import { connectRaw, request, requestBytes, type RawResponse, type RequestInput } from '../support/raw-client.js';
import type { LogLine } from '../support/serve-process.js';
import { until } from '../support/until.js';
import type { ProxyProcess } from '../support/proxy-process.js';
import { problemOrStatus } from './shared-redis.js';

/**
 * What is asked in each outage: a read, a write that is reserved, a token whose key is not known, a public page, an
 * old connection.
 */
export type Ask = 'read' | 'write' | 'unknown key' | 'public';

/** Answers as the page has them: a status, and the last part of a problem's `type` where it is one of ours. */
export type Answer =
  | '200'
  | '401'
  | '502 upstream-failed'
  | '503 keys-unavailable'
  | '503 store-unavailable'
  | '503 upstream-unreachable'
  | '504 upstream-timeout'
  | '200, visibly cut off'
  | 'closed without an answer';

export interface Outage<Setup> {
  readonly name: string;
  /** For each ask: the first is what it comes to say, and nothing but these is ever said in this outage. */
  readonly asks: Readonly<Partial<Record<Ask, readonly [Answer, ...Answer[]]>>>;
  /** Denials that are counted, and that the lines of the requests name. */
  readonly reasons?: readonly Reason[];
  /** `error=` in `Proxy-Status`. */
  readonly error?: string;
  /** Other series that grow. */
  readonly grow?: readonly string[];
  /** Series that come to this. */
  readonly become?: Readonly<Record<string, number>>;
  /** A line of the process. */
  readonly log?: string;
  /** What `/readyz` says, where it is not `ready`. */
  readonly ready?: 'degraded' | 'unavailable';
  /** What else is to be known, for the page. */
  readonly remark?: string;
  readonly begin: (setup: Setup) => unknown;
  readonly end: (setup: Setup) => unknown;
}

/** Says what these rows are. */
export function outages<Setup>(rows: readonly Outage<Setup>[]): readonly Outage<Setup>[] {
  return rows;
}

/** The same request twice is one write: each has a key of its own. */
export function inputOf(proxy: ProxyProcess, ask: Ask): RequestInput {
  const headers = proxy.authorization(undefined);
  if (ask === 'public') return { path: '/healthz' };
  if (ask === 'write') {
    return {
      method: 'POST',
      path: '/orders',
      headers: { ...headers, 'Idempotency-Key': `k-${Math.random()}` },
      body: 'order',
    };
  }
  if (ask === 'unknown key') {
    return { path: '/orders', headers: { Authorization: `Bearer ${proxy.token(undefined, { kid: 'd-unknown' })}` } };
  }
  return { path: '/orders', headers };
}

/** Lets the outage come, sees what it is to bring, and that it passes without a restart. */
export async function outage<Setup extends { readonly proxy: ProxyProcess }>(
  t: Test,
  setup: Setup,
  row: Outage<Setup>,
): Promise<void> {
  const { proxy } = setup;
  const asks = Object.entries(row.asks) as [Ask, readonly [Answer, ...Answer[]]][];
  const ask = async (what: Ask): Promise<RawResponse | null> =>
    request(proxy.port, inputOf(proxy, what), { limitMs: 20_000 }).catch(() => null);
  const isWell = async (): Promise<boolean> => {
    const statuses = await Promise.all(asks.map(async ([what]) => [what, (await ask(what))?.status] as const));
    return (
      statuses.every(([what, status]) => status === (what === 'unknown key' ? 401 : 200)) &&
      (await readiness(proxy)) === 'ready'
    );
  };
  await until(`${row.name}: all is well before`, isWell);
  const reasons = (row.reasons ?? []).map(
    (reason) => `sallyport_${isFailure(reason) ? 'failures' : 'denials'}_total{reason="${reason}"}`,
  );
  const growing = [...reasons, ...(row.grow ?? [])];
  const before = await Promise.all(growing.map(proxy.metric));
  const linesBefore = proxy.logs().length;

  await row.begin(setup);
  const answered = new Map<Ask, Set<string>>(asks.map(([what]) => [what, new Set()]));
  for (const [what, [shown]] of asks) {
    await until(`${row.name}: a ${what} comes to say ${shown}`, async () => {
      const answer = await ask(what);
      const word = wordsOf(answer);
      answered.get(what)?.add(word);
      if (word === shown && row.error !== undefined) {
        t.match(answer?.field('proxy-status'), `error=${row.error}`, `${row.name}: Proxy-Status`);
      }
      return word === shown;
    });
  }
  for (const [index, series] of growing.entries()) {
    await until(`${row.name}: ${series} grows`, async () => (await proxy.metric(series)) > (before[index] ?? 0));
  }
  for (const [series, value] of Object.entries(row.become ?? {})) {
    await until(`${row.name}: ${series} is ${value}`, async () => (await proxy.metric(series)) === value);
  }
  const { log, ready } = row;
  const lines = (): readonly LogLine[] => proxy.logs().slice(linesBefore);
  if (log !== undefined) {
    await until(`${row.name}: the log says "${log}"`, () => lines().some(({ msg }) => msg === log));
  }
  for (const reason of row.reasons ?? []) {
    await until(`${row.name}: lines say ${reason}`, () => lines().some((line) => line['reason'] === reason));
  }
  if (ready !== undefined) {
    await until(`${row.name}: /readyz is ${ready}`, async () => (await readiness(proxy)) === ready);
  }

  await row.end(setup);
  await until(`${row.name}: all is well again`, isWell, 60_000);
  for (const [what, allowed] of asks) {
    // A outage begins in the midst of things: what was well a moment before may still be.
    const most: readonly string[] = [...allowed, what === 'unknown key' ? '401' : '200'];
    t.same(
      [...(answered.get(what) ?? [])].filter((word) => !most.includes(word)),
      [],
      `${row.name}: a ${what} says nothing else`,
    );
  }
  t.ok(proxy.process.isRunning(), `${row.name}: no restart`);
}

/** A connection that was open before the outage came. */
export async function openBefore(proxy: ProxyProcess): Promise<() => Promise<string>> {
  const connection = await connectRaw(proxy.port);
  return async () => {
    connection.write(requestBytes(proxy.port, inputOf(proxy, 'read')));
    const answer = await connection.readResponse();
    connection.end();
    return wordsOf(answer);
  };
}

function wordsOf(answer: RawResponse | null): string {
  if (answer === null) return 'closed without an answer';
  if (!answer.complete) return `${answer.status}, visibly cut off`;
  const answered = problemOrStatus(answer);
  return answered === 'about:blank' || answered === String(answer.status)
    ? String(answer.status)
    : `${answer.status} ${answered}`;
}

async function readiness(proxy: ProxyProcess): Promise<string> {
  return (JSON.parse((await proxy.admin('/readyz')).text) as { status: string }).status;
}
