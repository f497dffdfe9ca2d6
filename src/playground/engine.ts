/**
 * What the page asks of the code that serves and of the policy tests. Nothing in it is of a browser: it says the same
 * in Node.js, to which a test holds it.
 */
import { accessOf, type Access } from '../admin/console/access.js';
import { validateConfig, type ConfigValidation } from '../config/load/validate-config.js';
import { placeholdersIn } from '../config/load/placeholders.js';
import type { Note, Problem } from '../config/load/report.js';
import type { CompiledConfig } from '../config/types.js';
import { accept, refuse } from '../lib/result.js';
import { diffLines } from '../policy-test/diff/format.js';
import { comparePolicies, isWider, type PolicyDiff } from '../policy-test/diff/policy-diff.js';
import { decideOnly } from '../policy-test/simulate/offline-config.js';
import { assumedSessions, createAssumedKeys } from '../policy-test/simulate/test-keys.js';
import { coverageOf, percentCovered, type PolicyPoint } from '../policy-test/suite/coverage.js';
import { draftSuite } from '../policy-test/suite/draft-suite.js';
import { caseData, type CaseData } from '../policy-test/suite/reports.js';
import { runCase } from '../policy-test/suite/run.js';
import { readSuite } from '../policy-test/suite/suite.js';

/** Names of the two files, as problems and cases have them unless they have names of their own. */
export const configName = 'sallyport.yaml';
export const testsName = 'policy.test.yaml';

/** What stands for placeholders, by how they are written: `env:NAME` and `file:PATH`. */
export type PlaceholderValues = Readonly<Record<string, string>>;

/** What came of the cases. */
export interface TestRun {
  readonly problems: readonly Problem[];
  readonly cases: readonly CaseData[];
  readonly coverage: { readonly percent: number; readonly points: readonly PolicyPoint[] };
}

export interface Comparison extends PolicyDiff {
  readonly widens: boolean;
  /** As `diff` prints it. */
  readonly lines: readonly string[];
}

/** What is wrong with a config, and what is worth a look. */
export interface CheckedConfig extends Pick<ConfigValidation, 'config'> {
  readonly problems: readonly Problem[];
  readonly notes: readonly Note[];
}

const keys = createAssumedKeys();

/** Reads, checks and compiles a config as a start does, but for the files that it names. */
export function checkConfig(text: string, values: PlaceholderValues = {}): CheckedConfig {
  const env = Object.entries(values).flatMap(([name, value]) =>
    name.startsWith('env:') ? [[name.slice('env:'.length), value] as const] : [],
  );
  const { config, problems, notes } = validateConfig(text, {
    file: configName,
    folder: '/',
    env: Object.fromEntries(env),
    readFile: (path) => {
      const value = Object.hasOwn(values, `file:${path}`) ? values[`file:${path}`] : undefined;
      return value === undefined ? refuse('files are not read here') : accept(value);
    },
  });
  return { config, problems, notes };
}

/** The placeholders of a config, each once, as `env:NAME` or `file:PATH`. */
export function placeholdersOf(text: string): readonly string[] {
  return [...new Set(placeholdersIn(text).map(({ kind, name }) => `${kind}:${name}`))];
}

/** Runs policy tests. The config that they name is not looked for: they are run on this one. */
export async function runTests(config: CompiledConfig, text: string, nowMs: number): Promise<TestRun> {
  const { suite, problems } = readSuite(text, testsName);
  const activeConfig = decisionsOf(config);
  const results = [];
  for (const policyCase of suite?.cases ?? []) results.push(await runCase(policyCase, activeConfig, keys, nowMs));
  const points = coverageOf(config.routes, results);
  return { problems, cases: results.map(caseData), coverage: { percent: percentCovered(points), points } };
}

/** Writes cases for a policy as it stands. @param name of the config's file, which they name. */
export async function draftTests(config: CompiledConfig, name: string, nowMs: number): Promise<string> {
  return (await draftSuite(name, decisionsOf(config), keys, nowMs)).text;
}

/** Says what an edit changes in effect. */
export async function compareConfigs(from: CompiledConfig, to: CompiledConfig, nowMs: number): Promise<Comparison> {
  const found = await comparePolicies({ from: decisionsOf(from), to: decisionsOf(to), keys, nowMs });
  return { ...found, widens: isWider(found), lines: diffLines(found) };
}

/** Who may do what. */
export function matrixOf(config: CompiledConfig): Access {
  return accessOf(config);
}

function decisionsOf(config: CompiledConfig): ReturnType<typeof decideOnly> {
  return decideOnly(config, keys.sourceOf, assumedSessions(config, keys));
}
