/**
 * Runs compiled test files one after the other in this process, each as a test of its own with the output and counts of
 * a process.
 */
import { pathToFileURL } from 'node:url';
import { Test } from 'tap';
import { restoreState, takeState } from './state.mjs';

/** `scope` is the test that stands for the file which runs now. */
export const current = { scope: null };

/** What tap's own root does for a file that has a process to itself. */
class FileTest extends Test {
  setTimeout(ms) {
    process.send({ setTimeout: ms });
    return super.setTimeout(ms);
  }
}

/**
 * `output` is what tap says of it, `counts` how many assertions there were, `changed` what it left changed for those
 * that follow.
 */
export async function runFile(file, timeoutMs) {
  const before = takeState();
  const scope = new FileTest({ name: file, timeout: timeoutMs });
  current.scope = scope;
  let output = '';
  scope.on('data', (text) => {
    output += String(text);
  });
  const ended = new Promise((resolve) => scope.on('end', resolve));
  try {
    await import(pathToFileURL(file).href);
  } catch (error) {
    scope.threw(error);
  }
  scope.end();
  await ended;
  return { output, counts: { ...scope.counts }, changed: restoreState(before) };
}
