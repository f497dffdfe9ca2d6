import { loadConfig } from '../../../app/config/read-config.js';
import { decideOnly } from '../../../policy-test/simulate/offline-config.js';
import type { CompiledConfig } from '../../../config/types.js';
import { createAssumedKeys, assumedSessions } from '../../../policy-test/simulate/test-keys.js';
import { diffLines } from '../../../policy-test/diff/format.js';
import { comparePolicies, isWider } from '../../../policy-test/diff/policy-diff.js';
import { inputArgument, namedConfig } from '../../config/choose.js';
import type { Io } from '../../io.js';
import { fail, failUsage } from '../../options.js';

export interface DiffOptions {
  readonly allowWidening?: true;
  readonly json?: true;
}

/** Prints what the second of two configs changes in effect. */
export async function diff(
  [before, after]: readonly [string, string],
  { allowWidening, json }: DiffOptions,
  io: Io,
): Promise<void> {
  if (before === inputArgument && after === inputArgument) {
    failUsage('diff', 'standard input is one config, and cannot be both', io);
    return;
  }
  const [old, next] = [namedConfig(before, io).source, namedConfig(after, io).source];
  // Both are versions of one config: a relative path means the same file in both, wherever the copies lie.
  const [from, to] = [await loadConfig({ ...old, folder: next.folder }, io), await loadConfig(next, io)];
  if (!from.ok) fail(from.error, io);
  else if (!to.ok) fail(to.error, io);
  if (!from.ok || !to.ok) return;
  const keys = createAssumedKeys();
  const activeConfig = (config: CompiledConfig): ReturnType<typeof decideOnly> =>
    decideOnly(config, keys.sourceOf, assumedSessions(config, keys));
  const found = await comparePolicies({
    from: activeConfig(from.value),
    to: activeConfig(to.value),
    keys,
    nowMs: Date.now(),
  });
  const widens = isWider(found);
  if (json === true) io.stdout(`${JSON.stringify({ widens, ...found })}\n`);
  else io.stdout(`${diffLines(found).join('\n')}\n`);
  io.exit(widens && allowWidening !== true ? 1 : 0);
}
