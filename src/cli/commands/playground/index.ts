import type { Command } from 'commander';
import { defineCommand } from '../../definition.js';
import type { Io } from '../../io.js';
import type { PlaygroundOptions } from './run.js';

/** `sallyport playground --out FILE`: a page to try a policy in. */
export function createPlaygroundCommand(io: Io): Command {
  const command = defineCommand({
    name: 'playground',
    about:
      'Write one HTML file in which a policy is edited and tried: the code that decides and the policy tests are in it. It needs no server.',
    examples: [
      ['with an example in it', 'sallyport playground --out playground.html'],
      ['with a config and its tests', 'sallyport playground --out orders.html --config orders.yaml --tests test.yaml'],
    ],
    notes: [
      'Whoever has the page has the config and the tests that were put into it. Keys, certificates and secrets that a config names are not read; one in which a secret itself stands is refused.',
    ],
    exitCodes: {
      0: 'the page is written',
      1: 'a secret stands in the config',
      2: 'usage, or a file cannot be read or written',
    },
    page: 'docs/playground.md',
  });
  return command
    .requiredOption('--out <file>', 'where to write the page; - is standard output')
    .option('--config <file>', 'a config to begin with, sound or not; - is standard input')
    .option('--tests <file>', 'policy tests to begin with')
    .action(async (options: PlaygroundOptions) => {
      const { playground } = await import('./run.js');
      await playground(options, io);
    });
}
