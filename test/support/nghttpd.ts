/** Real `nghttpd`, the server of nghttp2. */
import { startProgram, type Program } from './program.js';
import type { Scope } from './scope.js';

/** Runs it on this port of loopback until the test ends: without TLS where `args` has `--no-tls`. */
export function runNghttpd(t: Scope, port: number, ...args: readonly string[]): Program {
  // Its options come first, then port and, with TLS, key and certificate.
  const options = args.filter((arg) => arg.startsWith('-'));
  const files = args.filter((arg) => !arg.startsWith('-'));
  return startProgram(t, 'nghttpd', ['--address=127.0.0.1', ...options, String(port), ...files]);
}
