/** The search finds what it is for: guards that are taken out of the real decision, one at a time. */
import t from 'tap';
import { createRouteTable } from '../../src/decision/route/route-table.js';
import type { Route } from '../../src/decision/route/policy.js';
import type { ActiveConfig } from '../../src/proxy/auth/active-config.js';
import type { ActiveSessions } from '../../src/proxy/auth/credentials/session.js';
import { runCampaign } from './campaign.js';
import { createStages } from './in-process.js';

type Break = (activeConfig: ActiveConfig) => ActiveConfig;

const withRules = (
  activeConfig: ActiveConfig,
  change: Partial<ActiveConfig['issuers'][number]['rules']>,
): ActiveConfig => ({
  ...activeConfig,
  verified: null,
  issuers: activeConfig.issuers.map(({ rules, keys }) => ({ keys, rules: { ...rules, ...change } })),
});

const withConfig = (activeConfig: ActiveConfig, change: Partial<ActiveConfig['config']>): ActiveConfig => ({
  ...activeConfig,
  config: { ...activeConfig.config, ...change },
});

const withRoutes = (activeConfig: ActiveConfig, change: (route: Route) => Partial<Route>): ActiveConfig =>
  withConfig(activeConfig, {
    table: createRouteTable(activeConfig.config.table.routes.map((route) => ({ ...route, ...change(route) }))),
  });

const withSessions = (
  activeConfig: ActiveConfig,
  change: (sessions: ActiveSessions) => Partial<ActiveSessions>,
): ActiveConfig =>
  activeConfig.sessions === null
    ? activeConfig
    : { ...activeConfig, sessions: { ...activeConfig.sessions, ...change(activeConfig.sessions) } };

const faults: readonly { readonly name: string; readonly break: Break }[] = [
  {
    name: 'look-alikes of our fields pass',
    break: (activeConfig) => ({
      ...activeConfig,
      headerRules: {
        ...activeConfig.headerRules,
        requestKind: (name) => {
          const kind = activeConfig.headerRules.requestKind(name);
          return kind === 'reserved' && !/^x-auth/i.test(name) ? 'passed' : kind;
        },
      },
    }),
  },
  { name: 'a token holds a second longer', break: (activeConfig) => withRules(activeConfig, { clockSkewS: 6 }) },
  {
    name: 'a token may hold for longer than allowed',
    break: (activeConfig) => withRules(activeConfig, { maxLifetimeS: 100_000 }),
  },
  {
    name: 'key_ids rejects nothing',
    break: (activeConfig) => withRules(activeConfig, { keyIds: { accept: ['d-*', 's-*', 'p-*'], reject: [] } }),
  },
  {
    name: 'every route takes encoded slashes',
    break: (activeConfig) => withRoutes(activeConfig, () => ({ encodedSlashes: true })),
  },
  {
    name: 'nothing is revoked',
    break: (activeConfig) => ({
      ...activeConfig,
      revocations: () =>
        activeConfig.revocations().map((rules) => ({ ...rules, subjects: new Set(), tokenIds: new Set() })),
    }),
  },
  {
    name: 'the receiver is not told the kind',
    break: (activeConfig) => withConfig(activeConfig, { identity: { ...activeConfig.config.identity, kind: null } }),
  },
  {
    name: 'no claim of a session is asked for',
    break: (activeConfig) =>
      withRoutes(activeConfig, ({ session }) => (session === null ? {} : { session: { ...session, claims: [] } })),
  },
  {
    name: 'docs/sessions.md: what belongs to a session goes on',
    break: (activeConfig) =>
      withRoutes(activeConfig, ({ session }) =>
        session === null ? {} : { session: { ...session, forwardsTokens: true } },
      ),
  },
  {
    name: 'docs/sessions.md: a session that only the Core knows to be gone counts',
    break: (activeConfig) =>
      withSessions(activeConfig, ({ verifier }) => ({
        verifier: {
          verify: async (token) => verifier.verify(token, false, { user: '', expiresAtMs: Infinity, again: null }),
        },
      })),
  },
  {
    name: 'docs/websockets.md: any page opens a connection',
    break: (activeConfig) => withRoutes(activeConfig, () => ({ origins: null })),
  },
  {
    name: 'docs/websockets.md: every route takes WebSockets',
    break: (activeConfig) => withRoutes(activeConfig, () => ({ allowsWebSocket: true })),
  },
  {
    name: 'a target may be longer',
    break: (activeConfig) =>
      withConfig(activeConfig, { listen: { ...activeConfig.config.listen, maxTargetBytes: 9000 } }),
  },
];

for (const fault of faults) {
  t.test(`it is found that ${fault.name}`, async (t) => {
    const stages = createStages(t).map(({ surroundings, activeConfig }) => ({
      surroundings,
      activeConfig: fault.break(activeConfig),
    }));
    const report = await runCampaign(stages, { seed: 1, cases: 40_000, resignOdds: 200, maxFaults: 1 });
    t.equal(report.faults.length, 1, `after ${String(report.cases)} cases`);
  });
}
