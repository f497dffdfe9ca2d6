/**
 * Runs compiled test files, a few at a time, each in a process of its own. tap's own runner is not used: it hands every test the paths of
 * all of them in one environment variable, and Linux starts no process with a variable of more than 128 KiB; and it has every process
 * that a test starts load a module, which takes longer than most of our commands.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { node } from './step.mjs';

/** A test file that says nothing else ends itself after this time, and says what it was waiting for. */
const limitSeconds = 300;
/** One that cannot do so any more is ended by the runner. */
const graceSeconds = 15;

/** More failed files than this are no matter of a busy machine. */
const mostAgain = 3;

/**
 * Prints a line for each file as it ends; all that a failed one said, but for the assertions that held, follows its line. Returns how
 * many assertions passed and failed; a file that ends in any other way than by its last assertion counts as a failure. With `again`, up
 * to three files that failed are run once more, each by itself, and the second run counts; one that passes then is named in `unsteady`.
 */
export async function runTests(files, { jobs, coverage = null, again = false }) {
  const counts = { passed: 0, failed: 0, unsteady: [] };
  const failures = [];
  const waiting = [...files];
  const running = new Set();
  const endAll = (signal) => {
    for (const child of running) child.kill(signal);
    process.exit(128 + constants.signals[signal]);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, endAll);
  const work = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const ended = await runFile(file, running, coverage);
      print(file, ended);
      if (ended.failed > 0) failures.push({ file, ended });
      else counts.passed += ended.passed;
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  const repeated = again && failures.length <= mostAgain;
  if (repeated && failures.length > 0) console.log('what failed runs once more, each by itself');
  for (const { file, ended: first } of failures) {
    const ended = repeated ? await runFile(file, running, coverage) : first;
    if (repeated) print(file, ended);
    counts.passed += ended.passed;
    counts.failed += ended.failed;
    if (ended.failed === 0) counts.unsteady.push(sourceOf(file));
  }
  return counts;
}

function print(file, { failed, seconds, output }) {
  console.log(`${failed > 0 ? 'FAILED' : 'ok    '} ${seconds.toFixed(1).padStart(6)} s  ${sourceOf(file)}`);
  if (failed > 0) console.log(withoutPassing(output));
}

async function runFile(file, running, coverage) {
  const started = performance.now();
  const measured = coverage?.begin();
  const ended = await runProcess(file, running, measured === undefined ? {} : { NODE_V8_COVERAGE: measured });
  if (measured !== undefined) coverage.add(measured);
  return { ...countsOf(ended), seconds: (performance.now() - started) / 1000, output: ended.output };
}

/** Resolves with how the process ended and what it wrote: `tap` is what it wrote to standard output alone. */
function runProcess(file, running, env) {
  return new Promise((resolve) => {
    const child = spawn(node, ['--enable-source-maps', file], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'], env: { ...process.env, NO_COLOR: '1', TAP_TIMEOUT: String(limitSeconds), ...env },
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
      if (ms > 0) timer = setTimeout(() => child.kill('SIGKILL'), ms + graceSeconds * 1000);
    };
    limit(limitSeconds * 1000);
    // What `t.setTimeout` of a test file asks for.
    child.on('message', (message) => {
      if (typeof message.setTimeout === 'number') limit(message.setTimeout);
    });
    child.on('error', (error) => note(`${error.message}\n`));
    let left;
    const end = (code, signal) => {
      for (const one of [timer, left]) clearTimeout(one);
      running.delete(child);
      for (const stream of [child.stdout, child.stderr]) stream.destroy();
      if (signal !== null) note(`ended by ${signal}\n`);
      else if (code !== 0) note(`ended with exit code ${code}\n`);
      resolve({ ...written, code });
    };
    child.on('close', end);
    // A program that the test left behind may hold the pipes open for ever.
    child.on('exit', (code, signal) => {
      left = setTimeout(end, 2000, code, signal);
    });
  });
}

/** tap's last line, `# { total: 4, pass: 3, fail: 1 }`. A skipped test is a failed one, and so is a file without tests. */
function countsOf({ tap, code }) {
  const summary = [...tap.matchAll(/^# \{ total: .*$/gm)].at(-1)?.[0];
  const count = (name) => Number(new RegExp(`\\b${name}: (\\d+)`).exec(summary ?? '')?.[1] ?? 0);
  const failed = count('fail') + count('skip') + count('todo');
  return { passed: count('pass'), failed: failed === 0 && (code !== 0 || count('total') === 0) ? 1 : failed };
}

function withoutPassing(output) {
  return output.split('\n').filter((line) => !/^\s*ok \d+ - /.test(line)).join('\n').trimEnd();
}

/** The test file that was compiled to this one. */
function sourceOf(compiled) {
  return compiled.replace(/^\.build\/(.*)\.js$/, '$1.ts');
}
