import { InvalidArgumentError, Option, type Command } from 'commander';
import { readUrl } from '../../../config/schema/addresses.js';
import { configNote, takesConfig } from '../../config/argument.js';
import { defineCommand } from '../../definition.js';
import type { DoctorOptions } from './run.js';
import type { Io } from '../../io.js';
import { jsonOption } from '../../options.js';

/** `sallyport doctor FILE`: looks at everything that the proxy needs, and says how to mend what is wrong. */
export function createDoctorCommand(io: Io): Command {
  const command = defineCommand({
    name: 'doctor',
    about:
      'Look at what the config needs: keys of each issuer, clock, upstream and ways past the proxy, settings of proxies that ask, Redis, certificates, file modes. ' +
      'One line each: "ok|warning|problem: what; fix: ...".',
    examples: [
      ['where the proxy will run', 'sallyport doctor sallyport.yaml'],
      ['and the proxy that asks it', 'sallyport doctor sallyport.yaml --front http://127.0.0.1:8080'],
      ['what is wrong, for a program', 'sallyport doctor --json | jq \'.findings[] | select(.level == "problem")\''],
    ],
    notes: [configNote],
    exitCodes: {
      0: 'no problem',
      1: 'a problem',
      2: 'usage, or the config cannot be read',
      3: 'something is out of reach',
    },
    page: 'docs/operations.md',
  });
  return takesConfig(command)
    .addOption(
      new Option(
        '--front <url>',
        'where clients reach the proxy that asks a decide listener: it is asked for each protected route, by GET and without a credential',
      ).argParser(originArgument),
    )
    .addOption(jsonOption())
    .action(async (file: string | undefined, options: DoctorOptions) => {
      const { doctor } = await import('./run.js');
      await doctor({ ...options, file }, io);
    });
}

/** Takes `http://host:port` or `https://host`, and nothing behind it. */
function originArgument(text: string): string {
  const url = readUrl(text);
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && (text === url.origin || text === `${url.origin}/`);
  if (!isOrigin) throw new InvalidArgumentError('Allowed: http:// or https://, a host and a port, and no path.');
  return url.origin;
}
