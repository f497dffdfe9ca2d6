import fc from 'fast-check';
import { Redis } from 'ioredis';
import t from 'tap';
import { scripts, scriptText, type Script } from '../../../src/adapters/redis/scripts.js';
import { readCompleted, readMarked, readReleased, readReserved, readResolved } from '../../../src/adapters/redis/replies.js';
import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
import {
  complete, mark, release, reserve, resolve, type Slot, type Step,
} from '../../../src/decision/reservation.js';
import { startRedis } from '../../support/redis-server.js';
import { freshScope } from '../store-world.js';

/** Schedules of commands; the long run makes far more of them. */
const schedules = Number(process.env['SALLYPORT_SCHEDULES'] ?? 300);

/** Expiry is the server's own and is shown elsewhere; here nothing expires, so that time can be moved at will. */
const forever = 10 * 365 * 24 * 3_600_000;
const start = 1_800_000_000_000;

type Command =
  | { readonly kind: 'reserve'; readonly attempt: string; readonly fingerprint: string; readonly leaseMs: number; readonly takesOver: boolean; readonly key: boolean; readonly marker: boolean }
  | { readonly kind: 'complete'; readonly attempt: string; readonly fence: 'own' | 'old'; readonly state: 'completed' | 'tombstone'; readonly status: number }
  | { readonly kind: 'release' | 'mark'; readonly attempt: string }
  | { readonly kind: 'resolve'; readonly resolution: 'committed' | 'not-applied' }
  | { readonly kind: 'wait'; readonly ms: number };

const attempt = fc.constantFrom('a', 'b', 'c');
const command: fc.Arbitrary<Command> = fc.oneof(
  fc.record({
    kind: fc.constant('reserve' as const), attempt, fingerprint: fc.constantFrom('f', 'f', 'f', 'g'), leaseMs: fc.constantFrom(1, 100, 5_000),
    takesOver: fc.boolean(), key: fc.constantFrom(true, true, true, false), marker: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant('complete' as const), attempt, fence: fc.constantFrom('own' as const, 'own' as const, 'old' as const),
    state: fc.constantFrom('completed' as const, 'tombstone' as const), status: fc.constantFrom(200, 201, 500),
  }),
  fc.record({ kind: fc.constantFrom('release' as const, 'mark' as const), attempt }),
  fc.record({ kind: fc.constant('resolve' as const), resolution: fc.constantFrom('committed' as const, 'not-applied' as const) }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 99, 100, 4_999, 5_000) }),
);

t.test('REPLAY property 11: pure functions, memory store and Lua answer the same commands alike', async (t) => {
  const server = await startRedis(t, ['--appendonly', 'no']);
  const redis = new Redis({ host: '127.0.0.1', port: server.port, protocol: 2 });
  t.teardown(() => redis.disconnect());

  await fc.assert(fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 14 }), async (commands) => {
    const scope = freshScope();
    const keys = [`m:{${scope.principal}}:i`, `m:{${scope.principal}}:t`] as const;
    let now = start;
    let slot: Slot = { record: null, marker: null };
    const memory = createMemoryStore({ now: () => now, monotonic: () => now });
    const fences = new Map<string, number>();
    try {
      for (const step of commands) {
        if (step.kind === 'wait') {
          now += step.ms;
          continue;
        }
        const expected = apply(step);
        t.same(await onMemory(step), expected, `memory: ${JSON.stringify(step)}`);
        t.same(await onRedis(step), expected, `Lua: ${JSON.stringify(step)}`);
        if (isAcquired(expected) && step.kind === 'reserve') fences.set(step.attempt, expected.fence);
        // Sent twice, as a client library does after a reconnect.
        const again = apply(step);
        t.same(await onMemory(step), again, `memory, sent again: ${JSON.stringify(step)}`);
        t.same(await onRedis(step), again, `Lua, sent again: ${JSON.stringify(step)}`);
      }
    } finally {
      await memory.close();
    }
    return t.passing();

    function ran<T>(result: Step<T>): T {
      slot = result.slot;
      return result.answer;
    }

    function fenceOf(step: { readonly attempt: string; readonly fence?: 'own' | 'old' }): number {
      return (fences.get(step.attempt) ?? 1) - (step.fence === 'old' ? 1 : 0);
    }

    function responseOf(step: Extract<Command, { kind: 'complete' }>) {
      return { status: step.status, fields: ['X', String(step.status)], body: Buffer.from([step.status & 0xff, 0]) };
    }

    function apply(step: Exclude<Command, { kind: 'wait' }>): unknown {
      switch (step.kind) {
        case 'reserve':
          return ran(reserve(slot, reserveOf(step), now));
        case 'complete':
          return ran(complete(slot, completeOf(step), now));
        case 'release':
          return ran(release(slot, step, now));
        case 'mark':
          return ran(mark(slot, { attempt: step.attempt, fence: fenceOf(step) }, now));
        case 'resolve':
          return ran(resolve(slot, step.resolution, now));
      }
    }

    function reserveOf(step: Extract<Command, { kind: 'reserve' }>) {
      return {
        attempt: step.attempt,
        key: step.key ? { fingerprint: step.fingerprint, leaseMs: step.leaseMs, retentionMs: forever, takesOver: step.takesOver } : null,
        markerTtlMs: step.marker ? forever : null,
      };
    }

    function completeOf(step: Extract<Command, { kind: 'complete' }>) {
      return { attempt: step.attempt, fence: fenceOf(step), fingerprint: 'f', state: step.state, response: responseOf(step), retentionMs: forever };
    }

    async function onMemory(step: Exclude<Command, { kind: 'wait' }>): Promise<unknown> {
      switch (step.kind) {
        case 'reserve': {
          const answer = await memory.reserve(scope, reserveOf(step));
          return answer.ok ? answer.value.reserved : answer;
        }
        case 'complete':
          return valueOf(await memory.complete(scope, completeOf(step)));
        case 'release':
          return valueOf(await memory.release(scope, step));
        case 'mark':
          return valueOf(await memory.mark(scope, { attempt: step.attempt, fence: fenceOf(step) }));
        case 'resolve':
          return valueOf(await memory.resolve(scope, step.resolution));
      }
    }

    async function onRedis(step: Exclude<Command, { kind: 'wait' }>): Promise<unknown> {
      switch (step.kind) {
        case 'reserve':
          return readReserved(await run(scripts.reserve, [
            step.attempt, step.key ? '1' : '0', step.fingerprint, step.leaseMs, forever, step.takesOver ? '1' : '0', step.marker ? '1' : '0', forever,
          ]));
        case 'complete': {
          const response = responseOf(step);
          return readCompleted(await run(scripts.complete, [
            step.attempt, fenceOf(step), 'f', step.state, response.status, JSON.stringify(response.fields), response.body, forever,
          ]));
        }
        case 'release':
          return readReleased(await run(scripts.release, [step.attempt]));
        case 'mark':
          return readMarked(await run(scripts.mark, [step.attempt, fenceOf(step)]));
        case 'resolve':
          return readResolved(await run(scripts.resolve, [step.resolution]));
      }
    }

    /** The script as it is but for the clock: time is the test's. */
    async function run(script: Script, values: readonly (string | number | Buffer)[]): Promise<unknown> {
      const text = scriptText(script, 7).replace("redis.call('TIME')", `{ '${String(Math.floor(now / 1000))}', '${String((now % 1000) * 1000)}' }`);
      return redis.callBuffer('eval', text, '2', ...keys, ...values.map((value) => (typeof value === 'number' ? String(value) : value)));
    }
  }), { numRuns: schedules, verbose: 1 });
});

function isAcquired(answer: unknown): answer is { readonly kind: 'acquired'; readonly fence: number } {
  return typeof answer === 'object' && answer !== null && 'kind' in answer && answer.kind === 'acquired';
}

function valueOf<T>(answer: { readonly ok: boolean; readonly value?: T }): T | undefined {
  return answer.value;
}
