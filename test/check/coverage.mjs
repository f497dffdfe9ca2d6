import { existsSync, readFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { filesBelow } from './test-files.mjs';

/** What has to be covered: every line of the rules that decide, and most of the rest, no file left out. */
const required = [
  { folder: 'src/decision/', percent: 100 },
  { folder: 'src/', percent: 95 },
];

/** Reads tap's report of covered lines. */
export async function checkCoverage() {
  const report = '.tap/report/coverage-summary.json';
  if (!existsSync(report)) return { held: false, output: 'no coverage was measured' };
  const lines = new Map(
    Object.entries(JSON.parse(readFileSync(report, 'utf8')))
      .filter(([file]) => file !== 'total')
      .map(([file, summary]) => [relative(resolve('.'), file), summary.lines]),
  );
  const sources = filesBelow('src').filter((file) => file.endsWith('.ts') && hasCode(file));
  const untouched = sources.filter((file) => !lines.has(file)).map((file) => `${file}: no test loads it`);
  const short = required.flatMap(({ folder, percent }) => {
    const covered = sources.filter((file) => file.startsWith(folder) && lines.has(file)).map((file) => ({ file, ...lines.get(file) }));
    const total = sum(covered, 'total');
    const share = total === 0 ? 100 : (100 * sum(covered, 'covered')) / total;
    console.log(`       ${folder.padEnd(14)} ${share.toFixed(1)} % of ${total} lines, ${percent} % required`);
    if (share >= percent) return [];
    const worst = covered.filter((row) => row.pct < percent).sort((a, b) => a.pct - b.pct);
    return [`${folder} has less than ${percent} %:`, ...worst.map((row) => `  ${row.file}: ${row.pct} % of ${row.total}`)];
  });
  return { held: untouched.length + short.length === 0, output: [...untouched, ...short].join('\n') };
}

/** Files of types only compile to nothing that could run. */
function hasCode(file) {
  const compiled = readFileSync(`.build/${file.replace(/\.ts$/, '.js')}`, 'utf8');
  return compiled.replace(/\/\*[\s\S]*?\*\/|\/\/.*|export \{\};/g, '').trim() !== '';
}

function sum(rows, field) {
  return rows.reduce((total, row) => total + row[field], 0);
}
