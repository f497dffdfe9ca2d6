import t from 'tap';
import type { KeySourceState } from '../../src/ports/auth.js';
import type { StoreState } from '../../src/ports/idempotency.js';
import type { RevocationsState } from '../../src/ports/revocations.js';
import { readinessOf, type Phase, type Readiness } from '../../src/admin/readiness.js';
import { keyState } from '../support/key-state.js';

function source(issuer: string, usable: boolean, stale = false): KeySourceState {
  return keyState({ issuer, usable, stale, ageMs: usable ? 5 : null });
}

function store(up: boolean): StoreState {
  return { kind: 'redis', up, problem: up ? null : 'it is away', connectedReplicas: 0, servers: [], failovers: 0 };
}

const known: RevocationsState = {
  isLoaded: true,
  areRequired: true,
  isStale: false,
  ageMs: 5,
  problem: null,
  hasNews: true,
  held: [],
  notInForce: 0,
  lost: [],
};

interface Row {
  readonly name: string;
  readonly phase?: Phase;
  readonly sources: readonly KeySourceState[];
  readonly store?: StoreState;
  readonly revocations?: Partial<RevocationsState>;
  readonly status: Readiness['status'];
  readonly failing: readonly string[];
}

const rows: readonly Row[] = [
  { name: 'every issuer has keys', sources: [source('a', true), source('b', true)], status: 'ready', failing: [] },
  {
    name: 'no issuer has keys',
    sources: [source('a', false), source('b', false)],
    status: 'unavailable',
    failing: ['keys', 'keys:a', 'keys:b'],
  },
  {
    name: 'one issuer of two has keys',
    sources: [source('a', false), source('b', true)],
    status: 'degraded',
    failing: ['keys:a'],
  },
  { name: 'keys are stale', sources: [source('a', true, true)], status: 'degraded', failing: ['keys:a'] },
  { name: 'no issuer is configured', sources: [], status: 'ready', failing: [] },
  {
    name: 'the store takes reservations',
    sources: [source('a', true)],
    store: store(true),
    status: 'ready',
    failing: [],
  },
  {
    name: 'the store is away',
    sources: [source('a', true)],
    store: store(false),
    status: 'degraded',
    failing: ['store'],
  },
  {
    name: 'keys and store are away',
    sources: [source('a', false)],
    store: store(false),
    status: 'unavailable',
    failing: ['keys', 'keys:a', 'store'],
  },
  { name: 'revocations are known', sources: [source('a', true)], revocations: {}, status: 'ready', failing: [] },
  {
    name: 'revocations were never read',
    sources: [source('a', true)],
    revocations: { isLoaded: false },
    status: 'unavailable',
    failing: ['revocations'],
  },
  {
    name: 'revocations were never read and are not waited for',
    sources: [source('a', true)],
    revocations: { isLoaded: false, areRequired: false },
    status: 'degraded',
    failing: ['revocations'],
  },
  {
    name: 'revocations are not read now',
    sources: [source('a', true)],
    revocations: { isStale: true },
    status: 'degraded',
    failing: ['revocations'],
  },
  {
    name: 'the store has lost revocations',
    sources: [source('a', true)],
    revocations: { lost: ['x'] },
    status: 'degraded',
    failing: ['revocations'],
  },
  {
    name: 'a revocation cannot be read',
    sources: [source('a', true)],
    revocations: { notInForce: 1 },
    status: 'degraded',
    failing: ['revocations'],
  },
  { name: 'starting', phase: 'starting', sources: [source('a', true)], status: 'unavailable', failing: ['listener'] },
  { name: 'stopping', phase: 'stopping', sources: [source('a', true)], status: 'unavailable', failing: ['shutdown'] },
];

for (const { name, phase = 'serving', sources, store: state, revocations, status, failing } of rows) {
  t.test(name, (t) => {
    const readiness = readinessOf(
      phase,
      sources,
      state ?? null,
      revocations === undefined ? null : { ...known, ...revocations },
    );
    t.equal(readiness.status, status);
    t.same(
      readiness.checks.filter((check) => check.status !== 'ok').map((check) => check.name),
      failing,
    );
    t.end();
  });
}
