/**
 * Runs compiled test files, a few processes at a time; files that may share one are run one after the other in each,
 * the others have one of their own. tap's own runner is not used: it hands every test the paths of all of them in one
 * environment variable, and Linux starts no process with a variable of more than 128 KiB; and it has every process that
 * a test starts load a module, which takes longer than most of our commands.
 */
import { constants } from 'node:os';
import { shareProcess } from './shared-process.mjs';
import { limitMs, startTestProcess } from './test-process.mjs';

/** Fewer are not worth the start of another process to share. */
const leastShared = 8;

/** More failed files than this are no matter of a busy machine. */
const mostAgain = 3;

/**
 * Prints a line for each file as it ends; all that a failed one said, but for the assertions that held, follows its
 * line. Returns how many assertions passed and failed; a file that ends in any other way than by its last assertion
 * counts as a failure. With `again`, up to three files that failed are run once more, each by itself, and the second
 * run counts; one that passes then is named in `unsteady`. The files of `sharing`, which are among the others, share a
 * process for each job.
 */
export async function runTests(files, { jobs, sharing = [], coverage = null, again = false }) {
  const counts = { passed: 0, failed: 0, unsteady: [] };
  const failures = [];
  // To share a process with nobody is no gain, and a file by itself is easier to follow.
  const shared = sharing.length > 1 ? [...sharing] : [];
  const waiting = files.filter((file) => !shared.includes(file));
  const running = new Set();
  const endAll = (signal) => {
    for (const child of running) child.kill(signal);
    process.exit(128 + constants.signals[signal]);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, endAll);
  const note = (file, ended) => {
    print(file, ended);
    if (ended.failed > 0) failures.push({ file, ended });
    else counts.passed += ended.passed;
  };
  const sharers = Math.ceil(shared.length / leastShared);
  const work = async (_, job) => {
    while (job < sharers && shared.length > 0) {
      counts.failed += await measure(coverage, (env) => shareProcess(shared, { running, env, note }));
    }
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      note(file, await runFile(file, running, coverage));
    }
  };
  await Promise.all(Array.from({ length: jobs }).map(work));
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

/** Gathers the coverage of what is run with these variables. */
async function measure(coverage, work) {
  if (coverage === null) return work({});
  const measured = coverage.begin();
  const done = await work({ NODE_V8_COVERAGE: measured });
  coverage.add(measured);
  return done;
}

async function runFile(file, running, coverage) {
  const started = performance.now();
  const ended = await measure(coverage, async (env) => {
    const one = startTestProcess([file], { running, env: { TAP_TIMEOUT: String(limitMs / 1000), ...env } });
    const code = await one.closed;
    return { code, ...one.takeSaid() };
  });
  return { ...countsOf(ended), seconds: (performance.now() - started) / 1000, output: ended.output };
}

/**
 * tap's last line, `# { total: 4, pass: 3, fail: 1 }`. A skipped test is a failed one, and so is a file without tests.
 */
function countsOf({ tap, code }) {
  const summary = [...tap.matchAll(/^# \{ total: .*$/gm)].at(-1)?.[0];
  const count = (name) => Number(new RegExp(`\\b${name}: (\\d+)`).exec(summary ?? '')?.[1] ?? 0);
  const failed = count('fail') + count('skip') + count('todo');
  return { passed: count('pass'), failed: failed === 0 && (code !== 0 || count('total') === 0) ? 1 : failed };
}

function withoutPassing(output) {
  return output
    .split('\n')
    .filter((line) => !/^\s*ok \d+ - /.test(line))
    .join('\n')
    .trimEnd();
}

/** The test file that was compiled to this one. */
function sourceOf(compiled) {
  return compiled.replace(/^\.build\/(.*)\.js$/, '$1.ts');
}
