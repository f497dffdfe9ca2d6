/** What is told of a bug that ends the process. */
import t from 'tap';
import { startCommand } from './started-command.js';

/** An error that nobody takes, thrown while the command is being loaded. */
function throwing(error: string): Readonly<Record<string, string>> {
  const late = `process.on('newListener', (event) => {
    if (event === 'uncaughtException') setImmediate(function late() { throw ${error}; });
  })`;
  return { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(late)}"` };
}

const cases = [
  { error: "new RangeError('too far')", told: /^error: too far \(RangeError at Immediate\.late .*\)\n$/ },
  { error: 'new RangeError()', told: /^error: RangeError \(RangeError at Immediate\.late .*\)\n$/ },
  { error: "'text'", told: /^error: string\n$/ },
];

for (const { error, told } of cases) {
  t.test(`${error} is told with its place, and the process ends`, async (t) => {
    const command = startCommand(t, ['mint', 'curl'], throwing(error));
    const { code } = await command.exited;
    t.equal(code, 1);
    t.match(command.stderr(), told);
  });
}
