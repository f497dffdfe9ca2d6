import type { Command } from 'commander';
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
      'Look at what the config needs: keys of each issuer, clock, receiving service and ways past the proxy, Redis, certificates, file modes. ' +
      'One line each: "ok|warning|problem: what; fix: ...".',
    examples: [
      ['where the proxy will run', 'sallyport doctor sallyport.yaml'],
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
    .addOption(jsonOption())
    .action(async (file: string | undefined, options: DoctorOptions) => {
      const { doctor } = await import('./run.js');
      await doctor({ ...options, file }, io);
    });
}
