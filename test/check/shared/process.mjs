/**
 * A process that runs the test files which the runner sends it, one after the other, and ends when the runner has no
 * more.
 */
import * as modules from 'node:module';
import * as hook from './hook.mjs';
import { runFile } from './files.mjs';

/** What still has this process wait once there is no more to do is said after this time. */
const waitMs = 5_000;

if (modules.registerHooks === undefined) modules.register('./hook.mjs', import.meta.url);
else modules.registerHooks(hook);

/** What is open anyhow. */
const ours = process.getActiveResourcesInfo();

/** The kinds of resources that a file left open, by file. */
const left = [];

process.on('message', ({ file, timeoutMs }) => {
  if (file === null) end();
  else void run(file, timeoutMs);
});
process.send({ ready: true });

async function run(file, timeoutMs) {
  const open = process.getActiveResourcesInfo();
  const ended = await runFile(file, timeoutMs);
  const more = process.getActiveResourcesInfo().filter((kind) => !open.includes(kind));
  if (more.length > 0) left.push(`${file}: ${more.join(', ')}`);
  process.send({ ended });
}

function end() {
  process.disconnect();
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().filter((kind) => !ours.includes(kind));
    console.error(`still open: ${open.join(', ')}\nleft open when a file ended:\n${left.join('\n')}`);
  }, waitMs).unref();
}
