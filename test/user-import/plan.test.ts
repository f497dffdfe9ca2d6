import t from 'tap';
import { accept, refuse } from '../../src/lib/result.js';
import type { JsonValue } from '../../src/lib/strict-json.js';
import { createDigestSet } from '../../src/user-import/seen-contacts.js';
import { createLosses } from '../../src/user-import/losses.js';
import { withOriginalHashes, type ReturnedRecord } from '../../src/user-import/row/rejoin-hashes.js';
import { makePlan, plannedKinds } from '../../src/user-import/plan.js';
import { progressBar, progressText, rateOf, sampled, type Sample } from '../../src/user-import/progress.js';
import { readUnits, type SourceRecord } from '../../src/user-import/row/rows.js';

const hash = `$2a$10$${'a'.repeat(53)}`;
const rules = { hashes: { accepted: new Set<string>(), stripPrefix: false }, place: 'line' } as const;

const third = { thirdPartyId: 'g', thirdPartyUserId: '1', email: 'a@b.de', isVerified: true };

async function* records(...rows: readonly JsonValue[]): AsyncGenerator<SourceRecord> {
  for (const [index, row] of rows.entries()) yield { line: index * 2 + 1, record: index + 1, content: accept(row) };
}

async function collect<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

t.test('the second user of a kind with the same name is refused, and names the line of the first', async (t) => {
  const units = await collect(
    readUnits(
      records(
        { email: 'a@b.de', passwordHash: hash },
        { email: 'A@B.de', passwordHash: hash },
        { passwordless: { email: 'a@b.de', add: '+4930901820' } },
        { passwordless: { phoneNumber: '+4930901820' } },
        { methods: [{ thirdParty: third }, { thirdParty: { ...third, email: 'x@b.de' } }] },
        { passwordless: { email: 'c@d.de', add: '+4930901820' } },
        { passwordless: { email: 'c@d.de' } },
      ),
      rules,
    ),
  );
  t.same(
    units.map(({ number, line, method, content }) => [number, line, method, content.ok ? 'ok' : content.error.what]),
    [
      [0, 1, 0, 'ok'],
      [1, 3, 0, 'is the same user as in line 1'],
      [2, 5, 0, 'ok'],
      [3, 7, 0, 'is the same user as in line 5'],
      [4, 9, 1, 'ok'],
      [5, 9, 2, 'is the same user as in line 9'],
      [6, 11, 0, 'is the same user as in line 5'],
      [7, 13, 0, 'ok'],
    ],
  );
});

t.test('a plan counts by kind and tells of each problem', async (t) => {
  async function* broken(): AsyncGenerator<SourceRecord> {
    yield* records({ email: 'a@b.de', passwordHash: hash });
    yield { line: 9, record: 2, content: refuse({ field: 'row', what: 'is no JSON', allowed: 'one JSON object' }) };
  }
  const problems: string[] = [];
  const plan = await makePlan(readUnits(broken(), rules), ({ line }, problem) => problems.push(`${line} ${problem}`));
  t.match(plan, { users: 2, problems: 1 });
  t.same(plannedKinds(plan), [
    ['bcrypt', 1],
    ['unreadable', 1],
  ]);
  t.same(problems, ['9 row is no JSON; allowed: one JSON object']);
});

t.test('a plan counts what good rows lose, by field, and whose email is verified', async (t) => {
  async function* lossy(): AsyncGenerator<SourceRecord> {
    const methods = [{ email: 'a@b.de', passwordHash: hash }, { thirdParty: third }];
    const madeUp = Array.from({ length: 200 }, (_, index) => `made up ${String(index)}`);
    yield { line: 2, record: 1, content: accept({ methods }), lost: [['localId', 'x'], ['localId']] };
    yield { line: 4, record: 2, content: accept({ email: 'bad', passwordHash: hash }), lost: [['localId']] };
    yield {
      line: 6,
      record: 3,
      content: accept({ thirdParty: { ...third, thirdPartyUserId: '2', isVerified: false } }),
      lost: [['y']],
    };
    yield { line: 8, record: 4, content: accept({ passwordless: { email: 'c@d.de' } }), lost: [madeUp] };
  }
  const { lost, verified } = await makePlan(readUnits(lossy(), rules), () => undefined);
  t.equal(verified, 1);
  t.same([...lost].slice(0, 4), [
    ['localId', { users: 2, line: 2 }],
    ['x', { users: 1, line: 2 }],
    ['y', { users: 1, line: 6 }],
    ['made up 0', { users: 1, line: 8 }],
  ]);
  t.same(
    [lost.size, lost.get('other members')],
    [101, { users: 1, line: 8 }],
    'a file that makes up names fills no memory',
  );
});

t.test('the first line of a loss is the first of the file, in whatever order users are done', async (t) => {
  const losses = createLosses();
  for (const line of [7, 3, 9]) losses.add(['a', 'a'], line);
  t.same([...losses.byField()], [['a', { users: 3, line: 3 }]], 'and a field counts once for a user');
});

t.test('a set of many names stays small and forgets none', async (t) => {
  const set = createDigestSet(4);
  const claimed = Array.from({ length: 5_000 }, (_, i) => set.claim(`name ${i + 1}`, i + 1));
  t.equal(
    claimed.every((before) => before === null),
    true,
  );
  t.equal(set.size(), 5_000);
  t.ok(set.bytes() / set.size() <= 43, `${set.bytes() / set.size()} bytes a name`);
  for (let i = 1; i <= 5_000; i += 997) t.same([set.find(`name ${i}`), set.claim(`name ${i}`, 7)], [i, i]);
  t.equal(set.find('another'), null);
});

t.test('returned rows get their hashes from the file they were in', async (t) => {
  async function* returned(): AsyncGenerator<ReturnedRecord> {
    const row = (record: number, value: JsonValue, origin: ReturnedRecord['origin']): ReturnedRecord => ({
      line: record + 1,
      record,
      content: accept(value),
      origin,
    });
    yield row(1, { email: 'new@b.de' }, { record: 2, method: 0 });
    yield row(2, { email: 'own@b.de', passwordHash: 'own' }, { record: 3, method: 0 });
    yield row(3, { email: 'method@b.de' }, { record: 3, method: 2 });
    yield row(4, { passwordless: {} }, { record: 3, method: 1 });
    yield row(5, { email: 'none@b.de' }, { record: 9, method: 0 });
    yield row(6, { email: 'unsaid@b.de' }, null);
    yield row(7, { email: 'other@b.de' }, { record: 10, method: 0 });
    yield row(8, { email: 'Same@b.de' }, { record: 11, method: 0 });
    yield row(9, { email: 'hashless@b.de' }, { record: 12, method: 0 });
  }
  const last = { methods: [{ passwordless: {} }, { email: 'c', passwordHash: 'three' }] };
  const none = Array<JsonValue>(6).fill({});
  const original = records(
    { email: 'a', passwordHash: 'one' },
    { email: 'b', passwordHash: 'two' },
    last,
    ...none,
    { email: 'somebody@b.de', passwordHash: 'else' },
    { email: 'same@B.de', passwordHash: 'same' },
    { email: 'x@b.de' },
  );
  const rows = (await collect(withOriginalHashes(returned(), original))).map(({ content }) =>
    content.ok ? content.value : content.error.what,
  );
  t.same(rows, [
    { email: 'new@b.de', passwordHash: 'two' },
    { email: 'own@b.de', passwordHash: 'own' },
    { email: 'method@b.de', passwordHash: 'three' },
    { passwordless: {} },
    { email: 'none@b.de' },
    { email: 'unsaid@b.de' },
    'is missing, and the row of the first file that this one names is another user with another email address',
    { email: 'Same@b.de', passwordHash: 'same' },
    { email: 'hashless@b.de' },
  ]);
});

t.test('progress with rate and time left', async (t) => {
  let samples: readonly Sample[] = [];
  for (const [atMs, done] of [
    [0, 0],
    [10_000, 1_000],
    [30_000, 2_000],
  ] as const) {
    samples = sampled(samples, { atMs, done });
  }
  t.same(samples.length, 2, 'what is long ago does not count');
  t.equal(rateOf(samples), 50);
  t.equal(
    progressText({ done: 2_000, total: 5_000, rejected: 3 }, samples),
    '2000 of 5000, 40 %, 50/s, 1 min left, 3 rejected',
  );
  t.equal(progressText({ done: 0, total: 5_000, rejected: 0 }, []), '0 of 5000, 0 %');
  const slow = [
    { atMs: 0, done: 0 },
    { atMs: 1_000, done: 5 },
  ];
  t.equal(
    progressText({ done: 10, total: 1_000_000, rejected: 0 }, slow),
    '10 of 1000000, 0 %, 5.0/s, 55 h 34 min left',
  );
  t.equal(progressBar({ done: 1, total: 4, rejected: 0 }, [], 40), '[######..................] 1 of 4, 25 %');
  t.equal(progressBar({ done: 4, total: 4, rejected: 0 }, [], 12), '4 of 4, 100');
  t.equal(progressBar({ done: 0, total: 0, rejected: 0 }, [], 80), `[${'#'.repeat(30)}] 0 of 0, 100 %`);
});
