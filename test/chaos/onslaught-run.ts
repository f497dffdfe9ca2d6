/**
 * Every attack at once for so many seconds, 600 unless given, and what honest callers see meanwhile: `npm run onslaught
 * -- SECONDS`. A part of a name behind it leaves only the attacks with that in their name. For a machine that does
 * nothing else.
 */
import { scoped } from '../bench/scoped.js';
import { linesOf, withstandAll } from './onslaught.js';

const [seconds = '600', only = ''] = process.argv.slice(2);
const restSeconds = Math.max(5, Math.min(30, Number(seconds) / 10));
const report = await scoped(async (scope) => withstandAll(scope, { seconds: Number(seconds), restSeconds, only }));
process.stdout.write(`${[...linesOf(report), ...(report.lives ? [] : [report.output])].join('\n')}\n`);
if (!report.lives || report.attacked.failed.length > 0) process.exitCode = 1;
