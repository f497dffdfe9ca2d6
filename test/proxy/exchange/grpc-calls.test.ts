/** When calls that last are authorized again, and what ends them, without a network. */
import t from 'tap';
import type { Reason } from '../../../src/decision/denial.js';
import { headOf } from '../../../src/policy-test/simulate/decide.js';
import { decideOnly } from '../../../src/policy-test/simulate/offline-config.js';
import { assumeToken } from '../../../src/policy-test/simulate/test-credentials.js';
import { assumedSessions, createAssumedKeys } from '../../../src/policy-test/simulate/test-keys.js';
import type { KeySource } from '../../../src/ports/auth.js';
import { authorizeRequest } from '../../../src/proxy/auth/authorize-request.js';
import { createGrpcCalls } from '../../../src/proxy/exchange/grpc-calls.js';
import { compiled } from '../harness.js';

const keys = createAssumedKeys();
const config = compiled({
  receiver: {
    case_sensitive: true,
    strict_slash: true,
    format_suffix: false,
    trailing_dots: false,
    head_as_get: false,
  },
  routes: [
    {
      name: 'list',
      grpc: 'shop.v1.Orders/List',
      subjects: ['checkout'],
      permissions: ['read'],
      idempotency: { mode: 'none', because: 'reads' },
    },
  ],
});

interface Watched {
  /** Has seconds go by. */
  readonly pass: (seconds: number) => Promise<void>;
  readonly setKeys: (are: 'found' | 'unknown' | 'unavailable') => void;
  readonly authorized: () => number;
  readonly refusals: readonly Reason[];
}

/** One call, whose token ends after so many seconds. */
async function begin(endsInS: number): Promise<Watched> {
  let nowMs = Date.now();
  let are: 'found' | 'unknown' | 'unavailable' = 'found';
  let authorized = 0;
  const refusals: Reason[] = [];
  const tasks: { readonly atMs: number; readonly task: () => void }[] = [];
  const sourceOf = (...asked: Parameters<typeof keys.sourceOf>): KeySource => {
    const source = keys.sourceOf(...asked);
    return {
      ...source,
      find: (keyId) => {
        authorized += 1;
        return are === 'found' ? source.find(keyId) : { kind: are };
      },
    };
  };
  const activeConfig = decideOnly(config, sourceOf, assumedSessions(config, keys));
  const request = {
    method: 'POST',
    path: '/shop.v1.Orders/List',
    headers: [['Content-Type', 'application/grpc']] as const,
    body: null,
  };
  const claims = { sub: 'checkout', permissions: ['read'], exp: Math.floor(nowMs / 1_000) + endsInS };
  const head = headOf(request, assumeToken(claims, request, activeConfig, keys, nowMs).headers);
  const peer = { remoteAddress: '192.0.2.7', encrypted: false, trusted: false };
  const admission = await authorizeRequest(head, peer, activeConfig, nowMs);
  if (!admission.ok) throw new Error(admission.error.denial.reason);
  const calls = createGrpcCalls({
    activeConfig: () => activeConfig,
    clock: { now: () => nowMs, monotonic: () => nowMs },
    timers: {
      after: (delayMs, task) => {
        tasks.push({ atMs: nowMs + delayMs, task });
        return () => undefined;
      },
    },
  });
  calls.begin(
    {
      address: () => '192.0.2.7',
      hasAuthenticated: () => true,
      isGone: () => false,
      now: () => nowMs,
      refuse: ({ reason }) => refusals.push(reason),
      fail: (error) => {
        throw error;
      },
    },
    head,
    peer,
    admission.value,
  );
  return {
    pass: async (seconds) => {
      for (let second = 0; second < seconds; second += 1) {
        nowMs += 1_000;
        for (const { task } of tasks.splice(0)) task();
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    setKeys: (next) => {
      are = next;
    },
    authorized: () => authorized,
    refusals,
  };
}

t.test('a call goes on while nobody can tell, and ends when it is refused', async (t) => {
  const { pass, setKeys, authorized, refusals } = await begin(3_600);
  setKeys('unavailable');
  const before = authorized();
  await pass(31);
  t.ok(authorized() > before, 'it was authorized again');
  t.same(refusals, []);
  setKeys('unknown');
  await pass(32);
  t.same([...new Set(refusals)], ['key_unknown']);
});

t.test('its token ends it whether or not somebody can tell', async (t) => {
  const { pass, setKeys, refusals } = await begin(10);
  setKeys('unavailable');
  await pass(9);
  t.same(refusals, []);
  await pass(120);
  t.same([...new Set(refusals)], ['token_expired']);
});
