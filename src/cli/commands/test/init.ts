import { decideOnly } from '../../../policy-test/simulate/offline-config.js';
import { createAssumedKeys, assumedSessions } from '../../../policy-test/simulate/test-keys.js';
import { draftSuite } from '../../../policy-test/suite/draft-suite.js';
import { loadChosen } from '../../config/load.js';
import type { ConfigArguments } from '../../config/argument.js';
import type { Io } from '../../io.js';
import { fail, failUsage } from '../../options.js';

/** Prints cases that hold for a config as it stands. */
export async function initSuite(named: ConfigArguments, io: Io): Promise<void> {
  const loaded = await loadChosen(named, io);
  if (!loaded.ok) {
    fail(loaded.error, io);
    return;
  }
  const { config, name, path } = loaded.value;
  if (path === null) {
    failUsage('test', '--init needs a file: the cases name the config that they are for', io);
    return;
  }
  const keys = createAssumedKeys();
  const activeConfig = decideOnly(config, keys.sourceOf, assumedSessions(config, keys));
  const { text, unreached } = await draftSuite(name, activeConfig, keys, Date.now());
  io.stdout(
    `# Written by sallyport test --init: what the policy decides as it stands. Read it, and change what should not be so.\n${text}`,
  );
  for (const name of unreached) io.stderr(`route ${name}: no request reaches it\n`);
  io.exit(0);
}
