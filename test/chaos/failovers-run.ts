/**
 * Prints what each kind of fail-over costs, as the table of docs/storage.md: `npm run failovers -- FAIL-OVERS`, 3 of
 * each unless given. A part of a name behind it leaves only the rows with that in them. For a machine that does nothing
 * else; some ten minutes.
 */
import { scoped } from '../bench/scoped.js';
import { failoverCases } from './failover-deployments.js';
import { measureFailovers } from './failovers.js';

const [count = '3', only = ''] = process.argv.slice(2);
const print = (line: string): void => void process.stdout.write(`${line}\n`);

print(
  '| Redis | `replicas` | how | fail-overs | writes | ran twice | duplicates counted | lost counted | offered again | 503 for, s |',
);
print('| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
for (const row of failoverCases.filter(({ topology, how }) => `${topology} ${how}`.includes(only))) {
  const cost = await scoped(async (scope) => measureFailovers(scope, row, Number(count)));
  const seconds = cost.secondsOf503.map((value) => value.toFixed(1)).join(', ');
  const numbers = [cost.failovers, cost.writes, cost.ranTwice, cost.duplicates, cost.lost, cost.offeredAgain];
  print(`| ${row.topology} | ${String(row.replicas)} | ${row.how} | ${numbers.map(String).join(' | ')} | ${seconds} |`);
  for (const [told, times] of cost.oddRetries) process.stderr.write(`  ${told}: ${String(times)}\n`);
  if (cost.ranTwice > cost.duplicates) process.exitCode = 1;
}
