/** Django, Flask and plain WSGI, and the servers that they run on. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pythonWith } from './python-modules.js';
import { startUpstreamProcess } from './upstream-process.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

/** Runs `application` of a module with this text, with 16 threads. */
export async function startGunicorn(t: Scope, text: string, env: Readonly<Record<string, string>>): Promise<number> {
  const threads = ['--worker-class', 'gthread', '--threads', '16', '--keep-alive', '75', '--log-level', 'critical'];
  return startPythonServer(t, text, env, (address) => [
    '-m',
    'gunicorn',
    '--bind',
    address,
    ...threads,
    'service:application',
  ]);
}

/** The same on waitress. */
export async function startWaitress(t: Scope, text: string, env: Readonly<Record<string, string>>): Promise<number> {
  return startPythonServer(t, text, env, (address) => [
    '-m',
    'waitress',
    `--listen=${address}`,
    '--threads=16',
    'service:application',
  ]);
}

async function startPythonServer(
  t: Scope,
  text: string,
  env: Readonly<Record<string, string>>,
  args: (address: string) => readonly string[],
): Promise<number> {
  const folder = tempDir(t);
  writeFileSync(join(folder, 'service.py'), text);
  return startUpstreamProcess(t, {
    command: pythonWith('django', 'flask', 'gunicorn', 'waitress'),
    args,
    env: { ...env, PYTHONPATH: folder },
  });
}
