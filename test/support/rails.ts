/** Rails on Puma: a Rack program as others are, with more to install. */
import { startPuma } from './puma.js';
import type { Scope } from './scope.js';

/** Runs a `config.ru` with this text, with 16 threads. */
export async function startRails(t: Scope, text: string, env: Readonly<Record<string, string>>): Promise<number> {
  return startPuma(t, text, env);
}
