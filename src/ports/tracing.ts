/** How requests are followed across services: types only. */
import type { Attributes, SentRequest, SentResult, ServedRequest } from '../decision/telemetry/span-attributes.js';

/** A request that may be traced, once it is decided. Times are of the monotonic clock, milliseconds. */
export interface TraceStart {
  /** The caller's, sound; `null` where it sent none. */
  readonly traceparent: string | null;
  /** Of the trace that was begun for the upstream; `null` where none was. */
  readonly traceId: string | null;
  /** Whether the caller may decide that the request is traced. */
  readonly isTrusted: boolean;
  readonly startedMs: number;
}

/** Decides which requests are traced. */
export interface Tracer {
  /** `null` where the request is not traced. */
  readonly begin: (start: TraceStart) => RequestTrace | null;
}

/** Names a traced request beside a measurement that it is an example of (OpenMetrics 1.0, "Exemplars"). */
export interface Exemplar {
  readonly traceId: string;
  readonly spanId: string;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
}

/** What a request waits for, or does, besides asking the upstream. */
export type Part = 'fetch key' | 'reserve' | 'settle';

/** One request that is traced. Everything is taken at any time, also after its end. */
export interface RequestTrace {
  readonly traceId: string;
  /** Of the span of the request as its caller sees it. */
  readonly spanId: string;
  /** Where it belongs; said before it goes out. */
  readonly place: (place: Pick<ServedRequest, 'method' | 'path' | 'route' | 'isGrpc'>) => void;
  /** It is sent to the upstream, or to a target once more. */
  readonly send: (to: SentPlace) => SentSpan;
  /** It waited for something, or did something. */
  readonly part: (part: Part, startedMs: number, endedMs: number, attributes: Attributes) => void;
  /** Stands beside what is measured of it now. */
  readonly exemplar: () => Exemplar;
  /** Its response is one that was kept: of the request whose span this names. */
  readonly link: (traceparent: string) => void;
  /** It is over; once. */
  readonly end: (served: Omit<ServedRequest, 'method' | 'path' | 'route' | 'isGrpc'>, endedMs: number) => void;
}

/** Where a request goes. */
interface SentPlace extends Pick<SentRequest, 'origin' | 'httpVersion'> {
  /** Turns the route's path into what is asked for there; left out where that is the same. */
  readonly pathThere?: (path: string) => string;
}

/** A request to the upstream. */
export interface SentSpan {
  /** What the upstream is told. */
  readonly traceparent: string;
  /** It is over; the first call counts. */
  readonly end: (result: SentResult) => void;
}

/** How it stands with what is sent to a collector, for `/status` and metrics. */
export interface TelemetryState {
  readonly endpoint: string;
  readonly protocol: string;
  readonly signals: readonly SignalState[];
  /** Requests that their callers trace and that were not, since there were too many. */
  readonly notFollowed: number;
}

export interface SignalState {
  readonly signal: 'traces' | 'metrics' | 'logs';
  /** Items that wait to be sent. */
  readonly waiting: number;
  readonly exported: number;
  /** There was no room for them. */
  readonly dropped: number;
  /** The collector was not reached, or did not answer as one does. */
  readonly failed: number;
  /** The collector said that it did not take them. */
  readonly rejected: number;
  /** Why the last attempt failed, in words that hold nothing of what was received; `null` where it did not. */
  readonly lastError: string | null;
}

/** Everything that `/metrics` shows at one moment. */
export interface MetricsSnapshot {
  readonly families: readonly {
    readonly name: string;
    readonly help: string;
    readonly type: string;
    /** What the value is of several workers: `sum`, `min`, `max`, or `first` where all have the same. */
    readonly aggregator?: string;
    readonly values: readonly {
      readonly value: number;
      readonly labels: Readonly<Partial<Record<string, string | number>>>;
      readonly metricName?: string;
    }[];
  }[];
  readonly histograms: readonly HistogramFamily[];
}

/** A measurement, and the request that it is of. */
export interface ExemplarWithValue extends Exemplar {
  readonly value: number;
}

/** Histograms of one name, by the values of one label. */
export interface HistogramFamily {
  readonly name: string;
  readonly help: string;
  readonly label: string;
  readonly series: readonly (readonly [
    value: string,
    histogram: {
      readonly bounds: readonly number[];
      /** How many values were at most each bound; the last number counts them all. */
      readonly cumulative: () => readonly number[];
      readonly sum: () => number;
      /** The last example at each bound, in their order and unit; left out where there is none. */
      readonly examples: () => readonly (ExemplarWithValue | undefined)[];
    },
  ])[];
}
