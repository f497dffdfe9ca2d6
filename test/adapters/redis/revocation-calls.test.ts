import { randomBytes } from 'node:crypto';
import t from 'tap';
import type { RunResult } from '../../../src/adapters/redis/topology/primary.js';
import { revocationScripts } from '../../../src/adapters/redis/scripts/revocation.js';
import { createRevocationStore } from '../../../src/adapters/redis/revocation-store.js';
import type { ScriptCall } from '../../../src/adapters/redis/scripts/run-script.js';
import {
  maxRevocationBytes,
  revocationBody,
  undoBody,
  type NewRevocation,
} from '../../../src/decision/revocation/record.js';
import type { RevocationStore } from '../../../src/ports/revocations.js';
import { redisSettings } from './redis-store.js';

const newId = (): string => randomBytes(16).toString('base64url');

function revocation(change: Partial<NewRevocation> = {}): NewRevocation {
  return { id: newId(), kind: 'subject', value: 'checkout', issuer: null, reason: 'a leak', author: 'ann', ...change };
}

/** A store whose server answers everything with this, and what is asked of it. */
function answering(ran: RunResult): { readonly store: RevocationStore; readonly calls: ScriptCall[] } {
  const calls: ScriptCall[] = [];
  const run = async (tag: string, call: ScriptCall): Promise<RunResult> => {
    if (tag === 'revoked') calls.push(call);
    return ran;
  };
  return {
    store: createRevocationStore(
      { run, addressOf: () => null },
      redisSettings(1, { prefix: 'x', settleTimeoutMs: 77 }),
    ),
    calls,
  };
}

const answer = (reply: unknown, confirmedReplicas: number | null = null): RunResult => ({
  ok: true,
  value: { reply, confirmedReplicas },
});

t.test(
  'what is asked of Redis: of replicas only where somebody waits for them, and then with the text of the script',
  async (t) => {
    const made = revocation();
    const { store, calls } = answering(answer(['undone', '1']));
    const by = { author: 'bob', reason: null };
    await store.load(null);
    await store.load('v');
    await store.revoke(made, 5_000);
    await store.revoke(made, 5_000, 1);
    await store.undo(made.id, by);
    await store.undo(made.id, by, 2);
    await store.announce();
    const keys = ['x:{revoked}:list'];
    const [reading, alone] = [
      { keys, withText: false, deadlineMs: 2_000, replicas: 0 },
      { keys, withText: false, deadlineMs: 77, replicas: 0 },
    ];
    const [load, revoke] = [
      { ...reading, script: revocationScripts.revocations },
      { ...alone, script: revocationScripts.revoke },
    ];
    const written = { ...revoke, values: [made.id, revocationBody(made), '5000', '5000', 'x:{revoked}:news'] };
    const undone = {
      ...alone,
      script: revocationScripts.undo,
      values: [made.id, undoBody(by), 'a version', '5000', 'x:{revoked}:news'],
    };
    const versions = new Set<unknown>();
    const named = calls.map((call) => {
      if (call.script !== revocationScripts.undo) return call;
      t.match(call.values[2], /^[\w-]{22}$/, '128 bits');
      versions.add(call.values[2]);
      return { ...call, values: call.values.map((value, at) => (at === 2 ? 'a version' : value)) };
    });
    t.same(named, [
      { ...load, values: ['*', '10000', '8192'] },
      { ...load, values: ['v', '10000', '8192'] },
      written,
      { ...written, withText: true, replicas: 1 },
      undone,
      { ...undone, withText: true, replicas: 2 },
      { ...alone, script: revocationScripts.announce, values: ['x:{revoked}:news'] },
    ]);
    t.equal(versions.size, 2, 'a version of its own each');
  },
);

t.test('how the answers of Redis are read', async (t) => {
  const made = revocation();
  const undo = { author: 'bob', reason: null };
  const { id: other } = revocation();
  const undoing = `1 6 11 ${undoBody(undo)}`;
  const list = [
    'list',
    '100',
    'v',
    `e:${made.id}`,
    `1 5 10 ${revocationBody(made)}`,
    `u:${other}`,
    undoing,
    'x',
    undoing,
  ];
  const stored = {
    version: 'v',
    nowMs: 100,
    revocations: [{ ...made, createdAtMs: 5, endsAtMs: 10 }],
    undone: [{ ...undo, id: other, undoneAtMs: 6, endsAtMs: 11 }],
    unreadable: ['x'],
  };
  const unexpected = (script: string): object => ({
    ok: false,
    error: { kind: 'refused', reason: `the store answered ${script} with something unexpected`, mayHaveRun: true },
  });
  const full = {
    ok: false,
    error: { kind: 'full', reason: 'the store holds 5000 revocations already', mayHaveRun: false },
  };
  const tooMany = {
    ok: false,
    error: { kind: 'refused', reason: 'the store holds more than 10000 records of revocations', mayHaveRun: false },
  };
  const failure = { kind: 'timeout', reason: 'late', mayHaveRun: true } as const;
  const ask = {
    load: async (store: RevocationStore): Promise<unknown> => store.load('w'),
    revoke: async (store: RevocationStore): Promise<unknown> => store.revoke(made, 1_000),
    undo: async (store: RevocationStore): Promise<unknown> => store.undo(other, undo),
    announce: async (store: RevocationStore): Promise<unknown> => store.announce(),
  };
  const cases: readonly (readonly [keyof typeof ask, RunResult, object])[] = [
    ['load', answer(list), { ok: true, value: stored }],
    ['load', answer([...list, 'half a pair']), { ok: true, value: stored }],
    [
      'load',
      answer(['list', '100', '']),
      { ok: true, value: { version: '', nowMs: 100, revocations: [], undone: [], unreadable: [] } },
    ],
    ['load', answer(['same']), { ok: true, value: null }],
    ['load', answer(['too_many']), tooMany],
    ['load', answer(['other', '100', 'v']), unexpected('revocations')],
    ['load', answer('list'), unexpected('revocations')],
    ['load', { ok: false, error: { ...failure, cause: new Error('secret') } }, { ok: false, error: failure }],
    [
      'revoke',
      answer(['revoked', '5', '10', '1'], 2),
      { ok: true, value: { createdAtMs: 5, endsAtMs: 10, isAnnounced: true, confirmedReplicas: 2 } },
    ],
    [
      'revoke',
      answer(['revoked', '5', '10', '0']),
      { ok: true, value: { createdAtMs: 5, endsAtMs: 10, isAnnounced: false, confirmedReplicas: null } },
    ],
    ['revoke', answer(['full']), full],
    ['revoke', answer(['revoked', '5']), unexpected('revoke')],
    ['revoke', { ok: false, error: failure }, { ok: false, error: failure }],
    [
      'undo',
      answer(['undone', '1'], 1),
      { ok: true, value: { found: 'undone', isAnnounced: true, confirmedReplicas: 1 } },
    ],
    [
      'undo',
      answer(['unknown', '0']),
      { ok: true, value: { found: 'unknown', isAnnounced: false, confirmedReplicas: null } },
    ],
    [
      'undo',
      answer(['already', '1']),
      { ok: true, value: { found: 'already', isAnnounced: true, confirmedReplicas: null } },
    ],
    ['undo', answer(['full']), full],
    ['undo', answer(['revoked', '1']), unexpected('undo')],
    ['announce', answer('1'), { ok: true, value: true }],
    ['announce', answer('0'), { ok: true, value: false }],
  ];
  for (const [name, ran, expected] of cases) {
    t.same(await ask[name](answering(ran).store), expected, `${name}: ${JSON.stringify(ran)}`);
  }
});

t.test('a revocation that would not fit is not sent', async (t) => {
  const room = maxRevocationBytes - 64 - Buffer.byteLength(revocationBody(revocation({ reason: '' })));
  for (const [more, asked] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const { store, calls } = answering(answer(['revoked', '5', '10', '1']));
    const refused = {
      ok: false,
      error: { kind: 'refused', reason: 'the revocation is too long to be kept', mayHaveRun: false },
    };
    t.match(
      await store.revoke(revocation({ reason: 'x'.repeat(room + more) }), 1_000),
      asked === 1 ? { ok: true } : refused,
    );
    t.equal(calls.length, asked);
  }
});
