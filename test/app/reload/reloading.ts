/** A reloader without a proxy, which puts one config after another in force. */
import { loadComplete, type CompleteConfig } from '../../../src/app/config/load-complete.js';
import { fixedSource } from '../../../src/app/config/config-source.js';
import { createReloader, type Reloader } from '../../../src/app/reload/reload.js';
import { localFiles } from '../../../src/adapters/files/files.js';
import { systemClock } from '../../../src/adapters/system/clock.js';
import type { ApplicationRoutes } from '../../../src/config/checks/application-routes.js';
import type { CompiledConfig } from '../../../src/config/types.js';
import { accept } from '../../../src/lib/result.js';
import { silentLog } from '../../../src/ports/system.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';

type ReloadError = ReturnType<Reloader['state']>['lastError'];

/** Starts with a config and a store, and says why a further one is not taken; `null` where it is. */
export async function reloading(
  first: ConfigTree,
  application: ApplicationRoutes | null = null,
): Promise<(config: ConfigTree) => Promise<ReloadError>> {
  const reading = { env: {}, application };
  let tree = first;
  const source = fixedSource(() => Promise.resolve(accept(baseConfig({ store: { memory: {} }, ...tree }))), {
    name: 'x',
    folder: '/',
  });
  const loaded = await loadComplete(source, reading, localFiles);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.error.messages));
  let inForce = loaded.value.config;
  const none = (): void => undefined;
  const activator = {
    activeConfig: () => ({ config: inForce }),
    replace: (_: CompleteConfig, config: CompiledConfig) => {
      inForce = config;
      return Promise.resolve();
    },
  };
  const reloader = createReloader(loaded.value, activator, {
    assertions: { use: none },
    source,
    reading,
    files: localFiles,
    clock: systemClock,
    log: silentLog,
    metrics: { configReload: none },
    watchIntervalMs: undefined,
    onReplaced: none,
    useLog: none,
  });
  reloader.start();
  return async (config) => {
    tree = config;
    await reloader.reload();
    return reloader.state().lastError;
  };
}
