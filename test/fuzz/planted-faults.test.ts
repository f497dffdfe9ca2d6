/** The search finds what it is for: guards that are taken out of the real decision, one at a time. */
import t from 'tap';
import { createRouteTable } from '../../src/decision/route/route-table.js';
import type { Route } from '../../src/decision/route/policy.js';
import type { InForce } from '../../src/proxy/auth/active-config.js';
import type { SessionsInForce } from '../../src/proxy/auth/verify-session.js';
import { runCampaign } from './campaign.js';
import { createStages } from './in-process.js';

type Break = (inForce: InForce) => InForce;

const withRules = (inForce: InForce, change: Partial<InForce['issuers'][number]['rules']>): InForce => ({
  ...inForce,
  verified: null,
  issuers: inForce.issuers.map(({ rules, keys }) => ({ keys, rules: { ...rules, ...change } })),
});

const withConfig = (inForce: InForce, change: Partial<InForce['config']>): InForce => ({
  ...inForce,
  config: { ...inForce.config, ...change },
});

const withRoutes = (inForce: InForce, change: (route: Route) => Partial<Route>): InForce =>
  withConfig(inForce, {
    table: createRouteTable(inForce.config.table.routes.map((route) => ({ ...route, ...change(route) }))),
  });

const withSessions = (inForce: InForce, change: (sessions: SessionsInForce) => Partial<SessionsInForce>): InForce =>
  inForce.sessions === null ? inForce : { ...inForce, sessions: { ...inForce.sessions, ...change(inForce.sessions) } };

const faults: readonly { readonly name: string; readonly break: Break }[] = [
  {
    name: 'look-alikes of our fields pass',
    break: (inForce) => ({
      ...inForce,
      fieldRules: {
        ...inForce.fieldRules,
        requestKind: (name) => {
          const kind = inForce.fieldRules.requestKind(name);
          return kind === 'reserved' && !/^x-auth/i.test(name) ? 'passed' : kind;
        },
      },
    }),
  },
  { name: 'a token holds a second longer', break: (inForce) => withRules(inForce, { clockSkewS: 6 }) },
  {
    name: 'a token may hold for longer than allowed',
    break: (inForce) => withRules(inForce, { maxLifetimeS: 100_000 }),
  },
  {
    name: 'key_ids rejects nothing',
    break: (inForce) => withRules(inForce, { keyIds: { accept: ['d-*', 's-*', 'p-*'], reject: [] } }),
  },
  {
    name: 'every route takes encoded slashes',
    break: (inForce) => withRoutes(inForce, () => ({ encodedSlashes: true })),
  },
  {
    name: 'nothing is revoked',
    break: (inForce) => ({
      ...inForce,
      revocations: () => inForce.revocations().map((rules) => ({ ...rules, subjects: new Set(), tokenIds: new Set() })),
    }),
  },
  {
    name: 'the receiver is not told the kind',
    break: (inForce) => withConfig(inForce, { identity: { ...inForce.config.identity, kind: null } }),
  },
  {
    name: 'no claim of a session is asked for',
    break: (inForce) =>
      withRoutes(inForce, ({ session }) => (session === null ? {} : { session: { ...session, claims: [] } })),
  },
  {
    name: 'docs/sessions.md: what belongs to a session goes on',
    break: (inForce) =>
      withRoutes(inForce, ({ session }) => (session === null ? {} : { session: { ...session, forwardsTokens: true } })),
  },
  {
    name: 'docs/sessions.md: a session that only the Core knows to be gone counts',
    break: (inForce) =>
      withSessions(inForce, ({ verifier }) => ({
        verifier: { verify: async (token) => verifier.verify(token, false) },
      })),
  },
  {
    name: 'docs/websockets.md: any page opens a connection',
    break: (inForce) => withRoutes(inForce, () => ({ origins: null })),
  },
  {
    name: 'docs/websockets.md: every route takes WebSockets',
    break: (inForce) => withRoutes(inForce, () => ({ allowsWebSocket: true })),
  },
  {
    name: 'a target may be longer',
    break: (inForce) => withConfig(inForce, { listen: { ...inForce.config.listen, maxTargetBytes: 9000 } }),
  },
];

for (const fault of faults) {
  t.test(`it is found that ${fault.name}`, async (t) => {
    const stages = createStages(t).map(({ surroundings, inForce }) => ({
      surroundings,
      inForce: fault.break(inForce),
    }));
    const report = await runCampaign(stages, { seed: 1, cases: 40_000, resignOdds: 200, maxFaults: 1 });
    t.equal(report.faults.length, 1, `after ${String(report.cases)} cases`);
  });
}
