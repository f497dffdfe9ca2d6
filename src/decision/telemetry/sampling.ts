/** Which requests are traced. */

/** How requests are chosen. */
export interface SamplingRules {
  /** Of the requests that nobody decided on before; 0 to 1. */
  readonly ratio: number;
  /** Whether a `traceparent` of a caller that may decide is followed. */
  readonly followsParent: boolean;
}

/** What is known of a request. */
export interface SampledRequest {
  readonly traceId: string;
  /** What its `traceparent` says; `null` where it has none. */
  readonly parentIsSampled: boolean | null;
  /**
   * Whether the caller may decide: it has shown a credential, or is a trusted proxy. Anybody else's flag counts for
   * nothing, and neither does its trace id, which it chose: a stranger must not be able to make requests dear.
   */
  readonly isTrusted: boolean;
  /** At least 0 and less than 1. */
  readonly random: number;
}

/** `followed`: since the caller traces it, which is bounded by a rate. */
export type Sampling = 'followed' | 'chosen' | 'not_sampled';

/** Decides on one request. */
export function sample({ ratio, followsParent }: SamplingRules, request: SampledRequest): Sampling {
  const { traceId, parentIsSampled, isTrusted, random } = request;
  if (parentIsSampled !== null && isTrusted && followsParent) return parentIsSampled ? 'followed' : 'not_sampled';
  const isChosen = parentIsSampled === null || isTrusted ? isInRatio(traceId, ratio) : random < ratio;
  return isChosen ? 'chosen' : 'not_sampled';
}

/** Of the random part of a trace id (W3C Trace Context level 2, §3.2.2.3), as many bits as a number holds exactly. */
const randomDigits = 13;
const randomValues = 2 ** 52;

/**
 * By the trace id alone, so that every service with the same ratio records the same traces: the random part reaches the
 * threshold that the ratio stands for.
 */
function isInRatio(traceId: string, ratio: number): boolean {
  return parseInt(traceId.slice(-randomDigits), 16) >= (1 - ratio) * randomValues;
}
