/** Hands test files to a process that runs one after the other: `shared/process.mjs`. */
import { join } from 'node:path';
import { limitMs, startTestProcess } from './test-process.mjs';

const program = join(import.meta.dirname, 'shared/process.mjs');

/**
 * Runs files from the front of `waiting` until none is left, and calls `note` as each ends. A file that ends the
 * process, or has it ended, failed; the others stay in `waiting`. Returns 1 where the process did not end by itself
 * after its last file, which it says, or else 0.
 */
export async function shareProcess(waiting, { running, env, note }) {
  let file;
  let began = performance.now();
  const noteEnd = (counts, output) => note(file, { ...counts, seconds: (performance.now() - began) / 1000, output });
  const one = startTestProcess([program], {
    running,
    // Each file has its own limit.
    env: { ...env, TAP_TIMEOUT: '0' },
    onMessage: ({ ended }) => {
      if (ended !== undefined) noteEnd(countsOf(ended), `${ended.output}${one.takeSaid().output}${unrestored(ended)}`);
      file = waiting.shift() ?? null;
      began = performance.now();
      one.limit(file === null ? 1 : limitMs);
      one.send({ file, timeoutMs: limitMs });
    },
  });
  const code = await one.closed;
  const { output } = one.takeSaid();
  // Where it did not get so far as to ask for one.
  if (file === undefined) file = waiting.shift() ?? null;
  if (file !== null) noteEnd({ passed: 0, failed: 1 }, output);
  else if (code !== 0) console.log(`FAILED a process that test files share did not end by itself\n${output.trimEnd()}`);
  return file === null && code !== 0 ? 1 : 0;
}

/** As for a file with a process to itself: a skipped test is a failed one, and so is a file without tests. */
function countsOf({ counts: { total, pass, fail, skip, todo }, changed }) {
  const failed = fail + skip + todo + changed.length;
  return { passed: pass, failed: failed === 0 && total === 0 ? 1 : failed };
}

function unrestored({ changed }) {
  return changed.map((what) => `not put back, for the files that share the process: ${what}\n`).join('');
}
