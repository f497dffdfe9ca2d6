/** Cases for a policy that has none: what it lets through and what it refuses, as it stands. */
import { stringify } from 'yaml';
import { approvesSubject, sampleSubjects } from '../../decision/route/approval.js';
import type { Route } from '../../decision/route/policy.js';
import { placeOf } from '../../decision/route/route-table.js';
import type { IssuerSettings } from '../../config/types.js';
import type { JsonObject } from '../../lib/strict-json.js';
import type { ActiveConfig } from '../../proxy/auth/active-config.js';
import type { AssumedKeys } from '../simulate/test-keys.js';
import { runCase } from './run.js';
import { assumeCertificate } from '../simulate/certificates.js';
import { claimsHolding, claimsOf, mayNameSubject } from '../simulate/test-credentials.js';
import { placesOf, spellingsOf } from '../diff/sample-requests.js';
import { decideListeners, grpcContentType, isServed, type Ruling } from '../simulate/decide.js';
import type { PolicyCase } from './suite.js';

/** Cases as a file, and the routes that no request reaches. */
interface Drafts {
  readonly text: string;
  readonly unreached: readonly string[];
}

interface Draft {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly credential: PolicyCase['credential'];
  /** Name of the certificate that the caller shows. */
  readonly certificate: string | null;
}

/**
 * Writes cases: for each route each subject with what it needs, the same without one permission at a time, somebody
 * whom the route does not name, and nobody; and one request without a route. What is expected is what the policy
 * decides: the cases pass as they are.
 */
export async function draftSuite(
  configPath: string,
  activeConfig: ActiveConfig,
  keys: AssumedKeys,
  nowMs: number,
): Promise<Drafts> {
  const { config } = activeConfig;
  const { all } = spellingsOf([config.table]);
  const unreached: string[] = [];
  const drafts: Draft[] = [];
  const places = placesOf(config.table, all);
  for (const route of config.routes) {
    const place = places.get(route);
    if (place === undefined) unreached.push(route.name);
    else drafts.push(...draftsOf(route, place.method, place.path, config.issuers));
  }
  const nowhere = all.find(({ segments }) => placeOf(config.table, 'GET', segments) === null);
  if (nowhere !== undefined) {
    const somebody: JsonObject = {
      sub:
        config.routes.flatMap(({ approvals }) => approvals.flatMap((approval) => sampleSubjects(approval)))[0] ??
        'somebody',
    };
    drafts.push({
      name: 'what has no route',
      method: 'GET',
      path: nowhere.target,
      headers: [],
      credential: { kind: 'claims', claims: somebody },
      certificate: null,
    });
  }
  const cases: object[] = [];
  for (const draft of drafts) cases.push(...(await written(draft, activeConfig, keys, nowMs)));
  return { text: stringify({ config: configPath, cases }, { lineWidth: 0, aliasDuplicateObjects: false }), unreached };
}

function draftsOf(route: Route, method: string, path: string, issuers: readonly IssuerSettings[]): readonly Draft[] {
  const { name, reservation, access, approvals, session } = route;
  const headers: Draft['headers'] = [
    ...(route.isGrpc ? [grpcContentType] : []),
    ...(reservation?.key === 'required' ? [['Idempotency-Key', 'policy-test'] as const] : []),
  ];
  const [accepted = null] = route.clientCertificates ?? [];
  const draft = (what: string, credential: Draft['credential'], certificate = accepted): Draft => ({
    name: `${name}: ${what}`,
    method,
    path,
    headers,
    credential,
    certificate,
  });
  if (access === 'public') return [draft('anybody', { kind: 'none' })];
  const claims = (sub: string, permissions: readonly string[]): Draft['credential'] => ({
    kind: 'claims',
    claims: {
      ...claimsOfCaller(sub, permissions, route, issuers),
      ...(reservation?.singleUse === true ? { jti: 'policy-test' } : {}),
    },
  });
  const stranger = route.acceptsService ? strangerTo(route, issuers) : null;
  const named = new Set(approvals.flatMap(({ subjects }) => [...subjects]));
  const byApproval = approvals.flatMap((approval, index) =>
    sampleSubjects(approval, named).flatMap((subject) => {
      const { permissions } = approval;
      const which = approvals.length === 1 ? subject : `${subject} by any_of ${index + 1}`;
      return [
        draft(which, claims(subject, permissions)),
        ...(accepted === null ? [] : [draft(`${which} without a certificate`, claims(subject, permissions), null)]),
        ...permissions.map((lacking) =>
          draft(
            `${which} without ${lacking}`,
            claims(
              subject,
              permissions.filter((held) => held !== lacking),
            ),
          ),
        ),
      ];
    }),
  );
  return [
    ...byApproval,
    ...(stranger !== null
      ? [
          draft(
            'somebody else',
            claims(
              stranger,
              approvals.flatMap(({ permissions }) => permissions),
            ),
          ),
        ]
      : []),
    ...(session === null
      ? []
      : [
          draft('a session', { kind: 'session', claims: claimsHolding(session) }),
          draft('a session without claims', { kind: 'session', claims: { sub: 'user' } }),
        ]),
    draft('nobody', { kind: 'none' }),
    draft('an invalid token', { kind: 'invalid' }),
  ];
}

/** As the first issuer says it whose tokens count here and may have such a subject. */
function claimsOfCaller(
  subject: string,
  permissions: readonly string[],
  route: Route,
  issuers: readonly IssuerSettings[],
): JsonObject {
  const accepted = issuersOf(route, issuers);
  const { rules } = accepted.find((issuer) => mayNameSubject(issuer.rules, subject)) ?? accepted[0] ?? {};
  if (rules === undefined || rules.profile === 'core') return { sub: subject, permissions };
  return {
    ...(rules.expectedIssuer === null ? {} : { iss: rules.expectedIssuer }),
    aud: rules.audience,
    ...claimsOf(rules, subject, permissions),
  };
}

function issuersOf(route: Route, issuers: readonly IssuerSettings[]): readonly IssuerSettings[] {
  return issuers.filter(({ rules }) => route.issuers === null || route.issuers.has(rules.name));
}

/** A subject that nobody approved, of a form that tokens of this route can have; `null` where all are approved. */
function strangerTo(route: Route, issuers: readonly IssuerSettings[]): string | null {
  const { approvals } = route;
  const accepted = issuersOf(route, issuers).map(({ rules }) => rules);
  const domain = accepted.find(({ trustDomain }) => trustDomain !== null)?.trustDomain ?? '';
  const isStranger = (name: string): boolean => !approvals.some((approval) => approvesSubject(approval, name));
  // A name takes one of these away at most, and a beginning that takes more takes all.
  const mostNamed = approvals.reduce((sum, { subjects, prefixes }) => sum + subjects.size + prefixes.length, 0);
  for (let at = 1; at <= mostNamed + 1; at += 1) {
    const somebody = at === 1 ? 'somebody' : `somebody-${at}`;
    const names = [`${somebody}-else`, `${somebody}/else`, `spiffe://${domain}/${somebody}-else`];
    const name = names.find((each) => accepted.some((rules) => mayNameSubject(rules, each))) ?? `${somebody}-else`;
    if (isStranger(name)) return name;
  }
  return null;
}

/** A case, or one for each decide listener where they answer differently. */
async function written(
  draft: Draft,
  activeConfig: ActiveConfig,
  keys: AssumedKeys,
  nowMs: number,
): Promise<readonly object[]> {
  const { name, method, path, headers, credential, certificate } = draft;
  const policyCase: PolicyCase = {
    name,
    file: '',
    line: 0,
    request: {
      method,
      path,
      headers,
      body: null,
      certificate: certificate === null ? null : assumeCertificate(certificate),
    },
    credential,
    atMs: null,
    listener: null,
    expect: {},
  };
  const {
    explained: { ruling },
  } = await runCase(policyCase, activeConfig, keys, nowMs);
  if (isServed(activeConfig.config) || ruling.elsewhere.length === 0) return [writtenCase(draft, ruling, null)];
  const cases: object[] = [];
  for (const { name: listener } of decideListeners(activeConfig.config)) {
    const { explained } = await runCase({ ...policyCase, listener }, activeConfig, keys, nowMs);
    cases.push(writtenCase(draft, explained.ruling, listener));
  }
  return cases;
}

function writtenCase(
  { name, method, path, headers, credential, certificate }: Draft,
  { status, reason, route, preparation }: Ruling,
  listener: string | null,
): object {
  return {
    name: listener === null ? name : `${name}, asked by ${listener}`,
    request: {
      method,
      path,
      ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }),
      ...(certificate === null ? {} : { client_certificate: { name: certificate } }),
    },
    ...(credential.kind === 'claims' || credential.kind === 'session'
      ? { [credential.kind]: credential.claims }
      : { credential: credential.kind }),
    ...(listener === null ? {} : { listener }),
    expect: {
      status,
      ...(reason === null ? {} : { reason }),
      route: route?.name ?? null,
      ...(preparation === null ? {} : { reservation: 'required' }),
    },
  };
}
