/**
 * Everything at once to reserved writes over two proxies for so many seconds, 1,800 unless given: `npm run upheaval --
 * SECONDS`. A part of a name behind it leaves only the disturbances with that in their name. Exit code 1 where
 * something was violated and nobody told.
 */
import { scoped } from '../bench/scoped.js';
import { isOrphan, isTold, linesOf, upheave } from './upheaval.js';

const [seconds = '1800', only = ''] = process.argv.slice(2);
const report = await scoped(async (scope) => upheave(scope, { seconds: Number(seconds), only }));
process.stdout.write(`${linesOf(report).join('\n')}\n`);
if (!report.breaches.every((breach) => isTold(breach) || isOrphan(breach))) process.exitCode = 1;
