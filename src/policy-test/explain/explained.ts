import type { RequestHead } from '../decision/request-head.js';
import type { InForce } from '../proxy/in-force.js';
import type { Ruling } from './ruling.js';

/** What was decided on. */
export interface Explained {
  readonly head: RequestHead;
  readonly inForce: InForce;
  readonly nowMs: number;
  readonly ruling: Ruling;
  /** What is known of the credential beside the request; sentences. */
  readonly credentialNotes: readonly string[];
}
