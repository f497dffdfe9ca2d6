/** Lets every kind of caller that two policies tell apart ask for an operation, and compares what becomes of it. */
import { METHODS } from 'node:http';
import type { CallerCertificate } from '../../decision/binding/certificate.js';
import { isHealthPath } from '../../decision/grpc/health.js';
import { sampleSubjects } from '../../decision/route/approval.js';
import type { Revocations, Route } from '../../decision/route/policy.js';
import type { SessionPolicy } from '../../decision/session/claim-rules.js';
import { unusedText } from '../../lib/text.js';
import type { ActiveConfig } from '../../proxy/auth/active-config.js';
import { assumeCertificate } from '../simulate/certificates.js';
import {
  assumeSession,
  claimsOf,
  assumeToken,
  noCredential,
  type ShownCredential,
  claimsHolding,
} from '../simulate/test-credentials.js';
import type { AssumedKeys } from '../simulate/test-keys.js';
import { grpcContentType, headOf, type PolicyRequest, rule, isServed } from '../simulate/decide.js';

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
  /** What it shows when TLS begins. */
  readonly certificate: CallerCertificate | null;
  /** What it shows to a proxy with this policy; nothing where the policy knows no such credential. */
  readonly show: (activeConfig: ActiveConfig, request: PolicyRequest) => ShownCredential;
}

const anybody: Caller = {
  text: 'anybody, without a credential',
  who: '',
  permissions: [],
  certificate: null,
  show: () => noCredential,
};

/** So that a route which asks for a key, or for a token that passes once, lets through whom it lets through. */
const idempotencyKey = ['Idempotency-Key', 'diff'] as const;
const tokenId = 'sallyport-diff';
const sessionUser = 'user';

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
      methodKindOf(operation.method),
      // What Sallyport answers itself needs no route.
      isHealthPath(operation.target),
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

  async function passes(
    { show, certificate }: Caller,
    request: PolicyRequest,
    activeConfig: ActiveConfig,
  ): Promise<boolean> {
    const { headers, provedKey } = show(activeConfig, request);
    const shown = { certificate, provedKey };
    const ruling = await rule(headOf(request, headers), 0, activeConfig, deps.nowMs, shown);
    // Where proxies alone ask, whoever one of their listeners lets through is through.
    const answers = isServed(activeConfig.config) ? [ruling] : [ruling, ...ruling.elsewhere];
    return answers.some(({ decision }) => decision !== 'denied');
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
    (few.certificate === null || few.certificate.name === many.certificate?.name) &&
    few.permissions.every((permission) => many.permissions.includes(permission));
  return callers.filter((caller) => !callers.some((other) => isWithin(other, caller))).map(({ text }) => text);
}

/** Callers that the routes may tell apart: each without a certificate, and with each one that a route takes. */
function callersOf(
  pair: readonly (Route | null)[],
  deps: TrialDeps,
  signed: Map<string, ShownCredential>,
): readonly Caller[] {
  const names = new Set(pair.flatMap((route) => [...(route?.clientCertificates ?? [])]));
  return [null, ...[...names].map((name) => assumeCertificate(name))].flatMap((certificate) =>
    callersShowing(certificate, pair, deps, signed),
  );
}

/**
 * Callers that the routes may tell apart but for their certificates. More permissions never hurt, so it is enough to
 * try each subject of an approval with exactly the permissions of each approval.
 */
function callersShowing(
  certificate: CallerCertificate | null,
  pair: readonly (Route | null)[],
  deps: TrialDeps,
  signed: Map<string, ShownCredential>,
): readonly Caller[] {
  const showing = certificate === null ? '' : `, showing ${certificate.name ?? ''}`;
  const routes = pair.filter((route) => route !== null);
  const approvals = routes.flatMap((route) => route.approvals);
  const issuers = [
    ...new Set([deps.from, deps.to].flatMap(({ config }) => config.issuers.map(({ rules }) => rules.name))),
  ];
  const found = new Map<string, Caller>();
  const revoked = revokedBy(deps);
  // Whoever is named or revoked would say nothing of all others whom a beginning names.
  const taken = new Set([...revoked.subjects, ...approvals.flatMap(({ subjects }) => [...subjects])]);
  for (const subject of new Set(approvals.flatMap((approval) => sampleSubjects(approval, taken)))) {
    for (const permissions of approvals.map((approval) => approval.permissions.toSorted())) {
      for (const issuer of issuers) {
        const who = `${subject}${issuers.length > 1 ? ` of issuer ${issuer}` : ''}`;
        const text = `${who} ${permissions.length === 0 ? 'without permissions' : `with ${permissions.join(' ')}`}${showing}`;
        found.set(text, {
          text,
          who,
          permissions,
          certificate,
          show: signedOnce(text, signed, (activeConfig) =>
            showToken(activeConfig, issuer, { subject, permissions, certificate }, deps),
          ),
        });
      }
    }
  }
  for (const session of routes.map((route) => route.session).filter((policy) => policy !== null)) {
    const who = sessionText(session);
    const text = `${who}${showing}`;
    const show = signedOnce(text, signed, (activeConfig) =>
      assumeSession(
        claimsHolding(
          session,
          unusedText(sessionUser, (text) => revoked.subjects.has(text)),
        ),
        activeConfig,
        deps.keys,
        deps.nowMs,
      ),
    );
    found.set(text, { text, who, permissions: [], certificate, show });
  }
  return [...found.values()];
}

function showToken(
  activeConfig: ActiveConfig,
  issuer: string,
  { subject, permissions, certificate }: Pick<Caller, 'permissions' | 'certificate'> & { readonly subject: string },
  deps: TrialDeps,
): ShownCredential {
  const { keys, nowMs } = deps;
  const rules = activeConfig.config.issuers.find((known) => known.rules.name === issuer)?.rules;
  if (rules === undefined) return noCredential;
  const revoked = revokedBy(deps);
  const jti = unusedText(tokenId, (text) => revoked.tokenIds.has(text));
  const claims = { iss: rules.issuer, aud: rules.audience, ...claimsOf(rules, subject, permissions), jti };
  const request: PolicyRequest = { method: 'GET', path: '/', headers: [], body: null, certificate };
  return assumeToken(claims, request, activeConfig, keys, nowMs);
}

/** What either policy says is revoked. */
function revokedBy({ from, to }: TrialDeps): Pick<Revocations, 'subjects' | 'tokenIds'> {
  const [before, after] = [from.config.revoked, to.config.revoked];
  return {
    subjects: new Set([...before.subjects, ...after.subjects]),
    tokenIds: new Set([...before.tokenIds, ...after.tokenIds]),
  };
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

/** What of a method a caller's passing depends on: Node's parser knows not every one, and sessions ask more of some. */
function methodKindOf(method: string): string {
  return ['GET', 'POST'].includes(method) || !METHODS.includes(method) ? method : 'other';
}

/** What of a route a caller's passing depends on. */
function restrictionOf(route: Route | null): unknown {
  if (route === null) return null;
  const { access, mode, acceptsService, session, approvals, issuers, clientCertificates, isGrpc, reservation } = route;
  return {
    isGrpc,
    access,
    mode,
    acceptsService,
    session,
    approvals: approvals.map(({ subjects, prefixes, permissions }) => [[...subjects], prefixes, permissions]),
    issuers: issuers === null ? null : [...issuers],
    clientCertificates: clientCertificates === null ? null : [...clientCertificates],
    // What a proxy that asks cannot see to.
    reservation: reservation === null ? null : [reservation.key, reservation.singleUse],
  };
}
