import t from 'tap';
import type { Denial } from '../../../src/decision/denial.js';
import { fingerprintOf } from '../../../src/decision/idempotency/fingerprint.js';
import type { Reserve, Reserved, StoredResponse } from '../../../src/decision/idempotency/record.js';
import { accept, refuse, type Result } from '../../../src/lib/result.js';
import type { UpstreamOutcome } from '../../../src/decision/idempotency/settlement.js';
import type { ReserveReply, StoreFailure, StoreShare } from '../../../src/ports/idempotency.js';
import {
  WriteAttempt,
  type WriteAttemptDeps,
  type AttemptedWrite,
} from '../../../src/proxy/idempotency/write-attempt.js';
import type { Settling } from '../../../src/proxy/idempotency/settlement-queue.js';

const scope = { principal: 'p', operation: 'o', token: null };
const scopeWithToken = { ...scope, token: 'token' };
const rules = {
  singleUse: false,
  operation: 'POST /orders',
  fields: [] as string[],
  receiver: 'plain',
  retentionMs: 86_400_000,
  releaseOn: new Set([429]),
};
const target = { raw: '/orders?a=1', path: '/orders', query: 'a=1' };
/** Of the wall clock when a test begins, milliseconds. */
const beginMs = 1_700_000_000_000;
const expiresAtS = beginMs / 1000 + 300;
const issuer = { audience: 'a', clockSkewS: 5 };

interface BenchOptions {
  readonly rules?: Partial<Record<keyof typeof rules, unknown>>;
  readonly recordId?: string | null;
  readonly scope?: typeof scope | typeof scopeWithToken;
  readonly passed?: readonly string[];
  readonly host?: 'preserve' | 'orders.internal';
  readonly forwardedHost?: string;
  readonly replicas?: number;
  readonly share?: StoreShare;
  readonly answer?: Result<ReserveReply, StoreFailure>;
  readonly revoked?: () => Denial | null;
  readonly issuedAtS?: number;
}

interface Bench {
  readonly attempt: WriteAttempt;
  readonly commands: Reserve[];
  readonly settled: Settling[];
  /** What was counted, in order. */
  readonly counted: string[];
  readonly clock: { wallMs: number; monotonicMs: number };
  floorS: number | null;
}

const acquired: Reserved = { kind: 'acquired', fence: 7, takenOver: false };

function answered(reserved: Reserved, confirmedReplicas: number | null = null): Result<ReserveReply, StoreFailure> {
  return accept({ reserved, confirmedReplicas });
}

/** An attempt whose store takes 7 ms to answer a reserve. Connecting may take 1 s, the answer 30 s, settling 2 s. */
function bench(options: BenchOptions = {}): Bench {
  const clock = { wallMs: beginMs, monotonicMs: 500_000 };
  const counted: string[] = [];
  const commands: Reserve[] = [];
  const settled: Settling[] = [];
  const deps = {
    store: {
      reserve: async (_scope: unknown, command: Reserve) => {
        commands.push(command);
        clock.monotonicMs += 7;
        clock.wallMs += 7;
        return options.answer ?? answered(acquired);
      },
      issuedBeforeFloorS: () => self.floorS,
    },
    settlements: { settle: async (settling: Settling) => void settled.push(settling) },
    metrics: {
      reservation: (result: string) => counted.push(result),
      storeCall: (operation: string, ms: number) => counted.push(`${operation} took ${ms}`),
      replicaShortfall: () => counted.push('shortfall'),
      shareExceeded: () => counted.push('not kept'),
    },
    clock: { now: () => clock.wallMs, monotonic: () => clock.monotonicMs },
    share: options.share ?? null,
    replicas: options.replicas ?? 0,
    settleTimeoutMs: 2_000,
  };
  const write = {
    admission: {
      target,
      headers: { passed: options.passed ?? [], host: 'tenant.example' },
      forwarded: ['Host', 'orders.internal', 'X-Forwarded-Host', options.forwardedHost ?? 'tenant.example'],
      route: { name: 'r', responseTimeoutMs: 30_000 },
      revoked: options.revoked ?? (() => null),
    },
    preparation: {
      rules: { ...rules, ...options.rules },
      principal: { expiresAtS, issuedAtS: options.issuedAtS ?? null },
      issuer,
      scope: options.scope ?? scope,
      recordId: options.recordId === undefined ? 'p.o' : options.recordId,
      reservationId: options.recordId === null ? 'p.t' : 'p.o',
      sentKey: 'k',
    },
    method: 'POST',
    body: Buffer.from('body'),
    activeConfig: { config: { upstream: { connectTimeoutMs: 1_000, host: options.host ?? 'orders.internal' } } },
  };
  const self: Bench = {
    attempt: new WriteAttempt(deps as unknown as WriteAttemptDeps, write as unknown as AttemptedWrite),
    commands,
    settled,
    counted,
    clock,
    floorS: null,
  };
  return self;
}

const noFields = {
  method: 'POST',
  operation: rules.operation,
  path: '/orders',
  query: 'a=1',
  contentType: null,
  contentEncoding: null,
  body: Buffer.from('body'),
  headers: [],
};

t.test(
  'the lease outlasts two connects, the response and the settling, by 5 s; what is reserved is what the route says',
  async (t) => {
    const cases: readonly {
      readonly name: string;
      readonly options: BenchOptions;
      readonly key: object | null;
      readonly markerTtlMs: number | null;
    }[] = [
      {
        name: 'a key',
        options: {},
        key: { leaseMs: 39_000, retentionMs: 86_400_000, takesOver: false },
        markerTtlMs: null,
      },
      { name: 'reports', options: { rules: { receiver: 'reports' } }, key: { takesOver: false }, markerTtlMs: null },
      {
        name: 'deduplicates',
        options: { rules: { receiver: 'deduplicates', retentionMs: 9 } },
        key: { retentionMs: 9, takesOver: true },
        markerTtlMs: null,
      },
      { name: 'a token', options: { recordId: null, scope: scopeWithToken }, key: null, markerTtlMs: 390_000 },
      { name: 'both', options: { scope: scopeWithToken }, key: { leaseMs: 39_000 }, markerTtlMs: 390_000 },
    ];
    for (const { name, options, key, markerTtlMs } of cases) {
      const { attempt, commands } = bench(options);
      t.equal(attempt.upstreamMs, 32_000);
      await attempt.reserve();
      t.match(commands, [{ attempt: /^[\w-]{22}$/, key, markerTtlMs }], name);
      t.equal(commands.length, 1);
    }
  },
);

t.test('the fingerprint is of what was asked: fields joined, what is not there told from what is empty', async (t) => {
  const cases: readonly {
    readonly name: string;
    readonly fields?: string[];
    readonly passed: readonly string[];
    readonly expected: object;
  }[] = [
    { name: 'none', passed: [], expected: {} },
    {
      name: 'empty',
      passed: ['Content-Type', '', 'Content-Encoding', ''],
      expected: { contentType: '', contentEncoding: '' },
    },
    {
      name: 'there',
      passed: ['Content-Type', 'a/b', 'Content-Encoding', 'gzip'],
      expected: { contentType: 'a/b', contentEncoding: 'gzip' },
    },
    {
      name: 'named by the route',
      fields: ['if-match', 'prefer'],
      passed: ['If-Match', '1', 'If-Match', '2', 'Content-Type', 'a/b'],
      expected: {
        contentType: 'a/b',
        headers: [
          { name: 'if-match', value: '1, 2' },
          { name: 'prefer', value: null },
        ],
      },
    },
  ];
  const seen = new Set<string | undefined>();
  for (const { name, fields = [], passed, expected } of cases) {
    const { attempt, commands } = bench({ passed, rules: { fields } });
    await attempt.reserve();
    t.equal(commands[0]?.key?.fingerprint, fingerprintOf({ ...noFields, ...expected }), name);
    seen.add(commands[0]?.key?.fingerprint);
  }
  t.equal(seen.size, cases.length);
});

t.test(
  'what the store says of a reserve is counted once; one that may have run is withdrawn, one without a record is not',
  async (t) => {
    const failure = (mayHaveRun: boolean): Result<ReserveReply, StoreFailure> =>
      refuse({ kind: 'timeout', reason: 'late', mayHaveRun });
    const cases: readonly { readonly options: BenchOptions; readonly counts: string; readonly withdrawn?: true }[] = [
      { options: { answer: answered(acquired) }, counts: 'acquired' },
      { options: { answer: answered({ kind: 'mismatch' }) }, counts: 'mismatch' },
      { options: { answer: answered({ kind: 'unsupported' }) }, counts: 'unavailable' },
      { options: { answer: failure(false) }, counts: 'unavailable' },
      { options: { answer: failure(true) }, counts: 'unavailable', withdrawn: true },
      { options: { answer: failure(true), recordId: null }, counts: 'unavailable' },
    ];
    for (const { options, counts, withdrawn } of cases) {
      const { attempt, counted, settled, commands } = bench(options);
      const reserved = await attempt.reserve();
      t.same(counted, ['reserve took 7', counts]);
      t.same(reserved, options.answer?.ok === true ? options.answer.value.reserved : null);
      const write = { kind: 'release', command: { attempt: commands[0]?.attempt }, wasSent: false };
      t.same(
        settled,
        withdrawn === true ? [{ scope, recordId: 'p.o', write, untilMs: 800_007, deduplicates: false }] : [],
      );
    }
  },
);

t.test('the upstream is told of its reservation and fence, also where only a token is reserved', async (t) => {
  const { attempt } = bench();
  await attempt.reserve();
  t.same(attempt.headers(), ['Idempotency-Record', 'p.o', 'Idempotency-Fence', '7']);
  const tokenOnly = bench({ recordId: null });
  await tokenOnly.attempt.reserve();
  t.same(tokenOnly.attempt.headers(), ['Idempotency-Record', 'p.t', 'Idempotency-Fence', '7']);
});

const whole: UpstreamOutcome = {
  kind: 'whole',
  response: { status: 201, headers: [], body: Buffer.from('made') },
  outcome: null,
};

t.test('how a write ended is written down by its attempt, for as long as somebody may ask', async (t) => {
  const { response } = whole as { readonly response: StoredResponse };
  const tombstone = { kind: 'complete', command: { fence: 7, state: 'tombstone', response: { status: 500 } } };
  const completed = { kind: 'complete', command: { fence: 7, state: 'completed', response } };
  const notApplied = { ...whole, outcome: 'not-applied' };
  const cases: readonly {
    readonly name: string;
    readonly outcome: UpstreamOutcome;
    readonly options?: BenchOptions;
    readonly written: object;
  }[] = [
    {
      name: 'unsent',
      outcome: { kind: 'not_dispatched' },
      written: { untilMs: 800_007, write: { kind: 'release', wasSent: false } },
    },
    {
      name: 'unsent, its lease longer than that',
      outcome: { kind: 'not_dispatched' },
      options: { rules: { retentionMs: 1 } },
      written: { untilMs: 539_000, write: { kind: 'release' } },
    },
    {
      name: 'in doubt',
      outcome: { kind: 'no_status' },
      // The lease puts it in doubt by itself, unless the store has lost the record: then the mark is what counts.
      written: {
        untilMs: 800_007,
        write: { kind: 'mark', command: { fence: 7, route: 'r', retentionMs: rules.retentionMs } },
      },
    },
    { name: 'cut off', outcome: { kind: 'cut_off', status: 500, outcome: null }, written: { write: tombstone } },
    {
      name: 'whole',
      outcome: whole,
      written: { untilMs: 800_007, deduplicates: false, scope, recordId: 'p.o', write: completed },
    },
    {
      name: 'kept shortly',
      outcome: whole,
      options: { rules: { retentionMs: 299_999 } },
      written: { untilMs: 800_006 },
    },
    { name: 'a receiver at level 0 has no say', outcome: notApplied, written: { write: completed } },
    {
      name: 'level 1',
      outcome: notApplied,
      options: { rules: { receiver: 'reports' } },
      written: { deduplicates: false, write: { kind: 'release', wasSent: true } },
    },
    {
      name: 'level 2',
      outcome: whole,
      options: { rules: { receiver: 'deduplicates' } },
      written: { deduplicates: true, write: completed },
    },
    {
      name: 'taken over',
      outcome: { kind: 'not_dispatched' },
      options: { answer: answered({ ...acquired, takenOver: true, fence: 8 }) },
      written: { write: { kind: 'mark', command: { fence: 8 } } },
    },
  ];
  for (const { name, outcome, options, written } of cases) {
    const { attempt, settled, commands } = bench(options);
    await attempt.reserve();
    await attempt.settle(outcome);
    t.match(settled, [{ ...written }], name);
    t.equal(settled.length, 1);
    t.equal(settled[0]?.write.command.attempt, commands[0]?.attempt);
    if (settled[0]?.write.kind === 'mark') t.equal(settled[0].write.command.fingerprint, commands[0]?.key?.fingerprint);
    if (settled[0]?.write.kind === 'complete') {
      t.match(settled[0].write.command, {
        fingerprint: commands[0]?.key?.fingerprint,
        retentionMs: options?.rules?.retentionMs ?? rules.retentionMs,
      });
    }
  }
  const tokenOnly = bench({ recordId: null });
  await tokenOnly.attempt.reserve();
  await tokenOnly.attempt.settle(whole);
  t.same(tokenOnly.settled, [], 'there is no record, and the token stays used');
});

t.test(
  'the gate: replicas, the rest of the lease by either clock, the token’s own time, its revocation, its caller',
  async (t) => {
    const revoked: Denial = { reason: 'token_revoked' };
    const unavailable = { reason: 'store_unavailable' };
    const cases: readonly {
      readonly name: string;
      readonly options?: BenchOptions;
      readonly wallMs?: number;
      readonly monotonicMs?: number;
      readonly gone?: true;
      readonly early: object | null;
      readonly late?: object | null;
      readonly shortfall?: true;
    }[] = [
      { name: 'at once', early: null },
      { name: 'its caller left', gone: true, early: { reason: 'caller_gone' }, late: null },
      { name: 'nobody confirmed', options: { replicas: 1 }, early: unavailable, shortfall: true },
      {
        name: 'one too few',
        options: { replicas: 2, answer: answered(acquired, 1) },
        early: unavailable,
        shortfall: true,
      },
      { name: 'enough', options: { replicas: 2, answer: answered(acquired, 2) }, early: null },
      // Of 39 s of lease 32 s have to be left to connect and to answer, 30 s once it is connected.
      { name: '6.999 s', wallMs: 6_992, monotonicMs: 6_992, early: null },
      { name: '7 s', wallMs: 6_993, monotonicMs: 6_993, early: unavailable, late: null },
      { name: '7 s, the wall clock set back', monotonicMs: 6_993, early: unavailable, late: null },
      { name: '7 s of sleep', wallMs: 6_993, early: unavailable, late: null },
      { name: '8.999 s', wallMs: 8_992, early: unavailable, late: null },
      { name: '9 s', wallMs: 8_993, early: unavailable },
      { name: 'revoked meanwhile', options: { revoked: () => revoked }, early: revoked },
      { name: 'revoked, and its caller left', options: { revoked: () => revoked }, gone: true, early: revoked },
    ];
    for (const { name, options, wallMs = 0, monotonicMs = 0, gone = false, early, late = early, shortfall } of cases) {
      const { attempt, clock, counted } = bench(options);
      await attempt.reserve();
      clock.wallMs += wallMs;
      clock.monotonicMs += monotonicMs;
      t.match(attempt.refusal(gone), early, name);
      t.match(attempt.lateRefusal(), late, `${name}, on its connection`);
      t.equal(counted.filter((one) => one === 'shortfall').length, shortfall === true ? 1 : 0, name);
    }
  },
);

t.test('a token that expires, or was issued before a fail-over, passes no gate', async (t) => {
  const single = { rules: { singleUse: true }, scope: scopeWithToken, issuedAtS: beginMs / 1000 - 10 };
  const nowS = beginMs / 1000;
  // The issuer's clock may be ahead by 5 s.
  const floors = [
    [null, null],
    [nowS - 15, null],
    [nowS - 14, 'issue_time_revoked'],
  ] as const;
  for (const [floorS, reason] of floors) {
    const one = bench(single);
    await one.attempt.reserve();
    one.floorS = floorS;
    t.equal(one.attempt.refusal(false)?.reason ?? null, reason, String(floorS));
    const often = bench({ ...single, rules: { singleUse: false } });
    await often.attempt.reserve();
    often.floorS = floorS;
    t.equal(often.attempt.refusal(false), null, 'only single-use tokens mind it');
  }
  // It expired while its body came in: the lease has only begun.
  for (const [lateMs, reason] of [
    [304_992, null],
    [304_993, 'token_expired'],
  ] as const) {
    const { attempt, clock } = bench();
    clock.wallMs += lateMs;
    await attempt.reserve();
    t.equal(attempt.refusal(false)?.reason ?? null, reason);
  }
});

t.test(
  'the host that was asked for tells writes apart where the upstream learns it, or the route says so',
  async (t) => {
    const withHost = fingerprintOf({ ...noFields, headers: [{ name: 'host', value: 'tenant.example' }] });
    const withBoth = fingerprintOf({
      ...noFields,
      headers: [
        { name: 'host', value: 'tenant.example' },
        { name: 'x-forwarded-host', value: 'other.example' },
      ],
    });
    const rows: readonly (readonly [BenchOptions, string])[] = [
      [{}, fingerprintOf(noFields)],
      [{ host: 'preserve' }, withHost],
      [{ rules: { fields: ['host'] } }, withHost],
      [{ host: 'preserve', rules: { fields: ['host'] } }, withHost],
      [{ forwardedHost: 'other.example' }, fingerprintOf(noFields)],
      [{ forwardedHost: 'tenant.example', rules: { fields: ['host'] } }, withHost],
      [{ forwardedHost: 'Tenant.Example', rules: { fields: ['host'] } }, withHost],
      [{ forwardedHost: 'other.example', host: 'preserve' }, withBoth],
      [{ forwardedHost: 'other.example', rules: { fields: ['host'] } }, withBoth],
    ];
    for (const [options, expected] of rows) {
      const { attempt, commands } = bench(options);
      await attempt.reserve();
      t.equal(commands[0]?.key?.fingerprint, expected, JSON.stringify(options));
    }
  },
);

t.test('a write in doubt counts towards what is kept of its caller, and is marked whatever that is', async (t) => {
  const asked: unknown[] = [];
  const share: StoreShare = {
    keeps: async (principal, size) => {
      asked.push([principal, size]);
      return false;
    },
    isUsedUp: () => Promise.resolve(true),
  };
  const { attempt, settled } = bench({ share });
  await attempt.reserve();
  await attempt.settle({ kind: 'no_status' });
  t.match(settled, [{ write: { kind: 'mark' } }]);
  t.same(asked, [[scope.principal, { bytes: 0, retentionMs: rules.retentionMs }]]);
  const bare = bench({ share, recordId: null, scope: scopeWithToken });
  await bare.attempt.settle({ kind: 'no_status' });
  t.equal(asked.length, 1);
});

t.test(
  "beyond the caller's share the status is kept and the response is not; without a record nothing is counted",
  async (t) => {
    const response = { status: 201, headers: ['ETag', '"1"'], body: Buffer.from('made') };
    const asked: unknown[] = [];
    const share = (keeps: boolean): StoreShare => ({
      keeps: async (principal, size) => {
        asked.push([principal, size]);
        return keeps;
      },
      isUsedUp: () => Promise.resolve(true),
    });
    const rows = [
      { share: share(true), written: { state: 'completed', response }, counts: [] },
      {
        share: share(false),
        written: { state: 'tombstone', response: { status: 201, headers: [], body: new Uint8Array() } },
        counts: ['not kept'],
      },
    ];
    for (const row of rows) {
      const { attempt, settled, counted } = bench({ share: row.share });
      await attempt.reserve();
      counted.length = 0;
      await attempt.settle({ kind: 'whole', response, outcome: null });
      t.match(settled, [{ write: { kind: 'complete', command: row.written } }]);
      t.same(counted, row.counts);
      t.equal(await attempt.isOverShare(), true);
    }
    t.same(
      asked,
      [1, 2].map(() => [scope.principal, { bytes: 'ETag"1"made'.length, retentionMs: rules.retentionMs }]),
    );
    const { attempt } = bench({ share: share(false), recordId: null, scope: scopeWithToken });
    await attempt.settle({ kind: 'whole', response, outcome: null });
    t.equal(await attempt.isOverShare(), false);
    t.equal(asked.length, 2);
  },
);
