import type { Reason } from '../../decision/denial.js';
import type { Step } from '../../proxy/auth/authorize-request.js';

/** What is decided on, in the order in which it is. */
export type ExplainedStepName =
  | 'request'
  | 'target'
  | 'fields'
  | 'route'
  | 'credential'
  | 'token'
  | 'proof'
  | 'revocation'
  | 'policy'
  | 'body'
  | 'reservation';

export const stepNames: readonly ExplainedStepName[] = [
  'request',
  'target',
  'fields',
  'route',
  'credential',
  'token',
  'proof',
  'revocation',
  'policy',
  'body',
  'reservation',
];

/** Reasons that come to light elsewhere than in the step that was taken last. */
const stepOfReason: Partial<Readonly<Record<Reason, ExplainedStepName>>> = {
  method_malformed: 'request',
  target_malformed: 'target',
  field_refused: 'fields',
  upgrade_refused: 'fields',
  websocket_handshake: 'fields',
  websocket_version: 'fields',
  route_unknown: 'route',
  origin_refused: 'policy',
  body_not_allowed: 'body',
  body_too_large: 'body',
  idempotency_key_missing: 'reservation',
  idempotency_key_malformed: 'reservation',
  token_id_missing: 'reservation',
  decide_unsupported: 'reservation',
};

const stepOfLast: Readonly<Record<Step, ExplainedStepName>> = {
  head: 'request',
  method: 'request',
  target: 'target',
  fields: 'fields',
  route: 'fields',
  credential: 'credential',
  verification: 'token',
  proof: 'proof',
  revocation: 'revocation',
  policy: 'policy',
  body: 'body',
};

/** The step that refuses for a reason. */
export function refusingStep(reason: Reason, taken: readonly Step[]): ExplainedStepName {
  const last = taken.at(-1);
  return stepOfReason[reason] ?? (last === undefined ? 'request' : stepOfLast[last]);
}
