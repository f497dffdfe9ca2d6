/** Lines of a log for rows of a table, and what is learnt from them. */
import { validateConfig } from '../../../src/config/load/validate-config.js';
import type { CompiledConfig } from '../../../src/config/types.js';
import { refuse } from '../../../src/lib/result.js';
import { createLearner, type Findings } from '../../../src/policy-test/learn/learner.js';
import { propose, type Proposal } from '../../../src/policy-test/learn/proposal.js';
import { defaultCaps, defaultTerms, type LearnCaps, type LearnTerms } from '../../../src/policy-test/learn/terms.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';

/** What differs from a line of `checkout`, in shadow mode and without a route. */
export type LineMembers = Readonly<Record<string, unknown>>;

const day = 86_400_000;
const start = Date.UTC(2026, 0, 1);

export function lineOf(path: string, members: LineMembers = {}, dayNumber = 0): string {
  return JSON.stringify({
    level: 'info',
    time: new Date(start + dayNumber * day).toISOString(),
    request_id: 'r',
    route: 'none',
    method: 'GET',
    path,
    decision: 'shadow',
    reason: 'route_unknown',
    kind: 'service',
    issuer: 'core',
    subject: 'checkout',
    key_id: 'd-1',
    status: 200,
    permissions: ['orders:read'],
    missing_permissions: null,
    ...members,
  });
}

/** The same line so often, over so many days. */
export function often(path: string, members: LineMembers = {}, count = 20, days = 4): readonly string[] {
  return Array.from({ length: count }, (_, at) =>
    lineOf(path.replace('#', String(at * 7 + 1_000)), members, at % days),
  );
}

export const strict: ConfigTree = {
  case_sensitive: true,
  strict_slash: true,
  format_suffix: false,
  trailing_dots: false,
  head_as_get: false,
};

const route = { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' };

export function configOf(overrides: ConfigTree = {}): CompiledConfig {
  const text = baseConfig({ mode: 'shadow', receiver: strict, routes: [route], ...overrides });
  const { config, problems } = validateConfig(text, { file: 'x', folder: '/', env: {}, readFile: () => refuse('') });
  if (config === null) throw new Error(JSON.stringify(problems));
  return config;
}

export interface Learnt {
  readonly findings: Findings;
  readonly proposal: Proposal;
  /** `GET /orders/{id} a, b [x] [y]`: each route with its callers and what it asks for. */
  readonly routes: readonly string[];
  /** `GET /orders/{id} a: why`. */
  readonly leftOut: readonly string[];
}

export function learnFrom(
  lines: readonly string[],
  config = configOf(),
  terms: LearnTerms = defaultTerms,
  caps: LearnCaps = defaultCaps,
): Learnt {
  const learner = createLearner(config, terms, caps);
  for (const line of lines) learner.add(Buffer.from(line));
  const findings = learner.finish();
  const proposal = propose(findings, config, terms);
  return {
    findings,
    proposal,
    routes: proposal.routes.map(
      ({ method, path, approvals }) =>
        `${method} ${path} ${approvals.map(({ subjects, permissions }) => `${subjects.join(', ')} [${permissions.join(' ')}]`).join(' or ')}`,
    ),
    leftOut: proposal.leftOut.map(({ method, path, subject, why }) => `${method} ${path} ${subject}: ${why}`),
  };
}
