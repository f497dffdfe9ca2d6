import t from 'tap';
import { accept, refuse, type Result } from '../../src/lib/result.js';
import type { Core, CoreReply, CoreRequest, CoreTrouble, SpokenVersions } from '../../src/user-import/core/requests.js';
import { chooseVersions } from '../../src/user-import/core/versions.js';
import { decodeRecord, encodeRecord, type JournalRecord } from '../../src/user-import/journal.js';
import { createLedger, type Ledger } from '../../src/user-import/totals.js';
import { runImport, type RunRules } from '../../src/user-import/run.js';
import type { Unit } from '../../src/user-import/row/rows.js';

const rules: RunRules = {
  dialect: 'seed',
  cdiVersion: '2.16',
  thirdPartyVersion: '4.0',
  overwrite: false,
  concurrency: 4,
  callsPerSecond: null,
  giveUpAfterMs: 5_000,
};

type Answer = Result<CoreReply, CoreTrouble>;

const ok = (json: Record<string, boolean | string>): Answer =>
  accept({ status: 200, json, text: '', retryAfterMs: null });
const status = (code: number): Answer => accept({ status: code, json: null, text: 'x', retryAfterMs: null });
const created = ok({ status: 'OK', didUserAlreadyExist: false });
const existed = ok({ status: 'OK', didUserAlreadyExist: true });
const unreachable: Answer = refuse({ kind: 'unreachable', reason: 'connection refused', mayHaveRun: false });

interface RunResult {
  readonly ledger: Ledger;
  /** What happened, in order: journal records, syncs and calls. */
  readonly events: string[];
  readonly records: JournalRecord[];
  readonly stopped: string | null;
  readonly waitedMs: number;
}

interface Setting {
  readonly users: number;
  readonly answer: (request: CoreRequest, call: number) => Answer | Promise<Answer>;
  readonly rules?: Partial<RunRules>;
  readonly ledger?: Ledger;
  readonly bad?: readonly number[];
  readonly lost?: readonly (readonly string[])[];
  readonly commit?: (count: number) => Result<null, string>;
  readonly signal?: AbortSignal;
}

async function run({
  users,
  answer,
  rules: over = {},
  ledger = createLedger(),
  bad = [],
  lost,
  commit = () => accept(null),
  signal,
}: Setting): Promise<RunResult> {
  const events: string[] = [];
  const records: JournalRecord[] = [];
  let nowMs = 0;
  let calls = 0;
  let commits = 0;
  async function* units(): AsyncGenerator<Unit> {
    for (let number = 0; number < users; number += 1) {
      const user = {
        kind: 'password',
        email: `u${String(number)}@b.de`,
        passwordHash: 'x',
        algorithm: number % 2 === 0 ? 'bcrypt' : 'argon2',
      } as const;
      const content = bad.includes(number)
        ? refuse({ field: 'email', what: 'is missing', allowed: 'one' })
        : accept(user);
      const at = { line: number + 1, record: number + 1, method: 0, origin: { record: number + 1, method: 0 } };
      yield { number, ...at, content, rawValue: null, lost: lost?.[number] ?? [] };
    }
  }
  const core: Core = {
    call: async (request) => {
      calls += 1;
      const call = calls;
      events.push(`call ${(request.body as { email: string }).email}`);
      await new Promise(setImmediate);
      return answer(request, call);
    },
  };
  const stopped = await runImport(
    {
      units: units(),
      ledger,
      core,
      journal: {
        append: (record) => {
          records.push(record);
          events.push(
            record.type === 'begun' || record.type === 'done' ? `${record.type} ${String(record.number)}` : record.type,
          );
        },
        commit: async () => {
          commits += 1;
          events.push('commit');
          return commit(commits);
        },
      },
      clock: { now: () => 1_000_000 + nowMs, monotonic: () => nowMs },
      wait: async (ms) => {
        nowMs += ms;
        await new Promise(setImmediate);
      },
      chance: () => 0.5,
      onTrouble: () => undefined,
      signal: signal ?? new AbortController().signal,
    },
    { ...rules, ...over },
  );
  return { ledger, events, records, stopped, waitedMs: nowMs };
}

t.test('a user is in the journal and synced before the call that may create it', async (t) => {
  const { events, ledger, stopped } = await run({ users: 40, answer: () => created, bad: [7, 8] });
  t.equal(stopped, null);
  t.match(ledger.totals(), { created: 38, rejected: 2, done: 40, notIn: 2 });
  for (let number = 0; number < 40; number += 1) {
    if (number === 7 || number === 8) continue;
    const [begun, call, done] = [
      events.indexOf(`begun ${number}`),
      events.indexOf(`call u${number}@b.de`),
      events.indexOf(`done ${number}`),
    ];
    const commit = events.indexOf('commit', begun);
    t.ok(begun >= 0 && begun < commit && commit < call && call < done, `user ${number}`);
  }
  t.equal(events.at(-1), 'commit', 'what was done is on disk at the end');
});

t.test('a second run does nothing again', async (t) => {
  const { ledger } = await run({ users: 10, answer: () => created });
  const again = await run({ users: 10, answer: () => created, ledger });
  t.same(again.events, ['commit']);
});

t.test('the first user that was there before stops the run, and is told', async (t) => {
  const { ledger, stopped, events } = await run({ users: 100, answer: () => existed });
  t.match(stopped, /^line 1: the user was in the Core before this import/);
  t.match(ledger.totals(), { existed: 1, done: 1 });
  t.equal(events.filter((event) => event.startsWith('call')).length, 1, 'no other was touched');
  const next = await run({
    users: 100,
    answer: (request) => ((request.body as { email: string }).email === 'u50@b.de' ? existed : created),
    ledger,
  });
  t.match(next.stopped, /^line 51: /);
  const last = await run({ users: 100, answer: () => created, ledger });
  t.equal(last.stopped, null);
  t.match(ledger.totals(), { existed: 2, created: 98, notIn: 0 });
  t.match((await run({ users: 3, answer: () => existed, rules: { overwrite: true } })).ledger.totals(), {
    existed: 3,
    notIn: 0,
  });
});

t.test('429, 500 and lost connections are tried again', async (t) => {
  const troubles = [
    status(429),
    status(500),
    unreachable,
    refuse({ kind: 'broken', reason: 'cut', mayHaveRun: true } as const),
  ];
  let drawn = 1;
  const draw = (): number => {
    drawn = (drawn * 48_271) % 2_147_483_647;
    return drawn % 12;
  };
  const { ledger, stopped } = await run({ users: 200, answer: () => troubles[draw()] ?? created });
  t.equal(stopped, null);
  t.match(ledger.totals(), { created: 200, notIn: 0 });
});

t.test('a call that may have run makes the user ours', async (t) => {
  const { ledger } = await run({ users: 1, answer: (_, call) => (call === 1 ? status(500) : existed) });
  t.match(ledger.totals(), { created: 1 });
  const { ledger: other } = await run({ users: 1, answer: (_, call) => (call === 1 ? unreachable : existed) });
  t.match(other.totals(), { existed: 1 }, 'one that did not run does not');
});

t.test('a row that the Core fails on each time is rejected, and the others are not', async (t) => {
  const answer = ({ body }: CoreRequest): Answer =>
    (body as { email: string }).email === 'u3@b.de' ? status(500) : created;
  const { ledger, stopped } = await run({ users: 100, answer, rules: { giveUpAfterMs: 60_000 } });
  t.equal(stopped, null);
  t.match(ledger.totals(), { created: 99, rejected: 1 });
});

t.test('a Core that stays away ends the run, which can go on', async (t) => {
  const { ledger, stopped, waitedMs } = await run({
    users: 50,
    answer: (_, call) => (call > 20 ? unreachable : created),
  });
  t.equal(stopped, 'the Core has not answered well for 5 s: connection refused');
  t.ok(waitedMs > 5_000 && waitedMs < 60_000, `${waitedMs} ms`);
  t.equal(ledger.totals().created, 20);
  t.equal((await run({ users: 50, answer: () => created, ledger })).stopped, null);
  t.match(ledger.totals(), { created: 50 });
});

t.test('a refused key ends the run at once', async (t) => {
  const { ledger, stopped, events } = await run({ users: 50, answer: () => status(401) });
  t.match(stopped, /^line 1: .*api-key/);
  t.equal(ledger.totals().done, 0);
  t.equal(events.filter((event) => event.startsWith('call')).length, 1);
});

t.test('a journal that cannot be written ends the run before the next call', async (t) => {
  const commit = (count: number): Result<null, string> => (count > 5 ? refuse('the disk is full') : accept(null));
  const { stopped, events } = await run({ users: 50, answer: () => created, commit });
  t.equal(stopped, 'the disk is full');
  t.equal(events.filter((event) => event.startsWith('call')).length, 5);
});

t.test('a signal lets those in flight come to their end', async (t) => {
  const stopping = new AbortController();
  const { ledger, stopped, records } = await run({
    users: 100,
    signal: stopping.signal,
    answer: (_, call) => {
      if (call === 30) stopping.abort();
      return created;
    },
  });
  t.equal(stopped, null);
  const begun = records.filter(({ type }) => type === 'begun').length;
  t.equal(ledger.totals().done, begun, 'every user that was begun is done');
  t.ok(begun >= 30 && begun < 40, `${begun} begun`);
  const aborted = new AbortController();
  aborted.abort();
  t.same((await run({ users: 3, answer: () => created, signal: aborted.signal })).events, ['commit']);
});

t.test('the pace is kept', async (t) => {
  const { waitedMs } = await run({ users: 50, answer: () => created, rules: { callsPerSecond: 10, concurrency: 1 } });
  t.ok(waitedMs >= 4_900, `${waitedMs} ms`);
});

const patient = {
  asked: null,
  giveUpAfterMs: 60_000,
  monotonicMs: () => 0,
  wait: async () => undefined,
};

t.test('the Core is asked for its versions first', async (t) => {
  const versions = (list: readonly string[]): Answer =>
    accept({ status: 200, json: { versions: list }, text: '', retryAfterMs: null });
  const ask = async (...answers: readonly Answer[]): Promise<Result<SpokenVersions, string>> => {
    const queue = [...answers];
    return chooseVersions({ call: async () => queue.shift() ?? unreachable }, patient);
  };
  const qualified = accept({ cdiVersion: '2.16', thirdPartyVersion: '2.16' });
  t.same(await ask(versions(['2.15', '2.16'])), qualified);
  t.same(await ask(status(500), status(429), unreachable, versions(['2.16'])), qualified);
  t.same(
    await ask(versions(['5.0', '5.1'])),
    refuse('does not speak version 2.16 of its driver interface; allowed: 5.0, 5.1'),
  );
  t.same(
    await ask(versions(['\u001b[2J', '5.0\u0007', '5.1'])),
    refuse('does not speak version 2.16 of its driver interface; allowed: 5.1'),
  );
  t.same(
    await ask(versions([])),
    refuse('does not speak version 2.16 of its driver interface; allowed: none that it names'),
  );
  t.match(await ask(status(401)), { ok: false, error: /api-key/ });
  t.match(await ask(status(404)), { ok: false, error: /^does not say which versions it speaks \(status 404, x\)/ });
  t.same(await ask(), refuse('is out of reach: connection refused'));
});

t.test('a Core that says nothing from the first call on is given up after the time of the run', async (t) => {
  const silent: Answer = refuse({ kind: 'timeout', reason: 'no complete response within 10000 ms', mayHaveRun: true });
  const calls = async (giveUpAfterMs: number): Promise<number> => {
    let nowMs = 0;
    let made = 0;
    const call = async (): Promise<Answer> => {
      made += 1;
      nowMs += 10_000;
      return silent;
    };
    const wait = async (ms: number): Promise<void> => void (nowMs += ms);
    const chosen = await chooseVersions({ call }, { asked: null, giveUpAfterMs, monotonicMs: () => nowMs, wait });
    t.same(chosen, refuse('is out of reach: no complete response within 10000 ms'));
    return made;
  };
  t.equal(await calls(2_000), 1);
  t.equal(await calls(9_999), 1);
  t.equal(await calls(10_000), 2);
  t.equal(await calls(20_249), 2);
  t.equal(await calls(20_250), 3);
  t.equal(await calls(120_000), 4);
});

t.test(
  'third-party users go with the oldest version that carries isVerified, unless a version is asked for',
  async (t) => {
    const chosen = async (asked: string | null, ...versions: readonly string[]): Promise<unknown> => {
      const answer: Answer = accept({ status: 200, json: { versions }, text: '', retryAfterMs: null });
      const result = await chooseVersions({ call: async () => answer }, { ...patient, asked });
      return result.ok ? [result.value.cdiVersion, result.value.thirdPartyVersion] : result.error;
    };
    t.same(await chosen(null, '2.16', '3.0', '3.1'), ['2.16', '2.16'], 'none carries it');
    t.same(await chosen(null, '2.16', '10.0', '5.4', '4.0', '4.1'), ['2.16', '4.0']);
    t.same(await chosen(null, '2.16', '10.0', '9.1'), ['2.16', '9.1'], 'numbers, not texts');
    t.same(await chosen('2.16', '2.16', '4.0'), ['2.16', '2.16']);
    t.same(await chosen('5.0', '2.16', '4.0', '5.0'), ['5.0', '5.0']);
    t.match(await chosen('3.0', '2.16', '4.0'), /does not speak version 3\.0/);
  },
);

t.test(
  'what a row says and no call carries is counted where the user is in, and survives in the journal',
  async (t) => {
    const answer = ({ body }: CoreRequest): Answer =>
      (body as { email: string }).email.startsWith('u2') ? status(400) : created;
    const { ledger, records } = await run({
      users: 4,
      bad: [3],
      answer,
      lost: [['createdAt', 'localId'], ['localId'], ['localId'], ['localId']],
    });
    t.same(
      [...ledger.totals().lost],
      [
        ['createdAt', { users: 1, line: 1 }],
        ['localId', { users: 2, line: 1 }],
      ],
      'not where the row was rejected',
    );
    const again = createLedger();
    for (const record of records) {
      const read = decodeRecord(encodeRecord(record).trimEnd());
      if (read !== null) again.take(read);
    }
    t.same(again.totals().lost, ledger.totals().lost);
  },
);
