import { deepStrictEqual, ok } from 'node:assert/strict';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
import { completeValues } from '../../../src/adapters/redis/reservation-store.js';
import {
  readCompleted,
  readMarked,
  readReleased,
  readReserved,
  readResolved,
} from '../../../src/adapters/redis/scripts/replies.js';
import { scripts, scriptText, type Script } from '../../../src/adapters/redis/scripts/reservation.js';
import {
  complete,
  mark,
  release,
  reserve,
  resolve,
  type Complete,
  type Reserve,
  type Reserved,
  type RecordSlot,
  type Step,
} from '../../../src/decision/idempotency/record.js';
import { startRedis } from '../../support/redis-server.js';
import type { Scope } from '../../support/scope.js';
import { freshScope, markOf } from '../store-commands.js';

/** Expiry is the server's own and is shown elsewhere; here nothing expires, so that time can be moved at will. */
const forever = 10 * 365 * 24 * 3_600_000;
const start = 1_800_000_000_000;

interface ReserveStep {
  readonly kind: 'reserve';
  readonly attempt: string;
  readonly fingerprint: string;
  readonly leaseMs: number;
  readonly takesOver: boolean;
  readonly key: boolean;
  readonly marker: boolean;
}
interface CompleteStep {
  readonly kind: 'complete';
  readonly attempt: string;
  readonly fence: 'own' | 'old';
  readonly state: Complete['state'];
  readonly status: number;
}
type CommandStep =
  | ReserveStep
  | CompleteStep
  | { readonly kind: 'release' | 'mark'; readonly attempt: string }
  | { readonly kind: 'resolve'; readonly resolution: 'committed' | 'not-applied' };
type ScheduleStep = CommandStep | { readonly kind: 'wait'; readonly ms: number } | { readonly kind: 'lose' };

const attempt = fc.constantFrom('a', 'b', 'c');
const schedule: fc.Arbitrary<ScheduleStep[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('reserve' as const),
      attempt,
      fingerprint: fc.constantFrom('f', 'f', 'f', 'g'),
      leaseMs: fc.constantFrom(1, 100, 5_000),
      takesOver: fc.boolean(),
      key: fc.constantFrom(true, true, true, false),
      marker: fc.boolean(),
    }),
    fc.record({
      kind: fc.constant('complete' as const),
      attempt,
      fence: fc.constantFrom('own' as const, 'own' as const, 'old' as const),
      state: fc.constantFrom('completed' as const, 'tombstone' as const),
      status: fc.constantFrom(200, 201, 500),
    }),
    fc.record({ kind: fc.constantFrom('release' as const, 'mark' as const), attempt }),
    fc.record({
      kind: fc.constant('resolve' as const),
      resolution: fc.constantFrom('committed' as const, 'not-applied' as const),
    }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 99, 100, 4_999, 5_000, -50, -3_600_000) }),
    fc.record({ kind: fc.constant('lose' as const) }),
  ),
  { minLength: 1, maxLength: 14 },
);

/**
 * Sends generated schedules to the pure functions, the memory store and the Lua scripts, each command twice, as a
 * network that repeats it would, and compares the answers. A failure names the seed; `SALLYPORT_SEED` runs it again.
 */
export async function compareSchedules(t: Scope, count: number): Promise<void> {
  const server = await startRedis(t, ['--appendonly', 'no']);
  const redis = new Redis({ host: '127.0.0.1', port: server.port, protocol: 2, disconnectTimeout: 50 });
  t.teardown(() => redis.disconnect());
  const shas = new Map<string, string>();
  for (const script of Object.values(scripts)) {
    shas.set(script.name, String(await redis.script('LOAD', withGivenTime(script))));
  }
  const seed = process.env['SALLYPORT_SEED'];

  await fc.assert(
    fc.asyncProperty(schedule, (steps) => compareSchedule(redis, shas, steps)),
    {
      numRuns: count,
      ...(seed === undefined ? {} : { seed: Number(seed) }),
    },
  );
}

/** The script as it is but for the clock: time is the test's, its last two arguments. */
function withGivenTime(script: Script): string {
  const text = scriptText(script, 7);
  const given = text.replace("redis.call('TIME')", '{ ARGV[#ARGV - 1], ARGV[#ARGV] }');
  ok(given !== text, 'the script asks for the time');
  return given;
}

async function compareSchedule(
  redis: Redis,
  shas: ReadonlyMap<string, string>,
  steps: readonly ScheduleStep[],
): Promise<void> {
  const scope = freshScope();
  const keys = [`m:{${scope.principal}}:i`, `m:{${scope.principal}}:t`] as const;
  let now = start;
  let slot: RecordSlot = { record: null, marker: null, withdrawals: [], freed: null };
  const clock = { now: () => now, monotonic: () => now };
  let memory = createMemoryStore(clock);
  const fences = new Map<string, number>();
  /** Since the store lost anything. */
  let highest = 0;
  try {
    for (const step of steps) {
      if (step.kind === 'wait') {
        now += step.ms;
        continue;
      }
      if (step.kind === 'lose') {
        slot = { ...slot, record: null, freed: null, marker: null, withdrawals: [] };
        await memory.close();
        memory = createMemoryStore(clock);
        await redis.del(...keys);
        highest = 0;
        continue;
      }
      for (const time of ['', ', sent again']) {
        const expected = onModel(step);
        deepStrictEqual(await onMemory(step), expected, `memory${time}: ${JSON.stringify(step)}`);
        deepStrictEqual(await onRedis(step), expected, `Lua${time}: ${JSON.stringify(step)}`);
        if (step.kind !== 'reserve' || !step.key || !isAcquired(expected)) continue;
        const repeated = fences.get(step.attempt) === expected.fence;
        ok(repeated || expected.fence > highest, 'a fence did not grow');
        fences.set(step.attempt, expected.fence);
        highest = Math.max(highest, expected.fence);
      }
    }
    for (const key of keys) ok((await redis.pttl(key)) !== -1, `${key} has no end`);
  } finally {
    await memory.close();
  }

  function ran<T>(result: Step<T>): T {
    slot = result.slot;
    return result.reply;
  }

  function fenceOf(step: { readonly attempt: string; readonly fence?: 'own' | 'old' }): number {
    return (fences.get(step.attempt) ?? 1) - (step.fence === 'old' ? 1 : 0);
  }

  function reserveOf(step: ReserveStep): Reserve {
    return {
      attempt: step.attempt,
      key: step.key
        ? {
            fingerprint: step.fingerprint,
            route: 'r',
            leaseMs: step.leaseMs,
            retentionMs: forever,
            takesOver: step.takesOver,
          }
        : null,
      markerTtlMs: step.marker ? forever : null,
    };
  }

  function completeOf(step: CompleteStep): Complete {
    const response = {
      status: step.status,
      headers: ['X', String(step.status)],
      body: Buffer.from([step.status & 0xff, 0]),
      ...(step.status === 201 ? { trailers: ['grpc-status', '0'] } : {}),
    };
    return {
      attempt: step.attempt,
      fence: fenceOf(step),
      fingerprint: 'f',
      state: step.state,
      response,
      retentionMs: forever,
    };
  }

  function onModel(step: CommandStep): unknown {
    switch (step.kind) {
      case 'reserve':
        return ran(reserve(slot, reserveOf(step), now));
      case 'complete':
        return ran(complete(slot, completeOf(step), now));
      case 'release':
        return ran(release(slot, step, now));
      case 'mark':
        return ran(mark(slot, { ...markOf(step.attempt, fenceOf(step)), retentionMs: forever }, now));
      case 'resolve':
        return ran(resolve(slot, step.resolution, now));
    }
  }

  async function onMemory(step: CommandStep): Promise<unknown> {
    const answer = await memoryAnswer(step);
    if (!answer.ok) return answer;
    return typeof answer.value === 'object' ? answer.value.reserved : answer.value;
  }

  function memoryAnswer(step: CommandStep) {
    switch (step.kind) {
      case 'reserve':
        return memory.reserve(scope, reserveOf(step));
      case 'complete':
        return memory.complete(scope, completeOf(step));
      case 'release':
        return memory.release(scope, step);
      case 'mark':
        return memory.mark(scope, { ...markOf(step.attempt, fenceOf(step)), retentionMs: forever });
      case 'resolve':
        return memory.resolve(scope, step.resolution);
    }
  }

  async function onRedis(step: CommandStep): Promise<unknown> {
    switch (step.kind) {
      case 'reserve': {
        const { key, marker } = step;
        const values = [
          step.attempt,
          key ? '1' : '0',
          step.fingerprint,
          step.leaseMs,
          forever,
          step.takesOver ? '1' : '0',
          marker ? '1' : '0',
          forever,
        ];
        return readReserved(await run(scripts.reserve, values));
      }
      case 'complete': {
        return readCompleted(await run(scripts.complete, completeValues(completeOf(step))));
      }
      case 'release':
        return readReleased(await run(scripts.release, [step.attempt]));
      case 'mark':
        return readMarked(await run(scripts.mark, [step.attempt, fenceOf(step), 'f', 'create-order', forever]));
      case 'resolve':
        return readResolved(await run(scripts.resolve, [step.resolution]));
    }
  }

  async function run(script: Script, values: readonly (string | number | Buffer)[]): Promise<unknown> {
    const time = [Math.floor(now / 1000), (now % 1000) * 1000];
    const args = [...values, ...time].map((value) => (typeof value === 'number' ? String(value) : value));
    return redis.callBuffer('evalsha', shas.get(script.name) ?? '', '2', ...keys, ...args);
  }
}

function isAcquired(answer: unknown): answer is Extract<Reserved, { kind: 'acquired' }> {
  return typeof answer === 'object' && answer !== null && 'kind' in answer && answer.kind === 'acquired';
}
