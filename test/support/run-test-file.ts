import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Test } from 'tap';
import { projectDir } from './project-dir.js';

/**
 * Runs a compiled test file by itself, which has to pass. Returns what it printed.
 *
 * @param file below `.build/test`.
 * @param env what is set beside this process's own environment.
 */
export async function runTestFile(t: Test, file: string, env: Readonly<Record<string, string>>): Promise<string> {
  const child = spawn(process.execPath, [join(projectDir, '.build/test', file)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env, TAP: '1', TAP_TIMEOUT: '240' },
  });
  t.teardown(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  t.equal(code, 0, code === 0 ? file : `${file}\n${output}`);
  return output;
}
