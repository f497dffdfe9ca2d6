import { denial } from '../../decision/denial.js';
import { targetOf } from '../../decision/egress/target.js';
import { createStreamingSlots } from '../upstream/pool/streaming-slots.js';
import type { Upstream, UpstreamCall } from '../upstream/pool/pool.js';
import { EgressCall, type EgressCallDeps } from './egress-call.js';
import type { EgressTarget } from './target.js';

/**
 * Of this many, `createStreamingSlots` lets a quarter be requests whose bodies are yet to come; the bodies of others
 * are read first.
 */
const capacity = 512;

/**
 * The targets of the calling side in the place of the one upstream: a request goes to the target of its prefix, with
 * its token, and again where that is safe. The targets' connections are closed by whoever opened them.
 */
export function createEgressUpstream(targets: readonly EgressTarget[], deps: EgressCallDeps): Upstream {
  const sumOf = (value: (upstream: Upstream) => number): number =>
    targets.reduce((sum, { upstream }) => sum + value(upstream), 0);
  return {
    // Each target has its own.
    host: 'localhost',
    send: (request, sink): UpstreamCall => {
      const target = targetOf(targets, request.target);
      if (target === null) {
        // The gate reads some spellings as the prefix, and only the prefix itself is one.
        queueMicrotask(() => sink.onError(denial('target_malformed')));
        return { resume: () => undefined, cancel: () => undefined, mayBeSent: () => false };
      }
      const call = new EgressCall(request, sink, target, deps);
      call.start();
      return call;
    },
    takeStreamingSlot: createStreamingSlots(() => capacity),
    // Nothing is reserved on this side.
    awaitTurn: ({ onRefused }) => {
      queueMicrotask(() => onRefused(denial('overloaded')));
      return () => undefined;
    },
    retire: () => undefined,
    close: () => Promise.resolve(),
    counts: () => ({
      active: sumOf((upstream) => upstream.counts().active),
      waiting: sumOf((upstream) => upstream.counts().waiting),
    }),
    connections: () => sumOf((upstream) => upstream.connections()),
  };
}
