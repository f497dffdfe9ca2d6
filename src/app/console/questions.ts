/** People's questions about the policy in force, answered by the code that decides on requests. They change nothing. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { RefusedRequest } from '../../admin/console/refusals.js';
import type { CompiledConfig } from '../../config/types.js';
import type { Reason } from '../../decision/denial.js';
import type { Revocations, Route } from '../../decision/route/policy.js';
import { defaultMaxDepth, jsonProblemWords, parseStrictJson, type JsonObject } from '../../lib/strict-json.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { placesOf, spellingsOf } from '../../policy-test/diff/sample-requests.js';
import { explanationData, type ExplanationData } from '../../policy-test/explain/format.js';
import { assumeCertificate } from '../../policy-test/simulate/certificates.js';
import { grpcContentType, type PolicyRequest } from '../../policy-test/simulate/decide.js';
import { decideOnly } from '../../policy-test/simulate/offline-config.js';
import { claimsOf } from '../../policy-test/simulate/test-credentials.js';
import { assumedSessions, createAssumedKeys, prepareAssumedKeys } from '../../policy-test/simulate/test-keys.js';
import { decideCase, type AssumedCase } from '../../policy-test/suite/run.js';

/** What is asked about: the config in force, and what is revoked through the store. */
export interface Policy {
  readonly config: CompiledConfig;
  readonly listed: () => readonly Revocations[];
}

/** A refused request once more, by the rules in force now. */
export interface RefusalExplanation {
  readonly refusal: RefusedRequest;
  /** What of the request is not kept, so that the explanation is of one like it; sentences. */
  readonly notes: readonly string[];
  /** Whether it comes to the same reason. */
  readonly is_same: boolean;
  readonly explanation: ExplanationData;
}

/** What a caller may do on one route. */
interface RouteRuling {
  readonly route: string;
  readonly method: string;
  readonly path: string;
  readonly decision: 'allowed' | 'denied' | 'shadow';
  readonly status: number;
  readonly reason: Reason | null;
  readonly missing: readonly string[];
}

/** What a caller with these claims may do. */
export interface ClaimsAnswer {
  readonly routes: readonly RouteRuling[];
  /** Routes that no request reaches, or too many to be tried. */
  readonly not_tried: readonly string[];
  /** What was filled in, and what is taken for granted; sentences. */
  readonly notes: readonly string[];
}

/** A key, and an id of a token, for routes that ask for one. */
const assumedKey = ['Idempotency-Key', 'console'] as const;
const assumedTokenId = 'sallyport-console';

/** Routes that one question tries. */
const mostRoutes = 1_000;

/** Explains a refused request: its target and its caller as far as they were kept, before the rules in force. */
export async function explainRefusal(
  refusal: RefusedRequest,
  policy: Policy,
  nowMs: number,
): Promise<RefusalExplanation> {
  const route = policy.config.routes.find(({ name }) => name === refusal.route) ?? null;
  const { credential, notes } = credentialOf(refusal, route, policy.config);
  const request: PolicyRequest = {
    ...requestOf(refusal.method, refusal.path, route),
    certificate: refusal.client_certificate === null ? null : assumeCertificate(refusal.client_certificate),
  };
  const explanation = await explain({ request, credential }, policy, nowMs);
  return {
    refusal,
    notes: [
      'The query, the headers and the body are not kept.',
      ...(refusal.is_cut ? ['Only the beginning of the path is kept.'] : []),
      ...notes,
    ],
    is_same: explanation.reason === refusal.reason,
    explanation,
  };
}

/** Explains a request that nobody sent. @param claims `null` for one without a credential. */
export function explainRequest(
  method: string,
  path: string,
  claims: JsonObject | null,
  policy: Policy,
  nowMs: number,
): Promise<ExplanationData> {
  const request = { method, path, headers: [], body: null };
  return explain(
    { request, credential: claims === null ? { kind: 'none' } : { kind: 'claims', claims } },
    policy,
    nowMs,
  );
}

/** Tries a caller with these claims on each route. */
export async function tryClaims(
  kind: 'claims' | 'session',
  claims: JsonObject,
  policy: Policy,
  nowMs: number,
): Promise<ClaimsAnswer> {
  const asked = await open(policy);
  const { config } = policy;
  const places = placesOf(config.table, spellingsOf([config.table]).all);
  const tried = config.routes.filter((route) => places.has(route)).slice(0, mostRoutes);
  const routes: RouteRuling[] = [];
  let notes: readonly string[] = [];
  for (const route of tried) {
    const { method, path } = places.get(route) ?? { method: 'GET', path: '/' };
    const shown = { jti: assumedTokenId, ...claims };
    const assumed: AssumedCase = { request: requestOf(method, path, route), credential: { kind, claims: shown } };
    const { ruling, credentialNotes } = await decideCase(assumed, asked.activeConfig, asked.keys, nowMs);
    const { decision, status, reason, denial } = ruling;
    routes.push({ route: route.name, method, path, decision, status, reason, missing: denial?.missing ?? [] });
    notes = credentialNotes;
    // A signature each: callers of the proxy come in between.
    await nextTurn();
  }
  const names = new Set(routes.map(({ route }) => route));
  return { routes, not_tried: config.routes.map(({ name }) => name).filter((name) => !names.has(name)), notes };
}

/** Reads claims as a person pastes them; refuses with what is wrong and what is allowed. */
export function readClaims(text: string): Result<JsonObject, string> {
  const parsed = parseStrictJson(Buffer.from(text), { maxDepth: defaultMaxDepth });
  return parsed.ok
    ? accept(parsed.value)
    : refuse(`${jsonProblemWords[parsed.error]}; allowed: a JSON object of claims, the payload of a token`);
}

async function open({ config, listed }: Policy): Promise<{
  readonly activeConfig: ReturnType<typeof decideOnly>;
  readonly keys: ReturnType<typeof createAssumedKeys>;
}> {
  await prepareAssumedKeys(config.issuers);
  const keys = createAssumedKeys();
  const sessions = assumedSessions(config, keys);
  return { keys, activeConfig: decideOnly(config, keys.sourceOf, sessions, () => null, listed) };
}

async function explain(assumed: AssumedCase, policy: Policy, nowMs: number): Promise<ExplanationData> {
  const { activeConfig, keys } = await open(policy);
  return explanationData({ ...(await decideCase(assumed, activeConfig, keys, nowMs)), knowsStore: true });
}

function requestOf(method: string, path: string, route: Route | null): PolicyRequest {
  const headers = [...(route?.isGrpc === true ? [grpcContentType] : []), ...(hasKey(route) ? [assumedKey] : [])];
  return { method, path, headers, body: null };
}

function hasKey(route: Route | null): boolean {
  return route !== null && route.reservation !== null && route.reservation.key !== null;
}

/** Reasons for which a request is refused that shows nothing. */
const withoutCredential: ReadonlySet<Reason> = new Set<Reason>(['credential_missing']);

/** What the caller showed, as far as it was kept. */
function credentialOf(
  { kind, issuer, subject, missing, reason }: RefusedRequest,
  route: Route | null,
  { issuers }: CompiledConfig,
): { readonly credential: AssumedCase['credential']; readonly notes: readonly string[] } {
  if (kind === 'session') {
    const notes = ['The claims of the session are not kept: it is taken to have none but its subject.'];
    return { credential: { kind: 'session', claims: { sub: subject ?? 'user' } }, notes };
  }
  const rules = issuers.find((one) => one.rules.name === issuer)?.rules;
  if (kind === 'service' && subject !== null && rules !== undefined) {
    const held = (route?.approvals ?? [])
      .flatMap(({ permissions }) => permissions)
      .filter((permission) => !missing.includes(permission));
    const claims = {
      ...(rules.expectedIssuer === null ? {} : { iss: rules.expectedIssuer }),
      aud: rules.audience,
      ...claimsOf(rules, subjectAsSaid(subject), [...new Set(held)]),
      jti: assumedTokenId,
    };
    const notes = ['Of the token only issuer and subject are kept: it is taken to hold what was not missing.'];
    return { credential: { kind: 'claims', claims }, notes };
  }
  if (withoutCredential.has(reason)) return { credential: { kind: 'none' }, notes: [] };
  const notes = ['What was shown as a credential is not kept: the request is explained as one without any.'];
  return { credential: { kind: 'none' }, notes };
}

/** `claimsOf` takes what a policy names; of Kubernetes that is shorter than the claim. */
function subjectAsSaid(subject: string): string {
  return subject.replace(/^system:serviceaccount:([^:]+):/, '$1/');
}
