/** Results of policy tests for other programs: JSON, TAP 14 and JUnit's XML. */
import { stringify } from 'yaml';
import { explanationData, explanationLines, type ExplanationData } from '../explain/format.js';
import type { CaseResult } from './run.js';

/** One case and what became of it. */
export interface CaseData extends Pick<CaseResult['policyCase'], 'name' | 'file' | 'line'> {
  readonly ok: boolean;
  readonly mismatches: readonly string[];
  readonly explanation: ExplanationData;
}

/** A case as JSON has it. */
export function caseData({ policyCase: { name, file, line }, mismatches, explained }: CaseResult): CaseData {
  return { name, file, line, ok: mismatches.length === 0, mismatches, explanation: explanationData(explained) };
}

/** The Test Anything Protocol, version 14. */
export function tapReport(results: readonly CaseResult[]): string {
  const lines = results.flatMap((result, index) => [
    `${result.mismatches.length === 0 ? 'ok' : 'not ok'} ${index + 1} - ${escapeTap(result.policyCase.name)}`,
    ...(result.mismatches.length === 0 ? [] : tapDiagnosis(result)),
  ]);
  return `${['TAP version 14', `1..${results.length}`, ...lines].join('\n')}\n`;
}

/** One `testsuite` for each file. */
export function junitReport(results: readonly CaseResult[]): string {
  const files = [...new Set(results.map(({ policyCase: { file } }) => file))];
  const suites = files.map((file) =>
    junitSuite(
      file,
      results.filter(({ policyCase }) => policyCase.file === file),
    ),
  );
  const failed = failuresOf(results);
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites tests="${results.length}" failures="${failed}">\n${suites.join('')}</testsuites>\n`;
}

function tapDiagnosis({ policyCase: { file, line }, mismatches, explained }: CaseResult): readonly string[] {
  const text = stringify(
    { at: `${file}:${line}`, mismatches, explanation: explanationLines(explained) },
    { lineWidth: 0 },
  );
  return [
    '  ---',
    ...text
      .trimEnd()
      .split('\n')
      .map((each) => `  ${each}`),
    '  ...',
  ];
}

function escapeTap(text: string): string {
  return text.replace(/[\\#]/g, '\\$&').replace(/[\r\n]/g, ' ');
}

function junitSuite(file: string, results: readonly CaseResult[]): string {
  const cases = results.map(({ policyCase: { name, line }, mismatches, explained }) => {
    const start = `    <testcase classname="${escapeXml(file)}" name="${escapeXml(name)}" line="${line}"`;
    if (mismatches.length === 0) return `${start}/>\n`;
    const message = escapeXml(mismatches.join('; '));
    return `${start}>\n      <failure message="${message}">${escapeXml(explanationLines(explained).join('\n'))}</failure>\n    </testcase>\n`;
  });
  return `  <testsuite name="${escapeXml(file)}" tests="${results.length}" failures="${failuresOf(results)}">\n${cases.join('')}  </testsuite>\n`;
}

function failuresOf(results: readonly CaseResult[]): number {
  return results.filter(({ mismatches }) => mismatches.length > 0).length;
}

/** XML 1.0 has no place for controls, escaped or not. */
function escapeXml(text: string): string {
  const entities: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    '\n': '&#10;',
  };
  return text
    .replace(/[^\n\t\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '?')
    .replace(/[&<>"\n]/g, (character) => entities[character] ?? character);
}
