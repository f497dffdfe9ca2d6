import { InvalidArgumentError, type Command } from 'commander';
import type { ListenerPlace } from '../../../config/load/listener-addresses.js';
import { configNote, takesConfig } from '../../config/argument.js';
import { defineCommand } from '../../definition.js';
import type { HealthOptions } from './run.js';
import type { Io } from '../../io.js';
import { jsonOption } from '../../options.js';

/** `sallyport health`: whether the proxy that runs is ready. */
export function createHealthCommand(io: Io): Command {
  const command = defineCommand({
    name: 'health',
    about:
      'Ask the admin or the probes listener of the running proxy whether it is ready: for container health checks.',
    examples: [
      ['the proxy that runs with this config', 'sallyport health --config /etc/sallyport/sallyport.yaml'],
      ['without a config', 'sallyport health --url http://127.0.0.1:9901'],
    ],
    notes: [
      configNote,
      'It speaks of the process that runs and not of the file, of which it reads where to ask and nothing else. What it cannot read it takes the ' +
        'defaults for, and says so: a bad edit leaves the old config in force, and makes nothing unhealthy.',
    ],
    exitCodes: {
      0: 'ready',
      1: 'not ready',
      2: 'usage, or the config says that nobody knows where the proxy listens',
      3: 'no proxy was reached',
    },
    page: 'docs/operations.md',
  });
  return takesConfig(command)
    .option('--url <url>', 'ask there instead: http://HOST:PORT', placeArgument)
    .addOption(jsonOption())
    .action(async (file: string | undefined, options: HealthOptions) => {
      const { health } = await import('./run.js');
      await health({ ...options, file }, io);
    });
}

function placeArgument(value: string): ListenerPlace {
  if (!/^http:\/\/[^/?#\\@\s]+\/?$/.test(value) || !URL.canParse(value)) {
    throw new InvalidArgumentError('Allowed: http://HOST:PORT, without a path.');
  }
  const { hostname, port } = new URL(value);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 80 : Number(port) };
}
