/** Readiness and status of several workers as those of one proxy. */
import type { Readiness } from '../../admin/readiness.js';
import type { Status } from '../../admin/status.js';
import { addCounts } from './sums.js';

type Check = Readiness['checks'][number];

/** From good to bad. */
const order = ['ok', 'stale', 'failed'] as const satisfies readonly Check['status'][];

function worse(one: Check['status'], other: Check['status']): Check['status'] {
  return order.indexOf(other) > order.indexOf(one) ? other : one;
}

/**
 * Requests should be sent here as long as one worker serves them: connections go to those that do. Each check is that
 * of the worker for which it is worst.
 *
 * @param answers of the workers that serve.
 * @param count as many as there should be.
 */
export function mergeReadiness(answers: readonly Readiness[], count: number, isServing: boolean): Readiness {
  const checks = new Map<string, Check>();
  for (const answer of answers) {
    for (const check of answer.checks) {
      const known = checks.get(check.name);
      checks.set(check.name, known === undefined ? check : { ...check, status: worse(known.status, check.status) });
    }
  }
  const all = answers.length === count;
  const merged: Check[] = [...checks.values(), { name: 'workers', status: all ? 'ok' : 'failed' }];
  if (!isServing || answers.every(({ status }) => status === 'unavailable')) {
    return { status: 'unavailable', checks: merged };
  }
  const isReady = all && answers.every(({ status }) => status === 'ready');
  return { status: isReady ? 'ready' : 'degraded', checks: merged };
}

/**
 * What is open and counted is added up; of keys, store and revocations it is the worst that a worker knows.
 *
 * @param first tells what all of them have alike.
 */
export function mergeStatuses(first: Status, others: readonly Status[]): Status {
  return others.reduce(mergeTwo, first);
}

function mergeTwo(one: Status, other: Status): Status {
  return {
    ...one,
    issuers: one.issuers.map((issuer) => {
      const same = other.issuers.find(({ name }) => name === issuer.name);
      return same === undefined ? issuer : mergeIssuers(issuer, same);
    }),
    store: one.store === null || other.store === null || !one.store.up ? one.store : other.store,
    revocations: mergeRevocations(one.revocations, other.revocations),
    limits: (one.limits?.problem ?? null) === null ? (other.limits ?? one.limits) : one.limits,
    connections: mergeConnections(one.connections, other.connections),
    egress: mergeEgress(one.egress, other.egress),
    decide: one.decide.map((listener, index) => ({
      ...listener,
      connections: listener.connections + (other.decide[index]?.connections ?? 0),
      in_flight: listener.in_flight + (other.decide[index]?.in_flight ?? 0),
    })),
    telemetry: mergeTelemetry(one.telemetry, other.telemetry),
    counts: addCounts(one.counts, other.counts),
  };
}

type Issuer = Status['issuers'][number];

function mergeIssuers(one: Issuer, other: Issuer): Issuer {
  const isWorse = (one.usable && !other.usable) || (one.usable === other.usable && !one.stale && other.stale);
  const worst = isWorse ? other : one;
  const introspection =
    one.introspection === null || other.introspection === null
      ? one.introspection
      : {
          ...(one.introspection.up ? other.introspection : one.introspection),
          active: one.introspection.active + other.introspection.active,
          inactive: one.introspection.inactive + other.introspection.inactive,
          in_flight: one.introspection.in_flight + other.introspection.in_flight,
        };
  return { ...worst, waiting: one.waiting + other.waiting, introspection };
}

function mergeRevocations(one: Status['revocations'], other: Status['revocations']): Status['revocations'] {
  if (one === null || other === null) return one;
  const badness = ({ loaded, stale, problem }: typeof one): number =>
    Number(!loaded) * 4 + Number(stale) * 2 + Number(problem !== null);
  if (badness(one) !== badness(other)) return badness(other) > badness(one) ? other : one;
  return other.held < one.held ? other : one;
}

function mergeConnections(one: Status['connections'], other: Status['connections']): Status['connections'] {
  const open = <Kind extends { readonly connections: number; readonly requests: number }>(a: Kind, b: Kind): Kind => ({
    ...a,
    connections: a.connections + b.connections,
    requests: a.requests + b.requests,
  });
  return {
    http1: open(one.http1, other.http1),
    http2: open(one.http2, other.http2),
    upstream: { ...open(one.upstream, other.upstream), waiting: one.upstream.waiting + other.upstream.waiting },
  };
}

function mergeEgress(one: Status['egress'], other: Status['egress']): Status['egress'] {
  if (one === null || other === null) return one;
  return {
    held_bytes: one.held_bytes + other.held_bytes,
    targets: one.targets.map((target) => {
      const same = other.targets.find(({ name }) => name === target.name);
      return {
        ...target,
        connections: target.connections + (same?.connections ?? 0),
        requests: target.requests + (same?.requests ?? 0),
        waiting: target.waiting + (same?.waiting ?? 0),
      };
    }),
    tokens: one.tokens.map((token) => {
      const same = other.tokens.find(({ name }) => name === token.name);
      if (same === undefined) return token;
      return {
        ...(token.last_error === null ? same : token),
        kept: token.kept || same.kept,
        ends_at: token.ends_at ?? same.ends_at,
        fetches: token.fetches + same.fetches,
        waiting: token.waiting + same.waiting,
      };
    }),
  };
}

function mergeTelemetry(one: Status['telemetry'], other: Status['telemetry']): Status['telemetry'] {
  if (one === null || other === null) return one;
  return {
    ...one,
    not_followed: one.not_followed + other.not_followed,
    signals: one.signals.map((signal) => {
      const same = other.signals.find((each) => each.signal === signal.signal);
      if (same === undefined) return signal;
      return {
        ...signal,
        waiting: signal.waiting + same.waiting,
        exported: signal.exported + same.exported,
        dropped: signal.dropped + same.dropped,
        failed: signal.failed + same.failed,
        rejected: signal.rejected + same.rejected,
        last_error: signal.last_error ?? same.last_error,
      };
    }),
  };
}
