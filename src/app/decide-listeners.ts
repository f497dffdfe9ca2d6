/** The decide listeners, on which proxies ask for decisions, while they run. */
import type { DecideSettings } from '../config/types.js';
import { askedConfig, type ActiveConfig } from '../proxy/auth/active-config.js';
import type { ProxyServer } from '../proxy/server.js';

export interface RunningDecideListener {
  readonly settings: DecideSettings;
  readonly server: ProxyServer;
}

type ActiveConfigOf = () => ActiveConfig;

/**
 * Builds a server for each listener. Each decides by the config in force, with what its own settings say of it.
 *
 * @param activeConfig what the sidecar decides by.
 */
export function openDecideListeners(
  all: readonly DecideSettings[],
  activeConfig: ActiveConfigOf,
  createServer: (settings: DecideSettings, activeConfig: ActiveConfigOf) => ProxyServer,
): readonly RunningDecideListener[] {
  return all.map((settings) => ({ settings, server: createServer(settings, configOf(settings, activeConfig)) }));
}

/** Works out what a listener decides by, once for each config. */
function configOf({ accepts }: DecideSettings, activeConfig: ActiveConfigOf): ActiveConfigOf {
  let last: { readonly from: ActiveConfig; readonly own: ActiveConfig } | null = null;
  return () => {
    const from = activeConfig();
    if (last?.from !== from) last = { from, own: askedConfig(from, accepts.has('assertion')) };
    return last.own;
  };
}
