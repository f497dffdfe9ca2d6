import { node, run } from './step.mjs';

/**
 * Runs the compiled test files with tap. Prints a line for each file as it ends; all that a failed one said, but for
 * the assertions that held, follows its line. Returns tap's counts; a run that breaks off counts as a failure.
 */
export async function runTap(files, { coverage }) {
  if (files.length === 0) return { passed: 0, failed: 0 };
  const args = ['node_modules/tap/dist/esm/run.mjs', 'run', '--reporter=tap', ...(coverage ? [] : ['--disable-coverage']), ...files];
  const state = { name: '', ended: new Set(), file: [], diagnosing: false, points: 0, broken: 0, summary: null };
  let rest = '';
  const { code } = await run(node, args, (text, isOutput) => {
    if (!isOutput) {
      process.stderr.write(text);
      return;
    }
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) readLine(line, state);
  });
  readLine(rest, state);
  return countOf(state, code, files);
}

/** Lines of a file are indented; the line that ends it is not, and tap's diagnostics of the file as a whole follow that. */
function readLine(line, state) {
  const name = /^# Subtest: \.build\/(.*)\.js$/.exec(line)?.[1];
  if (name !== undefined) state.name = sourceOf(`.build/${name}.js`);
  const end = /^(not )?ok \d+ (.*)$/.exec(line);
  if (end === null) {
    if (state.diagnosing) console.log(line);
    else state.file.push(line);
    if (line === '  ...') state.diagnosing = false;
    readSummary(line, state);
    return;
  }
  const failed = end[1] !== undefined;
  state.points += 1;
  if (failed) state.broken += 1;
  // A file that was still running at its time limit has no subtest; its name stands in the diagnostics.
  console.log(`${failed ? 'FAILED' : 'ok    '} ${secondsOf(end[2])} s  ${state.name === '' ? end[2] : state.name}`);
  state.ended.add(state.name);
  state.name = '';
  if (failed) console.log(withoutPassing(state.file).join('\n'));
  state.file = [];
  state.diagnosing = failed;
}

/** tap's last comment, `# { total: 4, pass: 3, fail: 1 }`. */
function readSummary(line, state) {
  if (!/^# \{ total: /.test(line)) return;
  const count = (name) => Number(new RegExp(`\\b${name}: (\\d+)`).exec(line)?.[1] ?? 0);
  state.summary = { line, pass: count('pass'), fail: count('fail'), skip: count('skip') + count('todo') };
}

function countOf(state, code, files) {
  const { summary } = state;
  if (summary === null) {
    console.log(`tap broke off, exit code ${code}:\n${state.file.join('\n')}`);
    return { passed: state.points - state.broken, failed: state.broken + 1 };
  }
  console.log(`${summary.line}${summary.skip > 0 ? ' — a skipped test is a failed one here' : ''}`);
  const missing = Math.max(0, files.length - state.points);
  if (missing > 0) console.log(`did not end: ${files.map(sourceOf).filter((file) => !state.ended.has(file)).join(', ')}`);
  const failed = summary.fail + summary.skip + missing;
  const silent = failed === 0 && code !== 0 ? 1 : 0;
  if (silent > 0) console.log(`tap ended with exit code ${code} without naming a failure:\n${state.file.join('\n')}`);
  return { passed: summary.pass, failed: failed + silent };
}

function withoutPassing(lines) {
  return lines.filter((line) => !/^\s+ok \d+ - /.test(line));
}

/** The test file that was compiled to this one. */
function sourceOf(compiled) {
  return compiled.replace(/^\.build\/(.*)\.js$/, '$1.ts');
}

function secondsOf(text) {
  const [, digits = '0', unit = 'ms'] = /# time=([\d.]+)(ms|s|m)/.exec(text) ?? [];
  const factor = { ms: 0.001, s: 1, m: 60 }[unit] ?? 1;
  return (Number(digits) * factor).toFixed(1).padStart(6);
}
