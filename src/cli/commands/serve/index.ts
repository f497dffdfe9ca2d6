import type { Command } from 'commander';
import { configNote, takesConfig } from '../../config/argument.js';
import { defineCommand } from '../../definition.js';
import type { Io } from '../../io.js';
import type { ServeOptions } from './run.js';

/** `sallyport serve FILE`: runs the proxy until a signal ends it. */
export function createServeCommand(io: Io): Command {
  const command = defineCommand({
    name: 'serve',
    about: 'Run the proxy. It logs JSON lines on standard output.',
    examples: [
      ['with the config of this folder', 'sallyport serve'],
      ['with another one', 'sallyport serve --config /etc/sallyport/sallyport.yaml'],
    ],
    notes: [
      configNote,
      'The config is read again when it changes, and at SIGHUP; one that is wrong leaves the old one in force. SIGTERM and SIGINT let requests ' +
        'under way end; a second one does not wait for them.',
    ],
    exitCodes: {
      0: 'stopped by a signal (130 or 143 by a second one)',
      1: 'the config or a certificate is wrong',
      2: 'usage, or a file cannot be read',
      3: 'an address cannot be had, or something needed is out of reach',
    },
    page: 'docs/operations.md',
  });
  return takesConfig(command, 'the config').action(async (file: string | undefined, options: ServeOptions) => {
    const { serve } = await import('./run.js');
    await serve({ ...options, file }, io);
  });
}
