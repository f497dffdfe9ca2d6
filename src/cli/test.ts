import { Command, InvalidArgumentError, Option } from 'commander';
import type { Io } from './io.js';
import { jsonOption } from './options.js';
import { initSuite } from './test-init.js';
import { readSuites, runSuites, type SuiteRun } from './test-run.js';
import { junitFile, printRun } from './test-print.js';
import { watchSuites } from './test-watch.js';

export interface TestOptions {
  readonly init?: string;
  readonly watch?: true;
  readonly tap?: true;
  readonly junit?: string;
  readonly minCoverage: number;
  readonly json?: true;
}

/** `sallyport test FILE…`: policy tests, run by the functions that serve. */
export function createTestCommand(io: Io): Command {
  return new Command('test')
    .description('Run policy tests: requests and what is expected to become of them, decided by the code that serves.')
    .argument('[files...]', 'files of policy tests')
    .option('--init <config>', 'print cases for a policy as it stands, instead of running any')
    .option('--watch', 'run again when a file or its config changes')
    .addOption(new Option('--tap', 'print TAP').conflicts('json'))
    .option('--junit <file>', 'write the results as JUnit XML, too')
    .addOption(new Option('--min-coverage <percent>', 'fail below this share of what the policy says').argParser(percentArgument).default(0))
    .addOption(jsonOption())
    .addHelpText('after', '\nThe format of the files: docs/policy-tests.md.\n'
      + 'Exit code: 0 all as expected, 1 not so, no case, or a file with errors, 2 usage, or a file that cannot be read.')
    .action((files: readonly string[], options: TestOptions) => test(files, options, io));
}

function percentArgument(value: string): number {
  const percent = /^\d{1,3}$/.test(value) ? Number(value) : Number.NaN;
  if (percent <= 100) return percent;
  throw new InvalidArgumentError('Allowed: a whole number from 0 to 100.');
}

async function test(files: readonly string[], options: TestOptions, io: Io): Promise<void> {
  if ((options.init === undefined) === (files.length === 0)) {
    io.stderr('test needs either files of policy tests, or --init with a config\n');
    io.exit(2);
    return;
  }
  if (options.init !== undefined) {
    await initSuite(options.init, io);
    return;
  }
  const once = async (): Promise<SuiteRun> => {
    const suites = await readSuites(files, io);
    const run = await runSuites(suites);
    printRun(run, options, io);
    await junitFile(run, options, io);
    return run;
  };
  const first = await once();
  if (options.watch === true) await watchSuites(first, once, io);
}
