import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Test } from 'tap';
import { projectDir } from '../support/project-dir.js';

interface Compared {
  readonly passed: number;
  readonly refused: number;
  readonly allowed: number;
}

/** Runs files of this folder with a proxy in shadow mode beside each of theirs; every request is held against it. */
export async function checkInShadow(t: Test, names: readonly string[]): Promise<Compared> {
  const sum = { passed: 0, refused: 0, allowed: 0 };
  for (const name of names) {
    const child = spawn(process.execPath, [join(projectDir, '.build/test/conformance', `${name}.test.js`)], {
      stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, SALLYPORT_SHADOW_MIRROR: '1', TAP: '1', TAP_TIMEOUT: '240' },
    });
    t.teardown(() => child.kill('SIGKILL'));
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const [code] = await once(child, 'close') as [number | null];
    const compared = JSON.parse(/^# shadow-mirror (.*)$/m.exec(output)?.[1] ?? 'null') as Compared | null;
    t.equal(code, 0, `${name}: ${JSON.stringify(compared)}${code === 0 ? '' : `\n${output}`}`);
    sum.passed += compared?.passed ?? 0;
    sum.refused += compared?.refused ?? 0;
    sum.allowed += compared?.allowed ?? 0;
  }
  return sum;
}
