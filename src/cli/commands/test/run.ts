import type { Io } from '../../io.js';
import { failUsage } from '../../options.js';
import { initSuite } from './init.js';
import { readSuites, runSuites, type SuiteRun } from './run-suites.js';
import { junitFile, printRun } from './print.js';
import { watchSuites } from './watch.js';

export interface TestOptions {
  /** `true` where no file is named. */
  readonly init?: string | true;
  readonly watch?: true;
  readonly tap?: true;
  readonly junit?: string;
  readonly minCoverage: number;
  readonly json?: true;
}

/** Runs policy tests, or writes some. */
export async function test(files: readonly string[], options: TestOptions, io: Io): Promise<void> {
  if ((options.init === undefined) === (files.length === 0)) {
    failUsage('test', 'test needs either files of policy tests, or --init with a config', io);
    return;
  }
  if (options.init !== undefined) {
    await initSuite(options.init === true ? {} : { config: options.init }, io);
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
