import { Option, type Command } from 'commander';
import { numberArgument } from '../../arguments.js';
import { configVariable, defaultConfig } from '../../config/argument.js';
import { defineCommand } from '../../definition.js';
import type { Io } from '../../io.js';
import { jsonOption } from '../../options.js';
import type { TestOptions } from './run.js';

/** `sallyport test FILE…`: policy tests, run by the functions that serve. */
export function createTestCommand(io: Io): Command {
  const command = defineCommand({
    name: 'test',
    about: 'Run policy tests: requests and what is expected to become of them, decided by the code that serves.',
    examples: [
      ['write the first file', 'sallyport test --init > policy.test.yaml'],
      ['run it', 'sallyport test policy.test.yaml'],
      ['in a pipeline', 'sallyport test --min-coverage 100 --junit policy.xml policy.test.yaml'],
    ],
    notes: [
      `The files name their config. --init without one takes the file that $${configVariable} names, else ./${defaultConfig}.`,
    ],
    exitCodes: {
      0: 'all as expected',
      1: 'not so, no case, or a file with errors',
      2: 'usage, or a file cannot be read',
    },
    page: 'docs/policy-tests.md',
  });
  return command
    .argument('[files...]', 'files of policy tests')
    .option('--init [config]', 'print cases for a policy as it stands, instead of running any')
    .option('--watch', 'run again when a file or its config changes')
    .addOption(new Option('--tap', 'print TAP').conflicts('json'))
    .option('--junit <file>', 'write the results as JUnit XML, too')
    .addOption(
      new Option('--min-coverage <percent>', 'fail below this share of what the policy says')
        .argParser(numberArgument(0, 100))
        .default(0),
    )
    .addOption(jsonOption())
    .action(async (files: readonly string[], options: TestOptions) => {
      const { test } = await import('./run.js');
      await test(files, options, io);
    });
}
