import t from 'tap';
import {
  emptyRevocationList,
  revocationRules,
  mergeStored,
  withoutExpired,
  type RevocationList,
  type StoredRevocations,
} from '../../../src/decision/revocation/local-list.js';
import {
  maxRevocationMs,
  maxRevocationRecords,
  type Revocation,
  type RevocationUndo,
} from '../../../src/decision/revocation/record.js';
import { revocations as rules } from '../samples.js';

/** The store's clock, which is far from the proxy's. */
const storeMs = 1_700_000_000_000;

function revocation(id: string, change: Partial<Revocation> = {}): Revocation {
  return {
    id,
    kind: 'subject',
    value: id,
    issuer: null,
    reason: 'x',
    author: 'ann',
    createdAtMs: storeMs,
    endsAtMs: storeMs + 1_000,
    ...change,
  };
}

function undo(id: string, change: Partial<RevocationUndo> = {}): RevocationUndo {
  return { id, reason: null, author: 'ann', undoneAtMs: storeMs, endsAtMs: storeMs + 1_000, ...change };
}

function stored(revocations: readonly Revocation[], change: Partial<StoredRevocations> = {}): StoredRevocations {
  return { version: 'v', nowMs: storeMs, revocations, undone: [], unreadable: [], ...change };
}

const idsOf = ({ held }: RevocationList): readonly string[] => [...held.keys()];
const holding = (...ids: readonly string[]): RevocationList =>
  mergeStored(emptyRevocationList, stored(ids.map((id) => revocation(id))), 0).list;

t.test('what the store holds is held to its own end, by our clock', (t) => {
  const { list, added, lost } = mergeStored(
    emptyRevocationList,
    stored([revocation('a'), revocation('b', { endsAtMs: storeMs + 5_000 })]),
    70,
  );
  t.same(
    added.map(({ id, untilMs }) => [id, untilMs]),
    [
      ['a', 1_070],
      ['b', 5_070],
    ],
  );
  t.same(lost, []);
  t.same(idsOf(withoutExpired(list, 1_069)), ['a', 'b']);
  t.same(idsOf(withoutExpired(list, 1_070)), ['b']);
  t.same(idsOf(withoutExpired(list, 5_070)), []);
  t.equal(withoutExpired(list, 100), list, 'the same while nothing ends');
  t.end();
});

const rows: readonly {
  readonly name: string;
  readonly before: RevocationList;
  readonly stored: StoredRevocations;
  readonly atMs?: number;
  readonly held: readonly string[];
  readonly added?: readonly string[];
  readonly undone?: readonly string[];
  readonly lost?: readonly string[];
}[] = [
  {
    name: 'an emptied store takes nothing away',
    before: holding('a', 'b'),
    stored: stored([]),
    held: ['a', 'b'],
    lost: ['a', 'b'],
  },
  {
    name: 'nor does one that fell back',
    before: holding('a', 'b'),
    stored: stored([revocation('b')]),
    held: ['a', 'b'],
    lost: ['a'],
  },
  {
    name: 'a shorter end counts for nothing',
    before: holding('a'),
    stored: stored([revocation('a', { endsAtMs: storeMs + 1 })]),
    atMs: 500,
    held: ['a'],
  },
  {
    name: 'a later value neither',
    before: holding('a'),
    stored: stored([revocation('a', { value: 'other' })]),
    held: ['a'],
  },
  {
    name: 'an undo ends it',
    before: holding('a', 'b'),
    stored: stored([revocation('b')], { undone: [undo('a')] }),
    held: ['b'],
    undone: ['a'],
  },
  {
    name: 'an undo beside its revocation',
    before: holding('a'),
    stored: stored([revocation('a')], { undone: [undo('a')] }),
    held: [],
    undone: ['a'],
  },
  {
    name: 'an undo of what was never held',
    before: holding(),
    stored: stored([revocation('a')], { undone: [undo('a')] }),
    held: [],
  },
  {
    name: 'an undo that is over',
    before: holding('a'),
    stored: stored([revocation('a')], { undone: [undo('a', { endsAtMs: storeMs })] }),
    held: ['a'],
  },
  {
    name: 'what is over in the store',
    before: holding(),
    stored: stored([revocation('a', { endsAtMs: storeMs })]),
    held: [],
  },
  {
    name: 'a moment before its end',
    before: holding(),
    stored: stored([revocation('a', { endsAtMs: storeMs + 1 })]),
    held: ['a'],
    added: ['a'],
  },
  { name: 'what ended here', before: holding('a'), stored: stored([]), atMs: 1_000, held: [] },
];

for (const { name, before, stored: from, atMs = 10, held, added = [], undone = [], lost = [] } of rows) {
  t.test(name, (t) => {
    const taken = mergeStored(before, from, atMs);
    t.same(idsOf(taken.list), held);
    t.same(
      taken.added.map(({ id }) => id),
      added,
    );
    t.same([taken.undone, taken.lost, taken.refused], [undone, lost, 0]);
    t.end();
  });
}

t.test('what was undone stays so, though the store falls back to when it was not', (t) => {
  const { list } = mergeStored(holding('a'), stored([], { undone: [undo('a')] }), 10);
  const again = mergeStored(list, stored([revocation('a')]), 20);
  t.same(idsOf(again.list), []);
  t.same(
    [1_009, 1_010].map((nowMs) => withoutExpired(list, nowMs).undone.size),
    [1, 0],
  );
  t.same(
    mergeStored(withoutExpired(list, 2_000), stored([revocation('a')]), 2_000).added.length,
    1,
    'to the end of the undo',
  );
  t.end();
});

t.test('nothing is held for longer than the longest time, nor more than there is room for', (t) => {
  const { added } = mergeStored(
    emptyRevocationList,
    stored([revocation('a', { endsAtMs: Number.MAX_SAFE_INTEGER })]),
    0,
  );
  t.equal(added[0]?.untilMs, maxRevocationMs);
  const many = (from: number): readonly string[] =>
    Array.from({ length: maxRevocationRecords }, (_, index) => String(from + index));
  let list = emptyRevocationList;
  for (let lot = 0; lot < 4; lot += 1) {
    const ids = many(lot * maxRevocationRecords);
    list = mergeStored(
      list,
      stored(
        ids.map((id) => revocation(id)),
        { undone: ids.map((id) => undo(`u${id}`)) },
      ),
      0,
    ).list;
  }
  const full = mergeStored(list, stored([revocation('one more')], { undone: [undo('0')] }), 0);
  t.same([full.refused, full.list.held.size, full.undone], [1, 4 * maxRevocationRecords, []]);
  t.end();
});

t.test('rules by issuer, and of each kind', (t) => {
  const list = mergeStored(
    emptyRevocationList,
    stored([
      revocation('1', { kind: 'key_id', value: 'd-1' }),
      revocation('2', { kind: 'subject', value: 'a' }),
      revocation('3', { kind: 'token_id', value: 'j' }),
      revocation('4', { kind: 'token', value: 'x' }),
      revocation('5', { kind: 'issued_before', value: '2026-01-31T12:00:00.001Z' }),
      revocation('6', { kind: 'issued_before', value: '1970-01-01T00:00:05Z' }),
      revocation('7', { value: 'b', issuer: 'https://core' }),
    ]),
    0,
  ).list;
  t.same(revocationRules(list), [
    rules({
      keyIds: new Set(['d-1']),
      subjects: new Set(['a']),
      tokenIds: new Set(['j']),
      tokenDigests: new Set(['x']),
      issuedBeforeS: 1_769_860_801,
    }),
    rules({ issuer: 'https://core', subjects: new Set(['b']) }),
  ]);
  t.same(revocationRules(emptyRevocationList), []);
  t.end();
});
