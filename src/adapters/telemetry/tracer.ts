import { parentSpanOf, sampledTraceparent } from '../../decision/telemetry/trace-context.js';
import { takeRequest } from '../../decision/route/rate-limit.js';
import { sample, type SamplingRules } from '../../decision/telemetry/sampling.js';
import {
  clientAttributes,
  clientError,
  serverAttributes,
  serverError,
  spanName,
  type Attributes,
  type SentResult,
  type ServedRequest,
} from '../../decision/telemetry/span-attributes.js';
import type { Clock } from '../../ports/system.js';
import type { Exemplar, Part, RequestTrace, SentSpan, TraceStart, Tracer } from '../../ports/tracing.js';

/** A span that is over, as the exporter writes it. Times are milliseconds since the epoch. */
export interface EndedSpan {
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client';
  readonly traceId: string;
  readonly spanId: string;
  /** `null` where the trace begins here. */
  readonly parent: { readonly spanId: string; readonly isRemote: boolean } | null;
  readonly startMs: number;
  readonly endMs: number;
  readonly isError: boolean;
  readonly attributes: Attributes;
  /** Names another span that it has to do with; `null` where there is none. */
  readonly link: string | null;
}

interface TracerDeps {
  readonly clock: Clock;
  /** At least 0 and less than 1. */
  readonly random: () => number;
  /** So many random bytes, in hexadecimal digits. */
  readonly randomHex: (bytes: number) => string;
  /** Takes a span that is over. */
  readonly onSpan: (span: EndedSpan) => void;
}

/** A tracer whose rules a reload replaces. */
export interface RunningTracer extends Tracer {
  readonly use: (rules: SamplingRules, followedPerSecond: number) => void;
  /** Requests that their callers trace and that were not, since there were too many. */
  readonly notFollowed: () => number;
}

/** Chooses requests, and makes their spans: what is not chosen costs a decision, and holds nothing. */
export function createTracer(rules: SamplingRules, followedPerSecond: number, deps: TracerDeps): RunningTracer {
  let current = rules;
  let perSecond = followedPerSecond;
  let fullAtMs: number | null = null;
  let notFollowed = 0;

  function mayFollow(): boolean {
    const taken =
      perSecond === 0
        ? null
        : takeRequest(fullAtMs, { perSecond, burst: perSecond, shared: false }, deps.clock.monotonic());
    if (taken !== null) fullAtMs = taken.fullAtMs;
    if (taken?.waitMs === 0) return true;
    notFollowed += 1;
    return false;
  }

  return {
    begin: (start) => {
      const parent = start.traceparent === null ? null : parentSpanOf(start.traceparent);
      const traceId = parent?.traceId ?? start.traceId ?? deps.randomHex(traceIdBytes);
      const { isTrusted } = start;
      const sampling = sample(current, {
        traceId,
        parentIsSampled: parent?.isSampled ?? null,
        isTrusted,
        random: deps.random(),
      });
      if (sampling === 'not_sampled' || (sampling === 'followed' && !mayFollow())) return null;
      return new Trace(traceId, parent?.spanId ?? null, start, deps);
    },
    use: (next, nextPerSecond) => {
      current = next;
      perSecond = nextPerSecond;
    },
    notFollowed: () => notFollowed,
  };
}

type Place = Pick<ServedRequest, 'method' | 'path' | 'route' | 'isGrpc'>;

/** Lengths of ids (W3C Trace Context §3.2.2). */
const traceIdBytes = 16;
const spanIdBytes = 8;

/** A request has a handful of parts: more than that would be a fault of ours, and must not grow without end. */
const maxChildren = 64;

class Trace implements RequestTrace {
  readonly traceId: string;
  readonly spanId: string;
  private readonly parentId: string | null;
  private readonly startedMs: number;
  private readonly deps: TracerDeps;
  /** What a time of the monotonic clock is since the epoch. */
  private readonly epochMs: number;
  private linked: string | null = null;
  private where: Place = { method: '', path: null, route: 'none', isGrpc: false };
  private sent = 0;
  private children = 0;

  constructor(traceId: string, parentId: string | null, { startedMs }: TraceStart, deps: TracerDeps) {
    this.traceId = traceId;
    this.spanId = deps.randomHex(spanIdBytes);
    this.parentId = parentId;
    this.startedMs = startedMs;
    this.deps = deps;
    this.epochMs = deps.clock.now() - deps.clock.monotonic();
  }

  place(place: Place): void {
    this.where = place;
  }

  send({ pathThere = (path) => path, ...to }: Parameters<RequestTrace['send']>[0]): SentSpan {
    const { deps } = this;
    const where = { ...this.where, path: this.where.path === null ? null : pathThere(this.where.path) };
    const startedMs = deps.clock.monotonic();
    const spanId = deps.randomHex(spanIdBytes);
    const sent = { ...where, ...to, resends: this.sent };
    this.sent += 1;
    let isOver = false;
    return {
      traceparent: sampledTraceparent(this.traceId, spanId, this.parentId === null),
      end: (result: SentResult) => {
        if (isOver) return;
        isOver = true;
        this.add({
          spanId,
          name: spanName(where),
          kind: 'client',
          isError: clientError(result),
          startedMs,
          endedMs: deps.clock.monotonic(),
          attributes: clientAttributes(sent, result),
        });
      },
    };
  }

  part(part: Part, startedMs: number, endedMs: number, attributes: Attributes): void {
    this.add({
      spanId: this.deps.randomHex(spanIdBytes),
      name: part,
      kind: 'internal',
      isError: false,
      startedMs,
      endedMs,
      attributes,
    });
  }

  exemplar(): Exemplar {
    return { traceId: this.traceId, spanId: this.spanId, atMs: this.deps.clock.now() };
  }

  link(traceparent: string): void {
    this.linked = traceparent;
  }

  end(served: Omit<ServedRequest, keyof Place>, endedMs: number): void {
    const whole = { ...this.where, ...served };
    this.deps.onSpan({
      name: spanName(whole),
      kind: 'server',
      traceId: this.traceId,
      spanId: this.spanId,
      parent: this.parentId === null ? null : { spanId: this.parentId, isRemote: true },
      startMs: this.epochMs + this.startedMs,
      endMs: this.epochMs + endedMs,
      isError: serverError(whole),
      attributes: serverAttributes(whole),
      link: this.linked,
    });
  }

  private add(span: Pick<EndedSpan, 'spanId' | 'name' | 'kind' | 'isError' | 'attributes'> & Times): void {
    if (this.children >= maxChildren) return;
    this.children += 1;
    this.deps.onSpan({
      name: span.name,
      kind: span.kind,
      traceId: this.traceId,
      spanId: span.spanId,
      parent: { spanId: this.spanId, isRemote: false },
      startMs: this.epochMs + span.startedMs,
      endMs: this.epochMs + span.endedMs,
      isError: span.isError,
      attributes: span.attributes,
      link: null,
    });
  }
}

interface Times {
  readonly startedMs: number;
  readonly endedMs: number;
}
