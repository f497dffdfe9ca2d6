/** Lets every kind of caller that two policies tell apart ask for an operation, and compares what becomes of it. */
import { sampleSubjects } from '../../decision/route/approval.js';
import type { Route } from '../../decision/route/policy.js';
import type { SessionPolicy } from '../../decision/session/claim-rules.js';
import type { ActiveConfig } from '../../proxy/auth/active-config.js';
import {
  assumeSession,
  claimsOf,
  assumeToken,
  noCredential,
  type ShownCredential,
  claimsHolding,
} from '../simulate/test-credentials.js';
import type { AssumedKeys } from '../simulate/test-keys.js';
import { grpcContentType, headOf, type PolicyRequest, rule } from '../simulate/decide.js';

/** Callers in words, such as `checkout with orders:read`. */
interface TrialResult {
  readonly gains: readonly string[];
  readonly loses: readonly string[];
}

/** Where a request goes, and the routes that take it. */
interface Operation {
  readonly method: string;
  readonly target: string;
  readonly from: Route | null;
  readonly to: Route | null;
}

type CallerTrial = (operation: Operation) => Promise<TrialResult>;

/** The two policies, and what their callers are made of. */
export interface TrialDeps {
  readonly from: ActiveConfig;
  readonly to: ActiveConfig;
  readonly keys: AssumedKeys;
  readonly nowMs: number;
}

/** One kind of caller. */
interface Caller {
  readonly text: string;
  /** Who it is, whatever it holds. */
  readonly who: string;
  readonly permissions: readonly string[];
  /** What it shows to a proxy with this policy; nothing where the policy knows no such credential. */
  readonly show: (activeConfig: ActiveConfig, request: PolicyRequest) => ShownCredential;
}

const anybody: Caller = { text: 'anybody, without a credential', who: '', permissions: [], show: () => noCredential };

/** So that a route which asks for a key, or for a token that passes once, lets through whom it lets through. */
const idempotencyKey = ['Idempotency-Key', 'diff'] as const;
const tokenId = 'sallyport-diff';

/**
 * Tries callers on both policies. Once the routes are chosen nothing else of the path counts, so that what was found
 * for two routes is kept for all of their requests, and for every pair of routes that ask the same.
 */
export function createCallerTrial(deps: TrialDeps): CallerTrial {
  const { from, to } = deps;
  const known = new Map<string, TrialResult>();
  const signed = new Map<string, ShownCredential>();
  return async (operation) => {
    // Without a route, shadow mode looks at how the path may be read besides.
    const isByPath =
      (operation.from === null && from.config.unmatched !== null) ||
      (operation.to === null && to.config.unmatched !== null);
    const asked = JSON.stringify([
      restrictionOf(operation.from),
      restrictionOf(operation.to),
      isByPath ? [operation.method, operation.target] : null,
    ]);
    const found = known.get(asked) ?? (await tryCallers(operation));
    known.set(asked, found);
    return found;
  };

  async function tryCallers(operation: Operation): Promise<TrialResult> {
    const request: PolicyRequest = {
      method: operation.method,
      path: operation.target,
      headers: [idempotencyKey, ...(isOfGrpc(operation) ? [grpcContentType] : [])],
      body: null,
    };
    const [was, is] = [await passes(anybody, request, from), await passes(anybody, request, to)];
    // Who needs no credential needs no name either.
    if (was !== is) return { gains: is ? [anybody.text] : [], loses: was ? [anybody.text] : [] };
    const gains: Caller[] = [];
    const loses: Caller[] = [];
    for (const caller of was ? [] : callersOf([operation.from, operation.to], deps, signed)) {
      const [could, can] = [await passes(caller, request, from), await passes(caller, request, to)];
      if (could && !can) loses.push(caller);
      if (can && !could) gains.push(caller);
    }
    return { gains: leastOf(gains), loses: leastOf(loses) };
  }

  async function passes({ show }: Caller, request: PolicyRequest, activeConfig: ActiveConfig): Promise<boolean> {
    const { decision } = await rule(headOf(request, show(activeConfig, request).headers), 0, activeConfig, deps.nowMs);
    return decision !== 'denied';
  }
}

/** A route that takes what is not gRPC takes that too; the other way round it does not. */
function isOfGrpc({ from, to }: Operation): boolean {
  return from?.isGrpc === true || to?.isGrpc === true;
}

/** Who passes with some permissions passes with more: only the fewest are worth telling. */
function leastOf(callers: readonly Caller[]): readonly string[] {
  const isWithin = (few: Caller, many: Caller): boolean =>
    few !== many &&
    few.who === many.who &&
    few.permissions.every((permission) => many.permissions.includes(permission));
  return callers.filter((caller) => !callers.some((other) => isWithin(other, caller))).map(({ text }) => text);
}

/**
 * Callers that the routes may tell apart. More permissions never hurt, so it is enough to try each subject of an
 * approval with exactly the permissions of each approval.
 */
function callersOf(
  pair: readonly (Route | null)[],
  deps: TrialDeps,
  signed: Map<string, ShownCredential>,
): readonly Caller[] {
  const routes = pair.filter((route) => route !== null);
  const approvals = routes.flatMap((route) => route.approvals);
  const issuers = [
    ...new Set([deps.from, deps.to].flatMap(({ config }) => config.issuers.map(({ rules }) => rules.name))),
  ];
  const found = new Map<string, Caller>();
  for (const subject of new Set(approvals.flatMap(sampleSubjects))) {
    for (const permissions of approvals.map((approval) => approval.permissions.toSorted())) {
      for (const issuer of issuers) {
        const who = `${subject}${issuers.length > 1 ? ` of issuer ${issuer}` : ''}`;
        const text = `${who} ${permissions.length === 0 ? 'without permissions' : `with ${permissions.join(' ')}`}`;
        found.set(text, {
          text,
          who,
          permissions,
          show: signedOnce(text, signed, (activeConfig) => showToken(activeConfig, issuer, subject, permissions, deps)),
        });
      }
    }
  }
  for (const session of routes.map((route) => route.session).filter((policy) => policy !== null)) {
    const text = sessionText(session);
    const show = signedOnce(text, signed, (activeConfig) =>
      assumeSession(claimsHolding(session), activeConfig, deps.keys, deps.nowMs),
    );
    found.set(text, { text, who: text, permissions: [], show });
  }
  return [...found.values()];
}

function showToken(
  activeConfig: ActiveConfig,
  issuer: string,
  subject: string,
  permissions: readonly string[],
  { keys, nowMs }: TrialDeps,
): ShownCredential {
  const rules = activeConfig.config.issuers.find((known) => known.rules.name === issuer)?.rules;
  if (rules === undefined) return noCredential;
  const claims = { iss: rules.issuer, aud: rules.audience, ...claimsOf(rules, subject, permissions), jti: tokenId };
  return assumeToken(claims, { method: 'GET', path: '/', headers: [], body: null }, activeConfig, keys, nowMs);
}

/** Signing takes a millisecond, and the same few callers ask for everything. */
function signedOnce(
  text: string,
  signed: Map<string, ShownCredential>,
  make: (activeConfig: ActiveConfig) => ShownCredential,
): Caller['show'] {
  return (activeConfig) => {
    const name = `${activeConfig.config.sha256} ${text}`;
    const known = signed.get(name) ?? make(activeConfig);
    signed.set(name, known);
    return known;
  };
}

function sessionText({ claims }: SessionPolicy): string {
  if (claims.length === 0) return 'any session';
  return `a session with ${claims.map(({ path, value }) => `${path.join('.')} ${JSON.stringify(value)}`).join(', ')}`;
}

/** What of a route a caller's passing depends on. */
function restrictionOf(route: Route | null): unknown {
  if (route === null) return null;
  const { access, mode, acceptsService, session, approvals, issuers, isGrpc } = route;
  return {
    isGrpc,
    access,
    mode,
    acceptsService,
    session,
    approvals: approvals.map(({ subjects, prefixes, permissions }) => [[...subjects], prefixes, permissions]),
    issuers: issuers === null ? null : [...issuers],
  };
}
