import { writeFailure } from '../../../lib/errors.js';
import { writeFile } from 'node:fs/promises';
import { pathIn } from '../../../lib/files.js';
import { escapeControls } from '../../../lib/text.js';
import { gapWords, percentCovered } from '../../../policy-test/suite/coverage.js';
import { explanationLines } from '../../../policy-test/explain/format.js';
import { caseData, junitReport, tapReport } from '../../../policy-test/suite/reports.js';
import type { CaseResult } from '../../../policy-test/suite/run.js';
import type { ExitCode, Io } from '../../io.js';
import type { PolicyCoverage, SuiteRun } from './run-suites.js';

interface PrintOptions {
  readonly tap?: true;
  readonly junit?: string;
  readonly minCoverage: number;
  readonly json?: true;
}

/** Prints what came of a run, and sets the exit code. */
export function printRun(run: SuiteRun, { tap, json, minCoverage }: PrintOptions, io: Io): void {
  for (const message of run.messages) io.stderr(`${message}\n`);
  const isCovered = run.coverage.every((coverage) => percentCovered(coverage.points) >= minCoverage);
  const failed = run.results.filter(({ mismatches }) => mismatches.length > 0);
  const code: ExitCode = run.unreadable ? 2 : run.messages.length > 0 || failed.length > 0 || !isCovered ? 1 : 0;
  if (json === true) io.stdout(`${JSON.stringify(runData(run, code === 0))}\n`);
  else if (tap === true) io.stdout(tapReport(run.results));
  else {
    io.stdout(
      runLines(run, failed.length, minCoverage)
        .map((line) => `${escapeControls(line)}\n`)
        .join(''),
    );
  }
  io.exit(code);
}

/** Writes the results for programs that read JUnit's XML. */
export async function junitFile(run: SuiteRun, { junit }: PrintOptions, io: Io): Promise<void> {
  if (junit === undefined) return;
  try {
    await writeFile(pathIn(io, junit), junitReport(run.results));
  } catch (error) {
    io.stderr(`error: ${junit}: ${writeFailure(error)}\n`);
    io.exit(2);
  }
}

function runLines({ results, coverage }: SuiteRun, failed: number, minCoverage: number): readonly string[] {
  return [
    ...results.flatMap(caseLines),
    `${results.length} ${results.length === 1 ? 'case' : 'cases'}, ${failed} failed`,
    ...coverage.flatMap((policy) => coverageLines(policy, minCoverage)),
  ];
}

function caseLines({ policyCase: { name, file, line }, mismatches, explained }: CaseResult): readonly string[] {
  if (mismatches.length === 0) return [`ok   ${name}`];
  return [
    `FAIL ${name} (${file}:${line})`,
    ...mismatches.map((text) => `       ${text}`),
    ...explanationLines(explained).map((text) => `     | ${text}`),
  ];
}

function coverageLines(policy: PolicyCoverage, minCoverage: number): readonly string[] {
  const percent = percentCovered(policy.points);
  const gaps = policy.points.filter(({ covered }) => !covered);
  const wanted = percent < minCoverage ? `; wanted: ${minCoverage} %` : '';
  return [
    `coverage of ${policy.config}: ${policy.points.length - gaps.length} of ${policy.points.length} (${percent} %)${wanted}`,
    ...gaps.map((gap) => `  not covered: ${gapWords(gap)}`),
  ];
}

function runData(run: SuiteRun, ok: boolean): object {
  return {
    ok,
    problems: run.messages,
    cases: run.results.map(caseData),
    coverage: run.coverage.map((policy) => ({
      config: policy.config,
      percent: percentCovered(policy.points),
      points: policy.points,
    })),
  };
}
