import { loadConfig } from '../app/config-source.js';
import { decideOnly } from '../app/policy-in-force.js';
import { createAssumedKeys } from '../policy-test/assumed-keys.js';
import { assumedSessions } from '../policy-test/assumed-sessions.js';
import { draftSuite } from '../policy-test/drafts.js';
import type { Io } from './io.js';
import { fail, sourceOf } from './options.js';

/** Prints cases that hold for a config as it stands. */
export async function initSuite(config: string, io: Io): Promise<void> {
  const loaded = await loadConfig(sourceOf(config, io), io.env);
  if (!loaded.ok) {
    fail(loaded.error, io);
    return;
  }
  const keys = createAssumedKeys();
  const inForce = decideOnly(loaded.value, () => keys.source, assumedSessions(loaded.value, keys));
  const { text, unreached } = await draftSuite(config, inForce, keys, Date.now());
  io.stdout(`# Written by sallyport test --init: what the policy decides as it stands. Read it, and change what should not be so.\n${text}`);
  for (const name of unreached) io.stderr(`route ${name}: no request reaches it\n`);
  io.exit(0);
}
