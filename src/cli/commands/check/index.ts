import type { Command } from 'commander';
import type { CheckOptions } from './run.js';
import { configNote, takesConfig } from '../../config/argument.js';
import { defineCommand } from '../../definition.js';
import type { Io } from '../../io.js';
import { jsonOption } from '../../options.js';

function collect(file: string, files: readonly string[] = []): readonly string[] {
  return [...files, file];
}

/** `sallyport check FILE`: every problem of a config at once, on standard output. */
export function createCheckCommand(io: Io): Command {
  const command = defineCommand({
    name: 'check',
    about:
      'Say everything that is wrong with a config, each with its line: FILE:LINE:COLUMN: error|warning: what; allowed: what would be right.',
    examples: [
      ['the config of this folder', 'sallyport check'],
      ['in a pipeline: warnings fail, too', 'sallyport check --strict sallyport.yaml'],
      ['what was copied to a host: whole?', 'sallyport check --end-marker /etc/sallyport/sallyport.yaml'],
      ['what another program writes', 'envsubst < template.yaml | sallyport check -'],
      ['against the services behind it', 'sallyport check --proto shop/v1/orders.proto'],
    ],
    notes: ['Notes and the last line, which counts, go to standard error.', configNote],
    exitCodes: { 0: 'no error', 1: 'an error, or with --strict a warning', 2: 'usage, or the file cannot be read' },
    page: 'docs/configuration.md',
  });
  return takesConfig(command)
    .option('--strict', 'count warnings as errors')
    .option('--end-marker', 'ask for the line ... at the end, which says that the file is whole')
    .option(
      '--proto <file>',
      'a .proto, or a binary descriptor set, of the services behind: names methods without a route, routes of what does not exist, and reserved streams; may be repeated',
      collect,
    )
    .addOption(jsonOption())
    .action(async (file: string | undefined, options: CheckOptions) => {
      const { check } = await import('./run.js');
      await check({ ...options, file }, io);
    });
}
