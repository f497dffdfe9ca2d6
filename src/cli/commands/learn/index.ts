import { Option, type Command } from 'commander';
import { defaultTerms, maxTermValues } from '../../../policy-test/learn/terms.js';
import { numberArgument } from '../../arguments.js';
import { configNote } from '../../config/argument.js';
import { defineCommand } from '../../definition.js';
import type { Io } from '../../io.js';
import { jsonOption } from '../../options.js';
import type { LearnOptions } from './run.js';

const maxCount = 1_000_000;

/** `sallyport learn LOG… --config FILE`: proposes a policy from what shadow mode wrote down. */
export function createLearnCommand(io: Io): Command {
  const command = defineCommand({
    name: 'learn',
    about:
      'Propose routes, subjects and permissions from the log of shadow mode: what verified callers did, often enough. Nothing is put in force.',
    examples: [
      ['look at what would be proposed', 'sallyport learn sallyport.log --config sallyport.yaml'],
      ['write the policy, its tests and the diff', 'sallyport learn *.log.gz --config sallyport.yaml --out learnt'],
      ['from a cluster', 'kubectl logs deploy/orders | sallyport learn - --config orders.yaml'],
    ],
    notes: [
      'Files may be compressed by gzip, whatever their names. Give it the lines of Sallyport alone: another program in the same file could write lines that look like its own.',
      configNote.replace('FILE or ', ''),
    ],
    exitCodes: {
      0: 'done',
      1: 'a config has errors, or check --strict does not accept what was written',
      2: 'usage, or a file cannot be read or written',
    },
    page: 'docs/learn.md',
  });
  return command
    .argument('<logs...>', 'logs of shadow mode; - is standard input')
    .option('--config <file>', 'the config that wrote them')
    .option('--out <folder>', 'write learnt.yaml, learnt.test.yaml, learnt.diff and learnt.txt into this folder')
    .addOption(
      new Option('--min-count <number>', 'requests of one caller that worked, before it is learnt')
        .argParser(numberArgument(1, maxCount))
        .default(defaultTerms.minCount),
    )
    .addOption(
      new Option('--min-days <number>', 'days on which they came')
        .argParser(numberArgument(1, maxTermValues))
        .default(defaultTerms.minDays),
    )
    .addOption(
      new Option('--min-values <number>', 'different values of a segment, before it becomes {id}')
        .argParser(numberArgument(2, maxTermValues))
        .default(defaultTerms.minValues),
    )
    .addOption(jsonOption())
    .action(async (logs: readonly string[], options: LearnOptions) => {
      const { learn } = await import('./run.js');
      await learn(logs, options, io);
    });
}
