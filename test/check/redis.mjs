import { readFileSync } from 'node:fs';
import { run } from './step.mjs';

const missing = 'redis-server is not on the PATH and was not installed: run `apt-get install redis-server` (or your system\'s like) and start again';

/** Whether a test file starts a Redis server of its own. */
export function needsRedis(files) {
  return files.some((file) => readFileSync(file, 'utf8').includes('support/redis-server'));
}

/** Finds `redis-server`, or installs it where that takes no password. A test is never skipped for the want of it. */
export async function installRedis() {
  if (await isInstalled()) return { held: true };
  if (process.getuid?.() !== 0) return { held: false, output: missing };
  const update = await run('apt-get', ['update', '-qq']);
  const install = await run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server']);
  return { held: await isInstalled(), output: `${update.output}${install.output}${missing}` };
}

async function isInstalled() {
  return (await run('redis-server', ['--version'])).code === 0;
}
