/** Puma, which runs Rack programs and Rails. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startUpstreamProcess } from './upstream-process.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

/** Runs a `config.ru` with this text, with 16 threads. */
export async function startPuma(t: Scope, text: string, env: Readonly<Record<string, string>>): Promise<number> {
  const folder = tempDir(t);
  const file = join(folder, 'config.ru');
  writeFileSync(file, text);
  return startUpstreamProcess(t, {
    command: 'puma',
    args: (address) => [
      '--quiet',
      '--environment',
      'production',
      '--dir',
      folder,
      '--threads',
      '16:16',
      '--bind',
      `tcp://${address}`,
      file,
    ],
    env,
  });
}
