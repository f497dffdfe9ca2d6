/** Real `gcc`. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Makes a shared library of a C source in this folder, and names it. Throws what the compiler says where it fails. */
export function compileLibrary(dir: string, name: string, source: string): string {
  const [from, to] = [join(dir, `${name}.c`), join(dir, `${name}.so`)];
  writeFileSync(from, source);
  execFileSync('gcc', ['-shared', '-fPIC', '-O2', '-o', to, from], { stdio: ['ignore', 'ignore', 'pipe'] });
  return to;
}
