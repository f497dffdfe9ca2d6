/** A decision, step by step, in words. */
import type { CallerCertificate } from '../../decision/binding/certificate.js';
import { responseOf, type Denial } from '../../decision/denial.js';
import { readTarget } from '../../decision/http/request-target.js';
import { explainRoute } from './route.js';
import { explainReason } from './reason.js';
import { certificateWords, proofWords } from './proof.js';
import { explainRevocation } from './revocation.js';
import { explainLeftOut, explainPrincipal } from './token.js';
import { explainPolicy, explainReservation } from './policy.js';
import { explainHeaders, headersSeen } from './headers.js';
import { refusingStep, stepNames, type ExplainedStepName } from './steps.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import type { ActiveConfig } from '../../proxy/auth/active-config.js';
import { isAnsweredHere, type Ruling } from '../simulate/decide.js';

/** One step. `would_refuse`: let through in shadow mode. `not_reached`: decided before, or without effect here. */
export interface ExplainedStep {
  readonly step: ExplainedStepName;
  readonly outcome: 'passed' | 'refused' | 'would_refuse' | 'not_reached';
  /** Sentences for people; never a token or a cookie. */
  readonly says: readonly string[];
}

interface Explanation {
  readonly steps: readonly ExplainedStep[];
  /** What the upstream would see, as names and values; `null` where it is not asked. */
  readonly headers: readonly (readonly [string, string])[] | null;
}

/** Puts a decision into words. What they say of the outcome is the ruling's; nothing is decided here. */
export function explain(explained: Explained): Explanation {
  return { steps: stepNames.map((step) => explainStep(step, explained)), headers: headersSeen(explained) };
}

function explainStep(step: ExplainedStepName, explained: Explained): ExplainedStep {
  const {
    ruling: { decision, denial, steps },
  } = explained;
  if (isAnsweredHere(explained.ruling) && step === 'request') {
    const says = 'listen.grpc_health is answer: Sallyport answers it itself, whoever asks, by its own readiness';
    return { step, outcome: 'passed', says: [...detailsOf(step, explained), says] };
  }
  // Shadow mode goes on to the body after what would have been the end.
  const taken = decision === 'shadow' ? steps.filter((one) => one !== 'body') : steps;
  if (denial !== null && refusingStep(denial.reason, taken) === step) {
    const says = new Set([whyRefused(denial), ...explainReason(denial, explained), ...detailsOf(step, explained)]);
    return { step, outcome: decision === 'shadow' ? 'would_refuse' : 'refused', says: [...says] };
  }
  if (isReached(step, explained)) return { step, outcome: 'passed', says: detailsOf(step, explained) };
  return { step, outcome: 'not_reached', says: missedWords(step, explained) };
}

/** Whether the step was taken and let the request through. */
function isReached(
  step: ExplainedStepName,
  { ruling: { steps, route, principal, decision, forwarded } }: Explained,
): boolean {
  switch (step) {
    case 'request':
      return steps.includes('target');
    case 'target':
      return steps.includes('fields');
    case 'fields':
      return steps.includes('route');
    case 'route':
      return steps.includes('route') && route !== null;
    case 'credential':
      return steps.includes('verification');
    case 'token':
      return principal !== null;
    case 'proof':
      return principal !== null && principal.kind === 'service';
    case 'revocation':
      return steps.includes('policy') || (steps.includes('revocation') && route === null);
    case 'policy':
      return steps.includes('policy');
    case 'body':
      return forwarded !== null || (steps.includes('body') && decision !== 'allowed');
    case 'reservation':
      return forwarded !== null;
  }
}

function detailsOf(step: ExplainedStepName, explained: Explained): readonly string[] {
  const {
    head,
    activeConfig,
    ruling: { route },
  } = explained;
  switch (step) {
    case 'request':
      return [`${head.method}, ${head.rawHeaders.length / 2} headers`];
    case 'target':
      return targetWords(explained);
    case 'fields':
      return explainHeaders(head, activeConfig.headerRules);
    case 'route':
      return explainRoute(head, activeConfig.config, route);
    case 'credential':
      return explained.credentialNotes;
    case 'token':
      return explained.ruling.principal === null
        ? []
        : [...explainPrincipal(explained.ruling.principal, explained.nowMs), ...explainLeftOut(explained)];
    case 'proof':
      return explained.ruling.principal === null ? [] : proofWords(explained.ruling.principal.confirmation, explained);
    case 'revocation':
      return explainRevocation(explained);
    case 'policy':
      return [...certificateWords(explained), ...explainPolicy(explained.ruling)];
    case 'body':
      return route === null ? [] : [`at most ${route.maxBodyBytes} bytes`];
    case 'reservation':
      return explainReservation(explained.ruling);
  }
}

function targetWords({ head, activeConfig: { config } }: Explained): readonly string[] {
  const target = readTarget(head.target, config.listen.maxTargetBytes);
  if (!target.ok) return [];
  const { path, segments, query } = target.value;
  const read = segments.map((segment) => JSON.stringify(segment)).join(' ');
  return [`${path} is read as ${read} and forwarded byte for byte${query === null ? '' : '; the query is not judged'}`];
}

function missedWords(step: ExplainedStepName, explained: Explained): readonly string[] {
  const { route, steps } = explained.ruling;
  if (step === 'route' && steps.includes('route')) {
    return [...detailsOf(step, explained), 'which is told to nobody without a valid credential'];
  }
  const isAsked = step === 'credential' || step === 'token' || step === 'policy';
  return isAsked && route?.access === 'public' ? ['the route is public: nobody is asked who they are'] : [];
}

function whyRefused({ reason, missing }: Denial): string {
  const { status, title } = responseOf(reason);
  const which = missing === undefined || missing.length === 0 ? '' : `: ${missing.join(' ')}`;
  return `${status} ${reason}${which} (${title})`;
}

/** What was decided on. */
export interface Explained {
  readonly head: RequestHead;
  readonly activeConfig: ActiveConfig;
  readonly nowMs: number;
  readonly ruling: Ruling;
  /** Whether what is revoked through the store counts too; it does not unless given. */
  readonly knowsStore?: boolean;
  /** What is known of the credential beside the request; sentences. */
  readonly credentialNotes: readonly string[];
  /** What the sender shows when TLS begins; left out where that is none. */
  readonly certificate?: CallerCertificate | null;
}
