/** What the receiver ran and what callers were told: the oracle of the upheaval. */
import { request, type RawResponse } from '../support/raw-client.js';
import type { LogLine } from '../support/serve-process.js';
import { problemOrStatus } from './shared-redis.js';

export interface Received {
  readonly route: string;
  /** The key, or the id of the token where there is none. */
  readonly key: string;
  readonly requestId: string;
  /** `Idempotency-Record` and `Idempotency-Fence`. */
  readonly record: string;
  readonly fence: number;
}

export interface ReceiverAnswer {
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: string;
}

/** One thing that must not be, and what tells of it. */
export interface Breach {
  readonly what: string;
  readonly route: string;
  readonly key: string;
  /** What the receiver did and what callers were shown, in short. */
  readonly detail: string;
  /** The messages of the log that name its record; none where nobody noticed. */
  readonly told: readonly string[];
  /**
   * How the process ended that alone could have noticed: it ran the write first and was gone before the time was over
   * for which it remembers what it settled. `null` where it went on, or where another one could have noticed.
   */
  readonly gone: string | null;
}

/** A process of a proxy. */
export interface ProxyLife {
  readonly lines: readonly LogLine[];
  /** When it was ended, of `performance.now()`, and by which signal; `null` while it runs. */
  readonly end: { readonly atMs: number; readonly signal: string } | null;
}

/** For so long a proxy offers what it settled again, where a store forgets; milliseconds (docs/guarantees.md). */
const rememberedMs = 15_000;

export interface UpheavalLedger {
  readonly received: (input: Received) => ReceiverAnswer;
  readonly asked: (route: string, key: string, requestId: string) => void;
  readonly answered: (route: string, key: string, requestId: string, answer: RawResponse | null) => string;
  /** Status of a write that no one counts, or 0. */
  readonly probe: (port: number, token: string) => Promise<number>;
  readonly counts: () => Readonly<Record<string, number>>;
  readonly writes: () => number;
  readonly breaches: (lives: readonly ProxyLife[]) => readonly Breach[];
}

interface Write {
  readonly route: string;
  readonly key: string;
  readonly record: Set<string>;
  /** Requests that the receiver acted on, and when, of `performance.now()`. */
  readonly ran: { readonly requestId: string; readonly atMs: number }[];
  readonly answers: Set<string>;
  readonly notSent: string[];
  readonly fences: Map<number, string>;
  sameFence: boolean;
  row: { fence: number; answer: ReceiverAnswer | null };
}

/** With these nothing was sent. */
const notSent: ReadonlySet<string> = new Set([
  'store-unavailable',
  'upstream-unreachable',
  'overloaded',
  'shutting-down',
  'too-many-pending',
]);
const probeRoute = 'plain';

/** Messages that tell of a write that ran, or may have run, twice; or of what a store forgot. */
const telling = /ran twice|may have run twice|had lost/;

export function createUpheavalLedger(): UpheavalLedger {
  const writes = new Map<string, Write>();
  const counts = new Map<string, number>();
  const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);
  let probes = 0;

  function writeOf(route: string, key: string): Write {
    const name = `${route} ${key}`;
    const found = writes.get(name);
    if (found !== undefined) return found;
    const made: Write = {
      route,
      key,
      record: new Set(),
      ran: [],
      answers: new Set(),
      notSent: [],
      fences: new Map(),
      sameFence: false,
      row: { fence: 0, answer: null },
    };
    writes.set(name, made);
    return made;
  }

  return {
    received: ({ route, key, requestId, record, fence }) => {
      const write = writeOf(route, key.replaceAll('"', ''));
      const outcome = (word: string): Record<string, string> =>
        route === 'reports' || route === 'deduplicates' ? { 'idempotency-outcome': word } : {};
      const hasRecord = record !== 'undefined';
      if (hasRecord) {
        write.record.add(record);
        if ((write.fences.get(fence) ?? requestId) !== requestId) write.sameFence = true;
        write.fences.set(fence, requestId);
      }
      const refused: ReceiverAnswer = { status: 429, fields: outcome('not-applied'), body: 'later' };
      if (route === 'deduplicates') {
        if (fence < write.row.fence) return { status: 409, fields: outcome('not-applied'), body: 'overtaken' };
        write.row.fence = fence;
        if (write.row.answer !== null) return write.row.answer;
      }
      if (Math.random() < 0.03) {
        count('refused by the receiver');
        return refused;
      }
      write.ran.push({ requestId, atMs: performance.now() });
      const answer: ReceiverAnswer = {
        status: 201,
        fields: outcome('committed'),
        body: `${route} ${write.key} by ${requestId}`,
      };
      write.row.answer = answer;
      return answer;
    },
    asked: (route, key) => void writeOf(route, key),
    answered: (route, key, requestId, answer) => {
      const write = writeOf(route, key);
      // What was cut off on its way is none.
      const answered =
        answer?.complete !== true ? 'no answer' : problemOrStatus(answer).replace('about:blank', String(answer.status));
      count(answered);
      if (answer?.status === 201 && answer.complete) write.answers.add(answer.text);
      if (notSent.has(answered)) write.notSent.push(requestId);
      return answered;
    },
    probe: async (port, token) => {
      const headers = {
        Authorization: `Bearer ${token}`,
        'Idempotency-Key': `probe-${String((probes += 1))}-${String(Math.random())}`,
      };
      return request(port, { method: 'POST', path: `/${probeRoute}`, headers, body: 'probe' }).then(
        ({ status }) => status,
        () => 0,
      );
    },
    counts: () => Object.fromEntries([...counts].sort()),
    writes: () => writes.size,
    breaches: (lives) => {
      const told = new Map<string, Set<string>>();
      for (const { record, msg } of lives.flatMap(({ lines }) => lines)) {
        if (typeof record !== 'string' || !telling.test(String(msg))) continue;
        told.set(record, (told.get(record) ?? new Set()).add(String(msg)));
      }
      const toldOf = (write: Write): string[] => [...write.record].flatMap((record) => [...(told.get(record) ?? [])]);
      return [...writes.values()].flatMap((write) =>
        whatIsWrong(write).map((what): Breach => ({
          what,
          route: write.route,
          key: write.key,
          detail: detailOf(write),
          told: toldOf(write),
          gone: goneOf(write, lives),
        })),
      );
    },
  };
}

/** See `Breach.gone`. */
function goneOf({ ran: [first, second] }: Write, lives: readonly ProxyLife[]): string | null {
  if (first === undefined || second === undefined) return null;
  const life = lives.find(({ lines }) => lines.some((line) => line['request_id'] === first.requestId));
  if (life === undefined) return 'without a line';
  return life.end !== null && life.end.atMs < first.atMs + rememberedMs ? life.end.signal : null;
}

function detailOf({ ran, answers, fences }: Write): string {
  return `ran by ${ran.map(({ requestId, atMs }) => `${requestId} at ${(atMs / 1_000).toFixed(2)} s`).join(', ')}; shown ${[...answers].join(' | ')}; fences ${[...fences.keys()].join(', ')}`;
}

function whatIsWrong({ route, ran, answers, notSent: unsent, sameFence }: Write): readonly string[] {
  return [
    ...(ran.length > 1 ? [route === 'single' ? 'a single-use token passed twice' : 'a write ran twice'] : []),
    ...(answers.size > 1 && ran.length < 2 ? ['a write had two answers'] : []),
    ...(unsent.some((requestId) => ran.some((run) => run.requestId === requestId))
      ? ['a caller was told that nothing was sent, and it ran']
      : []),
    ...(sameFence ? ['two attempts had the same fence'] : []),
    ...(ran.length === 0 && answers.size > 0 ? ['a result was shown, and nothing ran'] : []),
  ];
}
