/** Commands run as processes, and configs in shadow mode for `sallyport learn`. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { validateConfig } from '../../../src/config/load/validate-config.js';
import type { CompiledConfig } from '../../../src/config/types.js';
import { refuse } from '../../../src/lib/result.js';
import { strict } from '../../policy-test/learn/log-lines.js';
import { projectDir } from '../../support/project-dir.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs it to its end. */
export function sallyport(
  cwd: string,
  args: readonly string[],
  input: string | Buffer = '',
  node: readonly string[] = [],
): Ended {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...node, join(projectDir, 'dist/main.js'), ...args], {
    cwd,
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  return { code: status, out: stdout, err: stderr };
}

export const health = { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' };
export const shadow: ConfigTree = { mode: 'shadow', receiver: strict, routes: [health] };

/** A folder with a config in shadow mode. */
export function folderWith(t: Scope, config: ConfigTree = shadow): string {
  const folder = tempDir(t);
  writeFileSync(join(folder, 'sallyport.yaml'), `# of the shop\n${baseConfig(config)}`);
  return folder;
}

/** Routes of which the report says that it does not know which permissions they need. */
export function unclearIn(report: string): readonly string[] {
  const [, list = ''] = /^not learnt: which of the permissions .*:\n((?: {2}.*\n)*)/m.exec(report) ?? [];
  return list.split('\n').flatMap((line) => (line === '' ? [] : [line.trim()]));
}

/** What a file says. */
export function compiled(file: string): CompiledConfig {
  const { config, problems } = validateConfig(readFileSync(file, 'utf8'), {
    file,
    folder: dirname(file),
    env: {},
    readFile: () => refuse('is not read here'),
  });
  if (config === null) throw new Error(JSON.stringify(problems));
  return config;
}
