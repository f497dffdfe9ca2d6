import t from 'tap';
import type { Completed, Marked, Released } from '../../../src/decision/idempotency/record.js';
import { createSettlementReport } from '../../../src/proxy/idempotency/settlement-report.js';
import type { SettleCommand, Settling } from '../../../src/proxy/idempotency/settlement-queue.js';
import { collectingLog, markOf } from '../../adapters/store-commands.js';

const response = { status: 200, headers: [], body: Buffer.alloc(0) };
const completion = { attempt: 'a', fence: 1, fingerprint: 'f', response, retentionMs: 1_000 };
const complete: SettleCommand = { kind: 'complete', command: { ...completion, state: 'completed' } };
const keepStatus: SettleCommand = { kind: 'complete', command: { ...completion, state: 'tombstone' } };
const release: SettleCommand = { kind: 'release', command: { attempt: 'a' }, wasSent: false };
const freed: SettleCommand = { kind: 'release', command: { attempt: 'a' }, wasSent: true };
const mark: SettleCommand = { kind: 'mark', command: markOf('a', 1) };

interface Case {
  readonly write: SettleCommand;
  /** `null` where the store did not take it in time. */
  readonly answer: Completed | Released | Marked | null;
  readonly deduplicates?: true;
  readonly counted: readonly string[];
  readonly line?: RegExp;
}

const cases: readonly Case[] = [
  { write: complete, answer: 'completed', counted: ['completed'] },
  { write: keepStatus, answer: 'completed', counted: ['tombstone'] },
  { write: release, answer: 'released', counted: ['released'] },
  {
    write: mark,
    answer: 'unknown',
    counted: ['in doubt p.o'],
    line: /^warn whether a write was applied is not known.*"record":"p\.o".*sallyport record/,
  },
  {
    write: complete,
    answer: 'repaired',
    counted: ['repaired'],
    line: /^error the store had lost a reservation.*"record":"p\.o".*persistence/,
  },
  {
    write: complete,
    answer: 'fenced',
    counted: ['fenced'],
    line: /^error a write ran twice.*"record":"p\.o".*compare/,
  },
  {
    write: complete,
    answer: 'fenced',
    deduplicates: true,
    counted: ['fenced'],
    line: /^warn a write was sent twice.*"record":"p\.o"/,
  },
  {
    write: release,
    answer: 'kept',
    counted: [],
    line: /^warn a reservation was not settled.*"record":"p\.o","settle":"release","answer":"kept"/,
  },
  {
    write: mark,
    answer: 'unsupported',
    counted: [],
    line: /^warn a reservation was not settled.*"settle":"mark","answer":"unsupported"/,
  },
  {
    write: mark,
    answer: 'repaired',
    counted: ['repaired', 'in doubt p.o'],
    line: /^error the store had lost the reservation of a write that may have been applied.*"record":"p\.o".*sallyport record.*persistence/,
  },
  {
    write: mark,
    answer: 'fenced',
    counted: ['fenced', 'in doubt p.o'],
    line: /^error a write may have run twice.*"record":"p\.o".*compare/,
  },
  {
    write: mark,
    answer: 'fenced',
    deduplicates: true,
    counted: ['fenced'],
    line: /^warn a write was sent twice.*"record":"p\.o"/,
  },
  {
    write: mark,
    answer: 'unknown',
    deduplicates: true,
    counted: [],
    line: /^warn whether a write was applied is not known: a retry is sent again, and.*\{"record":"p\.o"\}$/,
  },
  {
    write: mark,
    answer: 'repaired',
    deduplicates: true,
    counted: ['repaired'],
    line: /^error the store had lost the reservation.*a retry is sent again, and.*"record":"p\.o","what_to_do":"check the persistence/,
  },
  ...[mark, complete, release].map((write): Case => ({
    write,
    answer: null,
    deduplicates: true,
    counted: [],
    line: /^warn a reservation could not be settled: a retry is sent again once its lease is over, and.*\{"record":"p\.o","settle":"[a-z]+"\}$/,
  })),
  {
    write: release,
    answer: null,
    counted: [],
    line: /^warn a reservation could not be released: nothing was sent.*"record":"p\.o".*--outcome not-applied/,
  },
  {
    write: freed,
    answer: null,
    counted: [],
    line: /^warn a reservation could not be released: nothing was applied.*"record":"p\.o"/,
  },
  {
    write: complete,
    answer: null,
    counted: ['in doubt p.o'],
    line: /^error a reservation could not be settled.*409, unless the store has lost it.*"record":"p\.o","settle":"complete".*sallyport record/,
  },
  {
    write: mark,
    answer: null,
    counted: ['in doubt p.o'],
    line: /^error a reservation could not be settled.*409, unless the store has lost it.*"settle":"mark".*sallyport record/,
  },
];

t.test('what became of a settlement is counted once, and told where somebody has to act', (t) => {
  for (const { write, answer, deduplicates = false, counted, line } of cases) {
    const log = collectingLog();
    const seen: string[] = [];
    const report = createSettlementReport({
      log,
      metrics: {
        reservation: (result) => seen.push(result),
        unknownOutcome: (id) => seen.push(`in doubt ${id}`),
        storeCall: () => t.fail('the store is not asked'),
        replicaShortfall: () => t.fail('replicas are not asked'),
        shareExceeded: () => undefined,
        offeredAgain: () => undefined,
      },
    });
    const settling: Settling = {
      scope: { principal: 'p', operation: 'o', token: null },
      recordId: 'p.o',
      write,
      untilMs: 0,
      deduplicates,
    };
    if (answer === null) report.givenUp(settling);
    else report.replied(settling, answer);
    t.same(seen, counted, `${write.kind} ${String(answer)}`);
    t.equal(log.lines.length, line === undefined ? 0 : 1);
    if (line !== undefined) t.match(log.lines[0], line);
  }
  t.end();
});
