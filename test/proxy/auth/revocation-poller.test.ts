import t from 'tap';
import { accept, refuse, type Result } from '../../../src/lib/result.js';
import type { StoredRevocations } from '../../../src/decision/revocation/local-list.js';
import type { Revocation } from '../../../src/decision/revocation/record.js';
import type { StoreFailure } from '../../../src/ports/idempotency.js';
import { createRevocationPoller, type RevocationPoller } from '../../../src/proxy/auth/revocation-poller.js';
import { manualTime, type ManualTime } from '../../adapters/manual-time.js';
import { collectingLog } from '../../adapters/store-commands.js';

type Answer = Result<StoredRevocations | null, StoreFailure>;

const away: Answer = refuse({ kind: 'unreachable', reason: 'ECONNREFUSED', mayHaveRun: false });

function revocation(id: string, endsAtMs = 60_000): Revocation {
  return {
    id,
    kind: 'subject',
    value: `subject-${id}`,
    issuer: null,
    reason: 'x',
    author: 'ann',
    createdAtMs: 0,
    endsAtMs,
  };
}

function list(ids: readonly string[], change: Partial<StoredRevocations> = {}): Answer {
  return accept({
    version: ids.join(),
    nowMs: 0,
    revocations: ids.map((id) => revocation(id)),
    undone: [],
    unreadable: [],
    ...change,
  });
}

interface Setup {
  readonly watch: RevocationPoller;
  readonly time: ManualTime;
  readonly log: ReturnType<typeof collectingLog>;
  /** What the store answers from now on. */
  answer: Answer;
  /** Versions that were asked with. */
  readonly asked: (string | null)[];
  /** Answers one look that waits. */
  readonly hold: { isOn: boolean; release: () => void };
  news: () => void;
  revoked: number;
  refreshed: number;
  /** Moves on, with every answer that comes due on the way. */
  readonly pass: (ms: number) => Promise<void>;
  readonly subjects: () => readonly string[];
}

function setup(first: Answer, areRequired = true): Setup {
  const time = manualTime();
  const log = collectingLog();
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  };
  const made: Setup = {
    time,
    log,
    answer: first,
    asked: [],
    hold: { isOn: false, release: () => undefined },
    news: () => undefined,
    revoked: 0,
    refreshed: 0,
    watch: createRevocationPoller({
      clock: time.clock,
      timers: time.timers,
      log,
      areRequired,
      onRevoked: () => (made.revoked += 1),
      source: {
        load: async (known) => {
          made.asked.push(known);
          if (made.hold.isOn) await new Promise<void>((resolve) => (made.hold.release = resolve));
          const { answer } = made;
          return answer.ok && answer.value?.version === known ? accept(null) : answer;
        },
        follow: (onNews) => {
          made.news = onNews;
          return {
            refresh: () => (made.refreshed += 1),
            isOpen: () => true,
            close: () => (made.news = () => undefined),
          };
        },
      },
    }),
    pass: async (ms) => {
      for (let passed = 0; passed < ms; passed += 10) {
        time.advance(10);
        await turns();
      }
    },
    subjects: () => made.watch.rules().flatMap(({ subjects }) => [...subjects]),
  };
  made.watch.start();
  return made;
}

t.test('what is revoked is known within a second without any news', async (t) => {
  const s = setup(list([]));
  await s.pass(10);
  t.match(s.watch.state(), { isLoaded: true, isStale: false, problem: null, held: [], hasNews: true });
  const before = s.watch.rules();
  s.answer = list(['a']);
  await s.pass(500);
  t.same(s.subjects(), ['subject-a']);
  t.equal(s.revoked, 1);
  t.not(s.watch.rules(), before);
  s.answer = accept(null);
  const rules = s.watch.rules();
  await s.pass(2_000);
  t.equal(s.watch.rules(), rules, 'the same while nothing changes');
  t.same([s.asked[0], s.asked.at(-1)], [null, 'a']);
  t.equal(s.revoked, 1);
  t.ok(s.refreshed >= s.asked.length, 'the way to news is looked at, too');
});

t.test('news are looked after at once, one look at a time, however many there are', async (t) => {
  const s = setup(list([]));
  await s.pass(100);
  const before = s.asked.length;
  s.answer = list(['a']);
  for (let count = 0; count < 1_000; count += 1) s.news();
  await s.pass(20);
  t.same(s.subjects(), ['subject-a']);
  t.equal(s.asked.length, before + 1);
  s.hold.isOn = true;
  s.news();
  await s.pass(30);
  for (let count = 0; count < 1_000; count += 1) s.news();
  s.hold.isOn = false;
  s.hold.release();
  await s.pass(50);
  t.equal(s.asked.length, before + 3, 'news that came while the store was asked call for one more look');
});

t.test('none ends before its own end, however long the store took to answer', async (t) => {
  const s = setup(list([]));
  await s.pass(10);
  s.hold.isOn = true;
  s.news();
  await s.pass(1_000);
  s.answer = list([], { version: 'later', revocations: [revocation('a', 10_000)] });
  s.hold.isOn = false;
  s.hold.release();
  await s.pass(9_900);
  t.same(s.subjects(), ['subject-a']);
  await s.pass(1_000);
  t.same(s.subjects(), []);
});

t.test('the whole list is read from time to time, whatever its version', async (t) => {
  const s = setup(list(['a']));
  await s.pass(31_000);
  t.equal(s.asked.filter((known) => known === null).length, 2);
});

t.test('the store away: what was known holds on to its own end, and that is said once', async (t) => {
  const s = setup(list([], { revocations: [revocation('a', 10_000), revocation('b', 20_000)] }));
  await s.pass(10);
  s.answer = away;
  await s.pass(5_000);
  t.match(s.watch.state(), { isLoaded: true, isStale: true, problem: 'ECONNREFUSED' });
  t.ok(s.watch.state().ageMs >= 4_000);
  t.same(s.subjects(), ['subject-a', 'subject-b']);
  await s.pass(6_000);
  t.same(s.subjects(), ['subject-b'], 'ended, store or no store');
  t.same(
    s.watch.state().held.map(({ id }) => id),
    ['b'],
  );
  t.same(
    s.log.lines.filter((line) => line.startsWith('error')),
    [
      'error revocations cannot be read from the store: what was known holds on, new ones are not seen {"reason":"ECONNREFUSED"}',
    ],
  );
  s.answer = list(['b', 'c']);
  await s.pass(500);
  t.match(s.watch.state(), { isStale: false, problem: null });
  t.same(s.subjects(), ['subject-b', 'subject-c']);
  t.equal(s.log.lines.filter((line) => line.startsWith('info revocations are read from the store again')).length, 1);
});

t.test('a failure that passes is no news', async (t) => {
  const s = setup(list(['a']));
  await s.pass(10);
  s.answer = away;
  await s.pass(500);
  t.match(s.watch.state(), { isStale: false, problem: 'ECONNREFUSED' });
  s.answer = list(['a']);
  await s.pass(500);
  t.match(s.watch.state(), { isStale: false, problem: null });
  t.same(
    s.log.lines.filter((line) => !line.startsWith('info revocations were read from the store {')),
    [],
  );
});

t.test('nothing is loaded while the store was never read', async (t) => {
  const s = setup(away);
  await s.pass(3_000);
  t.match(s.watch.state(), { isLoaded: false, areRequired: true, isStale: true, problem: 'ECONNREFUSED' });
  t.equal(s.watch.areKnown(), false);
  t.match(s.log.lines, [/^error revocations cannot be read .* protected routes answer 503 until they are/]);
  s.answer = list(['a']);
  await s.pass(200);
  t.match(s.watch.state(), { isLoaded: true, isStale: false });
  t.equal(s.watch.areKnown(), true);
  t.same(s.subjects(), ['subject-a']);
  s.answer = away;
  await s.pass(3_000);
  t.equal(s.watch.areKnown(), true, 'what was read once holds on');
});

t.test('where they are not required, nothing waits for them, and the log says what that means', async (t) => {
  const s = setup(away, false);
  t.equal(s.watch.areKnown(), true);
  await s.pass(3_000);
  t.match(s.watch.state(), { isLoaded: false, areRequired: false });
  t.match(s.log.lines, [
    /^error revocations cannot be read .* callers that are revoked there are let in until they are/,
  ]);
});

t.test('an emptied store takes nothing away, which is said; an undo does', async (t) => {
  const s = setup(list(['a', 'b']));
  await s.pass(10);
  s.answer = list([]);
  await s.pass(1_000);
  t.same(s.subjects(), ['subject-a', 'subject-b']);
  t.same(s.watch.state().lost, ['a', 'b']);
  t.equal(s.log.lines.filter((line) => line.startsWith('error the store has lost revocations')).length, 1);
  s.answer = list([], {
    version: 'undone',
    undone: [{ id: 'a', reason: null, author: 'ann', undoneAtMs: 0, endsAtMs: 60_000 }],
  });
  await s.pass(500);
  t.same(s.subjects(), ['subject-b']);
  t.same(s.watch.state().lost, ['b']);
  t.match(s.log.lines.at(-1), /"undone":\["a"\]/);
  await s.pass(70_000);
  t.same([s.subjects(), s.watch.state().lost], [[], []], 'to their own end');
});

t.test('records that cannot be read are told of once, and keep nothing from the others', async (t) => {
  const s = setup(list(['a'], { unreadable: ['e:x'] }));
  await s.pass(1_000);
  t.same(s.subjects(), ['subject-a']);
  t.equal(s.watch.state().notInForce, 1);
  t.same(
    s.log.lines.filter((line) => line.startsWith('error')),
    [
      'error the store holds revocations that are not in force here: they cannot be read, or are too many {"count":1,"records":["e:x"]}',
    ],
  );
  s.answer = list(['a'], { version: 'mended' });
  await s.pass(500);
  t.equal(s.watch.state().notInForce, 0);
});

t.test('closed: no more looks', async (t) => {
  const s = setup(list([]));
  await s.pass(100);
  s.hold.isOn = true;
  await s.pass(400);
  const asked = s.asked.length;
  s.watch.close();
  s.answer = list(['a']);
  s.hold.release();
  await s.pass(2_000);
  t.same([s.asked.length, s.subjects()], [asked, []]);
  t.same(s.time.due(), []);
});
