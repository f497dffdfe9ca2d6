/** A process that runs compiled test files, and all that it says. */
import { spawn } from 'node:child_process';
import { node } from './step.mjs';

/** A test file that says nothing else ends itself after this time, and says what it was waiting for. */
export const limitMs = 300_000;
/** One that cannot do so any more is ended by the runner. */
const graceMs = 15_000;
/** A program that the test left behind may hold the pipes open for ever. */
const pipesMs = 2_000;

/**
 * Starts Node.js with these arguments. `takeSaid` hands over what it wrote since the last time: `tap` is what it wrote
 * to standard output alone. `limit` has it ended by SIGKILL when these milliseconds, and some, have passed. `closed`
 * resolves with its exit code when it is gone.
 */
export function startTestProcess(args, { running, env, onMessage = () => undefined }) {
  const child = spawn(node, ['--enable-source-maps', ...args], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { ...process.env, NO_COLOR: '1', ...env },
  });
  running.add(child);
  const written = { tap: '', output: '' };
  const note = (text) => {
    written.output += text;
  };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    written.tap += text;
    note(text);
  });
  child.stderr.setEncoding('utf8').on('data', note);
  let timer;
  const limit = (ms) => {
    clearTimeout(timer);
    if (ms > 0) timer = setTimeout(() => child.kill('SIGKILL'), ms + graceMs);
  };
  limit(limitMs);
  child.on('message', (message) => {
    // What `t.setTimeout` of a test file asks for.
    if (typeof message.setTimeout === 'number') limit(message.setTimeout);
    else onMessage(message);
  });
  child.on('error', (error) => note(`${error.message}\n`));
  const closed = new Promise((resolve) => {
    let left;
    const end = (code, signal) => {
      for (const one of [timer, left]) clearTimeout(one);
      running.delete(child);
      for (const stream of [child.stdout, child.stderr]) stream.destroy();
      if (signal !== null) note(`ended by ${signal}\n`);
      else if (code !== 0) note(`ended with exit code ${code}\n`);
      resolve(code);
    };
    child.on('close', end);
    child.on('exit', (code, signal) => {
      left = setTimeout(end, pipesMs, code, signal);
    });
  });
  const takeSaid = () => {
    const said = { ...written };
    Object.assign(written, { tap: '', output: '' });
    return said;
  };
  // A process that is gone says so by `closed`.
  return { closed, limit, takeSaid, send: (message) => child.send(message, () => undefined) };
}
