import { runApache } from './apache.js';
import type { Program } from './program.js';
import type { Scope } from './scope.js';

/** Runs Apache as a reverse proxy with Debian's `mod_lua`, whose scripts use LuaSocket. */
export function runApacheLua(t: Scope, port: number, config: string, modules: readonly string[] = []): Program {
  return runApache(t, port, ['mpm_event', 'authz_core', 'proxy', 'proxy_http', 'lua', ...modules], config);
}
