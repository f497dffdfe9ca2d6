import { Command } from 'commander';
import { loadConfig } from '../app/config-source.js';
import { decideOnly } from '../app/policy-in-force.js';
import type { CompiledConfig } from '../config/compiled.js';
import { createAssumedKeys } from '../policy-test/assumed-keys.js';
import { assumedSessions } from '../policy-test/assumed-sessions.js';
import { diffLines } from '../policy-test/diff-text.js';
import { comparePolicies, isWider } from '../policy-test/policy-diff.js';
import type { Io } from './io.js';
import { fail, jsonOption, sourceOf } from './options.js';

interface Options {
  readonly allowWidening?: true;
  readonly json?: true;
}

/** `sallyport diff OLD NEW`: what a policy edit changes in effect. */
export function createDiffCommand(io: Io): Command {
  return new Command('diff')
    .description('Say what an edit changes in effect: who gains and who loses which operation, decided by the code that serves.')
    .argument('<old>', 'the config as it was')
    .argument('<new>', 'the config as it will be')
    .option('--allow-widening', 'exit with 0 though access widens')
    .addOption(jsonOption())
    .addHelpText('after', '\nLines that begin with `!` let through more, or guard less, than before.\n'
      + 'Exit code: 0 access does not widen, 1 it does, or a config has errors, 2 a file cannot be read.')
    .action((before: string, after: string, options: Options) => diff([before, after], options, io));
}

async function diff([before, after]: readonly [string, string], { allowWidening, json }: Options, io: Io): Promise<void> {
  const [from, to] = [await loadConfig(sourceOf(before, io), io.env), await loadConfig(sourceOf(after, io), io.env)];
  if (!from.ok) fail(from.error, io);
  else if (!to.ok) fail(to.error, io);
  if (!from.ok || !to.ok) return;
  const keys = createAssumedKeys();
  const inForce = (config: CompiledConfig): ReturnType<typeof decideOnly> => decideOnly(config, () => keys.source, assumedSessions(config, keys));
  const found = await comparePolicies({ from: inForce(from.value), to: inForce(to.value), keys, nowMs: Date.now() });
  const widens = isWider(found);
  if (json === true) io.stdout(`${JSON.stringify({ widens, ...found })}\n`);
  else io.stdout(`${diffLines(found).join('\n')}\n`);
  io.exit(widens && allowWidening !== true ? 1 : 0);
}
