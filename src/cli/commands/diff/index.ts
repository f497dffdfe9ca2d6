import type { Command } from 'commander';
import { defineCommand } from '../../definition.js';
import type { DiffOptions } from './run.js';
import type { Io } from '../../io.js';
import { jsonOption } from '../../options.js';

/** `sallyport diff OLD NEW`: what a policy edit changes in effect. */
export function createDiffCommand(io: Io): Command {
  const command = defineCommand({
    name: 'diff',
    about:
      'Say what an edit changes in effect: who gains and who loses which operation, decided by the code that serves.',
    examples: [
      ['two files', 'sallyport diff sallyport.yaml next.yaml'],
      [
        'what was committed, and what stands there now',
        'git show HEAD:sallyport.yaml | sallyport diff - sallyport.yaml',
      ],
    ],
    notes: [
      'Lines that begin with "!" let through more, or guard less, than before.',
      'Relative paths in both start from the folder of NEW, so that they mean the same files.',
    ],
    exitCodes: {
      0: 'access does not widen',
      1: 'it does, or a config has errors',
      2: 'usage, or a file cannot be read',
    },
    page: 'docs/policy-tests.md#diff',
  });
  return command
    .argument('<old>', 'the config as it was; - is standard input')
    .argument('<new>', 'the config as it will be; - is standard input')
    .option('--allow-widening', 'exit with 0 though access widens')
    .addOption(jsonOption())
    .action(async (before: string, after: string, options: DiffOptions) => {
      const { diff } = await import('./run.js');
      await diff([before, after], options, io);
    });
}
