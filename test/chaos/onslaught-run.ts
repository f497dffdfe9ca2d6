/**
 * Every attack at once for so many seconds, 600 unless given, and what honest callers see meanwhile: `npm run onslaught
 * -- SECONDS`. A part of a name behind it leaves only the attacks with that in their name, and one behind that, or
 * several separated by `|`, leaves attacks out; with `each`, they come one after the other, and a table is printed.
 * For a machine that does nothing else.
 */
import { scoped } from '../bench/scoped.js';
import { chosenAttacks } from './onslaught-attacks.js';
import { linesOf, rowOf, tableHead, withstandAll, type Report } from './onslaught.js';

const [seconds = '600', only = '', without = ''] = process.argv.slice(2);
const restSeconds = Math.max(5, Math.min(30, Number(seconds) / 10));

async function measure(name: string): Promise<Report> {
  const report = await scoped(async (scope) =>
    withstandAll(scope, { seconds: Number(seconds), restSeconds, only: name, without }),
  );
  if (!report.lives || report.attacked.failed.length > 0) process.exitCode = 1;
  return report;
}

if (only === 'each') {
  process.stdout.write(`${tableHead.join('\n')}\n`);
  for (const { name } of chosenAttacks('', without)) process.stdout.write(`${rowOf(name, await measure(name))}\n`);
} else {
  const report = await measure(only);
  process.stdout.write(`${[...linesOf(report), ...(report.lives ? [] : [report.output])].join('\n')}\n`);
}
