import type { RequestHead } from '../../decision/http/request-head.js';
import type { InForce } from '../../proxy/auth/active-config.js';
import type { Ruling } from '../simulate/decide.js';

/** What was decided on. */
export interface Explained {
  readonly head: RequestHead;
  readonly inForce: InForce;
  readonly nowMs: number;
  readonly ruling: Ruling;
  /** What is known of the credential beside the request; sentences. */
  readonly credentialNotes: readonly string[];
}
