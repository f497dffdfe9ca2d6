import type { Command } from 'commander';
import { defineCommand } from '../definition.js';
import type { Io } from '../io.js';

/** `sallyport schema`: the config's schema, for editors. */
export function createSchemaCommand(io: Io): Command {
  return defineCommand({
    name: 'schema',
    about:
      'Print the JSON Schema of the config, with which editors complete its keys and check it while it is written.',
    examples: [['a schema beside the config', 'sallyport schema > sallyport.schema.json']],
    notes: [
      'Begin the config with `# yaml-language-server: $schema=./sallyport.schema.json`, so that editors find it.',
    ],
    exitCodes: { 0: 'always', 2: 'usage' },
    page: 'docs/configuration.md',
  }).action(async () => {
    const { shippedSchema } = await import('../../config/docs/json-schema.js');
    io.stdout(`${JSON.stringify(shippedSchema(), null, 2)}\n`);
  });
}
