/** The calling side's part of a config, as the way of a request reads it. */
import type { CompiledConfig, EgressSettings } from '../../config/types.js';

/**
 * Returns the config that the calling side's listener serves by: its targets are the routes, open to whoever reaches
 * it, and nothing that the other side asks of callers holds.
 */
export function servingConfig(config: CompiledConfig, { listen, table, targets }: EgressSettings): CompiledConfig {
  return {
    ...config,
    listen,
    table,
    routes: table.routes,
    upstream: {
      ...config.upstream,
      url: 'http://localhost',
      host: 'upstream',
      beginsTrace: true,
      stripFields: [],
      passFields: [],
      idleTimeoutMs: Math.max(...targets.map(({ upstream }) => upstream.idleTimeoutMs)),
    },
    unmatched: null,
    assertion: null,
    sessions: null,
    issuers: [],
    tokenCacheBytes: null,
  };
}
