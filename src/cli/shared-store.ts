import { waitUntil } from '../lib/promises.js';
import { silentLog } from '../ports/system.js';
import { localFiles } from '../adapters/files/files.js';
import { startFailure, type StartFailure } from '../app/start-failure.js';
import { loadStore, openStore, readStoreFiles, type OpenStore } from '../app/store/store.js';
import type { RedisStoreSettings, StoreSettings } from '../config/types.js';
import { escapeControls } from '../lib/text.js';
import { accept, refuse, type Result } from '../lib/result.js';
import type { StoreFailure, StorePart } from '../ports/idempotency.js';
import type { Io } from './io.js';
import { fail } from './options.js';

/** How long the store may take to be there, and to answer, milliseconds: an operator waits longer than a caller. */
const reachWithinMs = 3_000;

/** So long the whole store may take: a slot of a Cluster that is handed over is asked for at two of its parts. */
const wholeWithinMs = 500;

const replyWithinMs = 5_000;

/**
 * Opens the store of a config for an operator. It may be unfit, and lack replicas: what operators do makes nothing
 * worse. How many replicas the config asks for is told all the same. Other parts of a Cluster than the one that the
 * command is about may be away.
 *
 * @param otherwise what a store in the memory of the proxy means for the command, in words that follow the config's
 *   name.
 */
export async function openSharedStore(
  settings: StoreSettings | null,
  configFile: string,
  otherwise: string,
  part: StorePart,
): Promise<Result<OpenStore, StartFailure>> {
  if (settings === null) return refuse(startFailure('unreadable', `${configFile} configures no store`));
  if (settings.kind === 'memory') return refuse(startFailure('unreadable', `${configFile} ${otherwise}`));
  const files = await readStoreFiles(settings, localFiles);
  if (!files.ok) return files;
  const lenient: RedisStoreSettings = { ...settings, replicas: 0, durability: 'none', settleTimeoutMs: replyWithinMs };
  const opened = openStore(await loadStore(lenient), () => files.value.ca, {
    log: silentLog,
    maxTokenLifetimeMs: () => 0,
    looksOn: true,
  });
  await waitUntil(() => opened.store.problemOf('all') === null, wholeWithinMs);
  if (await waitUntil(() => opened.store.problemOf(part) === null, reachWithinMs)) {
    return accept({ ...opened, replicas: settings.replicas });
  }
  // Once it is closed, it knows no more why.
  const problem = opened.store.problemOf(part);
  await opened.store.close();
  return refuse(startFailure('unavailable', `the store is out of reach: ${problem ?? 'no answer'}`));
}

/**
 * Says that the store did not do what it was asked.
 *
 * @param lookWith what shows whether it did all the same; `null` where it was only asked, which changes nothing.
 */
export function failStore({ kind, reason, mayHaveRun }: StoreFailure, lookWith: string | null, io: Io): void {
  if (kind === 'full') {
    fail(startFailure('invalid', reason), io);
    return;
  }
  const said = kind === 'refused' ? 'the store did not do it' : 'the store gave no answer';
  const doubt = mayHaveRun && lookWith !== null ? `; it may have taken effect: look with ${lookWith}` : '';
  fail(startFailure('unavailable', escapeControls(`${said}: ${reason}${doubt}`)), io);
}
