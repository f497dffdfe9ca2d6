/** Go with its own server. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startUpstreamProcess } from './upstream-process.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

/** Compiles this program and runs it with `127.0.0.1:PORT` as its argument. */
export async function startGo(t: Scope, text: string, env: Readonly<Record<string, string>>): Promise<number> {
  const folder = tempDir(t);
  const [source, program] = [join(folder, 'service.go'), join(folder, 'service')];
  writeFileSync(source, text);
  execFileSync('go', ['build', '-o', program, source], {
    stdio: 'pipe',
    env: { ...process.env, GOCACHE: join(folder, 'cache'), GO111MODULE: 'off' },
  });
  return startUpstreamProcess(t, { command: program, args: (address) => [address], env });
}
