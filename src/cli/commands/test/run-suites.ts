import { dirname, join } from 'node:path';
import { placeholderReader, type ConfigSource } from '../../../app/config/config-source.js';
import { loadConfig } from '../../../app/config/read-config.js';
import { decideOnly } from '../../../policy-test/simulate/offline-config.js';
import { formatProblem } from '../../../config/load/report.js';
import { createAssumedKeys, assumedSessions } from '../../../policy-test/simulate/test-keys.js';
import { coverageOf, type PolicyPoint } from '../../../policy-test/suite/coverage.js';
import { runCase, type CaseResult } from '../../../policy-test/suite/run.js';
import { readSuite, type Suite } from '../../../policy-test/suite/suite.js';
import type { Io } from '../../io.js';
import { sourceOf } from '../../config/choose.js';
import { failureLines } from '../../options.js';

/** Files of policy tests as they could be read, and the policies that they name. */
interface ReadSuites {
  /** What is wrong, one line each. */
  readonly messages: readonly string[];
  /** Whether some file could not be read at all. */
  readonly unreadable: boolean;
  readonly policies: readonly Policy[];
  /** The files and the configs, as they were read. */
  readonly sources: readonly ConfigSource[];
}

interface Policy {
  /** Path of the config, as messages name it. */
  readonly config: string;
  readonly activeConfig: ReturnType<typeof decideOnly>;
  readonly suites: readonly Suite[];
}

/** What came of a run. */
export interface SuiteRun extends Omit<ReadSuites, 'policies'> {
  readonly results: readonly CaseResult[];
  readonly coverage: readonly PolicyCoverage[];
}

export interface PolicyCoverage {
  readonly config: string;
  readonly points: readonly PolicyPoint[];
}

const keys = createAssumedKeys();

/** Reads files of policy tests and the configs that they name, each config once. */
export async function readSuites(files: readonly string[], io: Io): Promise<ReadSuites> {
  const messages: string[] = [];
  const sources: ConfigSource[] = [];
  const suites = new Map<string, Suite[]>();
  let unreadable = false;
  for (const file of files) {
    const source = sourceOf(file, io);
    sources.push(source);
    const text = await source.read();
    if (!text.ok) {
      messages.push(`error: ${file}: ${text.error}`);
      unreadable = true;
      continue;
    }
    const { suite, problems } = readSuite(text.value, file, placeholderReader(source));
    messages.push(...problems.map(formatProblem));
    if (suite === null) continue;
    const config = suite.config.startsWith('/') ? suite.config : join(dirname(file), suite.config);
    suites.set(config, [...(suites.get(config) ?? []), suite]);
  }
  const policies: Policy[] = [];
  for (const [config, own] of suites) {
    const source = sourceOf(config, io);
    sources.push(source);
    const loaded = await loadConfig(source, io);
    if (loaded.ok) {
      policies.push({
        config,
        activeConfig: decideOnly(loaded.value, keys.sourceOf, assumedSessions(loaded.value, keys)),
        suites: own,
      });
    } else {
      // Without the lines of the config: programs read these.
      messages.push(...(loaded.error.kind === 'invalid' ? loaded.error.messages : failureLines(loaded.error)));
      unreadable ||= loaded.error.kind === 'unreadable';
    }
  }
  return { messages, unreadable, policies, sources };
}

/** Decides every case. */
export async function runSuites({ policies, ...read }: ReadSuites): Promise<SuiteRun> {
  const wallMs = Date.now();
  const results: CaseResult[] = [];
  const coverage: PolicyCoverage[] = [];
  for (const { config, activeConfig, suites } of policies) {
    const own: CaseResult[] = [];
    for (const policyCase of suites.flatMap(({ cases }) => cases)) {
      own.push(await runCase(policyCase, activeConfig, keys, wallMs));
    }
    results.push(...own);
    coverage.push({ config, points: coverageOf(activeConfig.config.routes, own) });
  }
  return { ...read, results, coverage };
}
