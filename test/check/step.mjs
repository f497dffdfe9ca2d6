import { spawn } from 'node:child_process';

export const node = process.execPath;

/** Runs a command; prints one line, and after it all that the command wrote when it failed. Says whether it held. */
export async function runStep(name, command, args) {
  return timeStep(name, async () => {
    const { code, output } = await run(command, args);
    return { held: code === 0, output };
  });
}

/** Does something; prints one line, and after it the output when it did not hold. Says whether it held. */
export async function timeStep(name, work) {
  const started = performance.now();
  const { held, output = '' } = await attempt(work);
  const seconds = ((performance.now() - started) / 1000).toFixed(1).padStart(6);
  console.log(`${held ? 'ok    ' : 'FAILED'} ${seconds} s  ${name}`);
  if (!held) console.log(output.trimEnd());
  return held;
}

/** Runs a command without input; resolves with its exit code and everything it wrote. */
export async function run(command, args, onOutput = () => undefined) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NO_COLOR: '1' } });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
        onOutput(text, stream === child.stdout);
      });
    }
    child.on('error', (error) => resolve({ code: 127, output: `${output}${command}: ${error.message}\n` }));
    child.on('close', (code, signal) =>
      resolve({ code: code ?? 1, output: signal === null ? output : `${output}ended by ${signal}\n` }),
    );
  });
}

async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    return { held: false, output: error instanceof Error ? String(error.stack) : String(error) };
  }
}
