import { spawnSync } from 'node:child_process';

/**
 * The Python that has these modules: what is on the PATH, or else the system's own, which Debian's packages are for.
 */
export function pythonWith(...modules: readonly string[]): string {
  const [first, second] = ['python3', '/usr/bin/python3'];
  return spawnSync(first, ['-c', `import ${modules.join(', ')}`], { stdio: 'ignore' }).status === 0 ? first : second;
}
