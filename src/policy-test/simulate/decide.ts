/** What becomes of one request, decided by the pipeline that serves. */
import { METHODS } from 'node:http';
import type { CompiledConfig, DecideSettings } from '../../config/types.js';
import type { CallerCertificate } from '../../decision/binding/certificate.js';
import { untoldNames, type Form } from '../../decision/decide/forms.js';
import { isGrpc } from '../../decision/grpc/content-type.js';
import { isHealthPath } from '../../decision/grpc/health.js';
import { responseOf, denial, type Denial, type Reason } from '../../decision/denial.js';
import type { Route } from '../../decision/route/policy.js';
import type { Principal } from '../../decision/token/principal.js';
import { headerValue, type RequestHead } from '../../decision/http/request-head.js';
import type { ShadowPass } from '../../decision/route/shadow-mode.js';
import { askedConfig, type ActiveConfig } from '../../proxy/auth/active-config.js';
import {
  authorizeRequest,
  type Admission,
  type Findings,
  type Observe,
  type Peer,
  type Step,
} from '../../proxy/auth/authorize-request.js';
import { planDecision } from '../../proxy/decide/plan-decision.js';
import {
  planRequest,
  type Plan,
  type PlannedStore,
  type Preparation,
} from '../../proxy/idempotency/plan-reservation.js';

/** A decision, and all that is known of how it came about. */
export interface Ruling {
  /** `shadow`: let through, and would be refused where the route is enforced. */
  readonly decision: 'allowed' | 'denied' | 'shadow';
  /** What the caller is answered; 200 stands for whatever the upstream says. */
  readonly status: number;
  readonly reason: Reason | null;
  readonly denial: Denial | null;
  readonly route: Route | null;
  /** Whom a credential that held speaks for. */
  readonly principal: Principal | null;
  /** What the upstream would see: names and values in turn. `null` where it is not asked. */
  readonly forwarded: readonly string[] | null;
  /** What would be reserved; `null` where nothing is. */
  readonly preparation: Preparation | null;
  /** The steps that were taken, in order. */
  readonly steps: readonly Step[];
  /** The decide listener whose answer it is; `null` is where callers are served. */
  readonly listener: DecideListener | null;
  /** What other listeners answer that is not the same; they have none in turn. */
  readonly elsewhere: readonly Ruling[];
}

/** One listener for a proxy that asks. */
interface DecideListener {
  /** As `check` names it: `decide`, of several `decide[0]`. */
  readonly name: string;
  readonly settings: DecideSettings;
}

/** A caller somewhere, whose `X-Forwarded-*` do not count (RFC 5737). */
const anyAddress = '192.0.2.1';

/** What a request comes with beside its head. */
export interface Shown {
  /** What its sender shows when TLS begins; left out where that is none. */
  readonly certificate?: CallerCertificate | null;
  /** The key that its sender is taken to have; left out where a proof has to come with the request. */
  readonly provedKey?: string | null | undefined;
}

/**
 * Decides on a request. The store is not asked: what it would say of a key or a token depends on what came before.
 *
 * It is as callers are answered, if the config serves them. Where proxies alone ask, it is what the first decide
 * listener says that refuses it, or else the first one.
 *
 * @param listener name of the decide listener that is asked; `null` leaves it to the config.
 */
export async function rule(
  head: RequestHead,
  bodyBytes: number,
  activeConfig: ActiveConfig,
  nowMs: number,
  shown: Shown = {},
  listener: string | null = null,
): Promise<Ruling> {
  const listeners = decideListeners(activeConfig.config);
  const asked: Ruling[] = [];
  for (const each of listeners.filter(({ name }) => listener === null || name === listener)) {
    asked.push(await ruleAsked(each, head, activeConfig, nowMs, shown));
  }
  const own =
    listener === null && isServed(activeConfig.config)
      ? await ruleServed(head, bodyBytes, activeConfig, nowMs, shown)
      : (asked.find(({ decision }) => decision === 'denied') ?? asked[0]);
  if (own === undefined) throw new Error(`the config has no ${listener ?? 'listener'}`);
  return { ...own, elsewhere: asked.filter((other) => !isSameAnswer(own, other)) };
}

/** Whether callers come here; else only proxies ask. Of the calling side alone there is nothing else to decide. */
export function isServed(config: Pick<CompiledConfig, 'servesCallers' | 'decide'>): boolean {
  return config.servesCallers || config.decide.length === 0;
}

/** The decide listeners of a config, in its order. */
export function decideListeners({ decide }: Pick<CompiledConfig, 'decide'>): readonly DecideListener[] {
  return decide.map((settings, index) => ({
    name: decide.length === 1 ? 'decide' : `decide[${String(index)}]`,
    settings,
  }));
}

function isSameAnswer(one: Ruling, other: Ruling): boolean {
  return (
    one.decision === other.decision &&
    one.reason === other.reason &&
    (one.preparation === null) === (other.preparation === null)
  );
}

/** As callers are answered. */
async function ruleServed(
  head: RequestHead,
  bodyBytes: number,
  activeConfig: ActiveConfig,
  nowMs: number,
  shown: Shown,
): Promise<Ruling> {
  const unparsed = parserRefusal(head);
  if (unparsed !== null) return refused(unparsed, null, []);
  if (isProbe(head, activeConfig)) return answeredHere;
  return judge(head, activeConfig, nowMs, shown, (admission) =>
    planRequest(admission, activeConfig, unaskedStore, admission.headers.contentLength ?? bodyBytes),
  );
}

/** As a proxy is answered that asks. Of certificates it tells nothing. */
async function ruleAsked(
  listener: DecideListener,
  head: RequestHead,
  activeConfig: ActiveConfig,
  nowMs: number,
  { provedKey }: Shown,
): Promise<Ruling> {
  const { settings } = listener;
  const own = askedConfig(activeConfig, settings.accepts.has('assertion'));
  const told = toldOf(head, settings.form);
  const ruling = await judge(told, own, nowMs, { provedKey }, (admission) =>
    planDecision(admission, own, told, settings),
  );
  return { ...ruling, listener };
}

/** What a proxy tells of a request. Envoy is taken to ask over gRPC. */
function toldOf(head: RequestHead, form: Form): RequestHead {
  if (form === 'envoy') return head;
  const isTold = (name: string): boolean => !untoldNames.has(name.toLowerCase());
  return { ...head, rawHeaders: head.rawHeaders.filter((_, index, all) => isTold(all[index - (index % 2)] ?? '')) };
}

async function judge(
  head: RequestHead,
  activeConfig: ActiveConfig,
  nowMs: number,
  { certificate = null, provedKey }: Shown,
  plan: (admission: Admission) => Plan,
): Promise<Ruling> {
  const steps: Step[] = [];
  const observe: Observe = (step, result) => {
    steps.push(step);
    return result;
  };
  const peer = { ...peerOf(activeConfig), certificate };
  const judgement = await authorizeRequest(head, peer, activeConfig, nowMs, observe, null, provedKey);
  if (!judgement.ok) return refused(judgement.error.denial, judgement.error, steps);
  return conclude(judgement.value, plan(judgement.value), activeConfig, steps);
}

/** Of a gRPC probe that Sallyport answers itself, by its readiness, before anything is decided. */
const answeredHere: Ruling = {
  decision: 'allowed',
  status: 200,
  reason: null,
  denial: null,
  route: null,
  principal: null,
  forwarded: null,
  preparation: null,
  steps: [],
  listener: null,
  elsewhere: [],
};

/** Whether a request is allowed, and nobody but Sallyport is asked for the answer. */
export function isAnsweredHere({ decision, forwarded }: Pick<Ruling, 'decision' | 'forwarded'>): boolean {
  return decision === 'allowed' && forwarded === null;
}

/** gRPC calls come over HTTP/2, whatever a written request says of that. */
function isProbe(head: RequestHead, { config: { listen } }: ActiveConfig): boolean {
  if (!listen.answersGrpcHealth || head.method !== 'POST') return false;
  return isHealthPath(head.target) && isGrpc(headerValue(head, 'content-type'));
}

function peerOf({ config: { listen } }: ActiveConfig): Peer {
  return {
    remoteAddress: anyAddress,
    encrypted: listen.tls !== null || listen.tlsTerminatedBy !== null,
    trusted: false,
  };
}

/** Node's parser knows a list of methods and answers others before anything here sees them. */
function parserRefusal({ method }: RequestHead): Denial | null {
  return METHODS.includes(method) ? null : denial('method_malformed');
}

/** The store is not asked here: nothing is known of a fail-over that may have lost what was used. */
const unaskedStore: PlannedStore = { floorS: () => null };

function conclude(admission: Admission, plan: Plan, activeConfig: ActiveConfig, steps: readonly Step[]): Ruling {
  switch (plan.kind) {
    case 'refuse':
      return refused(plan.denial, admission, steps);
    case 'forward':
      return passedOn(plan.admission, null, activeConfig, steps);
    case 'reserve':
      return passedOn(admission, plan.preparation, activeConfig, steps);
  }
}

function passedOn(
  admission: Admission,
  preparation: Preparation | null,
  { config }: ActiveConfig,
  steps: readonly Step[],
): Ruling {
  const { shadow, principal, forwarded, route } = admission;
  // What goes on in shadow mode does so by a route that asks nothing; what it was held to is that of the config.
  const heldTo = shadow === null ? route : (config.routes.find(({ name }) => name === route.name) ?? route);
  return {
    decision: shadow === null ? 'allowed' : 'shadow',
    status: 200,
    reason: shadow?.denial.reason ?? null,
    denial: shadow?.denial ?? null,
    route: shadow !== null && route.paths.length === 0 ? null : heldTo,
    principal: principal ?? principalOf(shadow),
    forwarded,
    preparation,
    steps,
    listener: null,
    elsewhere: [],
  };
}

function principalOf(shadow: ShadowPass | null): Principal | null {
  return shadow === null ? null : shadow.principal;
}

function refused(reason: Denial, findings: Findings | null, steps: readonly Step[]): Ruling {
  return {
    decision: 'denied',
    status: responseOf(reason.reason).status,
    reason: reason.reason,
    denial: reason,
    route: findings?.route ?? null,
    principal: findings?.principal ?? null,
    forwarded: null,
    preparation: null,
    steps,
    listener: null,
    elsewhere: [],
  };
}

/** A request as a person writes it down. */
export interface PolicyRequest {
  readonly method: string;
  /** The request target: path and query. */
  readonly path: string;
  /** Names and values; a name may come more than once. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | null;
  /** What its sender shows when TLS begins; left out where that is none. */
  readonly certificate?: CallerCertificate | null;
}

/** What every gRPC call has to say. */
export const grpcContentType = ['Content-Type', 'application/grpc'] as const;

/** What a request has to say that was sent by nobody in particular. */
const assumedHost = 'sallyport.invalid';

/**
 * The head of a request as it would come over the wire: with `Host`, the body's length and the credential added where
 * they are not given.
 */
export function headOf(request: PolicyRequest, credential: readonly string[] = []): RequestHead {
  const { method, path, headers, body } = request;
  const has = (name: string): boolean => headers.some(([given]) => given.toLowerCase() === name);
  const rawHeaders = headers.flat().map(asBytes);
  if (!has('host')) rawHeaders.unshift('Host', assumedHost);
  if (body !== null && !has('content-length') && !has('transfer-encoding')) {
    rawHeaders.push('Content-Length', String(Buffer.byteLength(body)));
  }
  return { method, target: asBytes(path), httpVersion: '1.1', rawHeaders: [...rawHeaders, ...credential] };
}

/** One character for each byte, and no white space around, as Node's parser gives it. */
function asBytes(text: string): string {
  return Buffer.from(text)
    .toString('latin1')
    .replace(/^[\t ]+|[\t ]+$/g, '');
}
