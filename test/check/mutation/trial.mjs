/** Runs one test file, and leaves nothing of it behind: neither processes that it started nor its files. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Returns whether it passed, and how long it took. What runs for longer than `limitMs` has not passed. */
export async function runTest(test, limitMs, coverageDir) {
  const dir = mkdtempSync(join(tmpdir(), 'mutation-'));
  const began = performance.now();
  const env = { ...process.env, TMPDIR: dir, ...(coverageDir === undefined ? {} : { NODE_V8_COVERAGE: coverageDir }) };
  try {
    // A group of its own: a test that fails early leaves a redis-server running.
    const child = spawn(process.execPath, [test], { stdio: 'ignore', env, detached: true });
    const passed = await new Promise((resolve) => {
      const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
      child.on('close', (code) => {
        clearTimeout(timer);
        resolve(code === 0);
      });
    });
    endGroup(child.pid);
    return { passed, tookMs: performance.now() - began };
  } finally {
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

function endGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
}

/**
 * Runs a test file as it is. Returns which places of the compiled files below `folder` it runs through, or `null` where
 * it fails.
 */
export async function runForCoverage(test, folder, limitMs) {
  const coverageDir = mkdtempSync(join(tmpdir(), 'mutation-'));
  try {
    const { passed, tookMs } = await runTest(test, limitMs, coverageDir);
    if (!passed) return null;
    const scripts = readdirSync(coverageDir)
      .flatMap((name) => scriptsIn(join(coverageDir, name)))
      .filter(({ url }) => url.includes(`/${folder}/`));
    return {
      tookMs,
      runs: (target, offset) => scripts.some((script) => script.url.endsWith(`/${target}`) && isRun(script, offset)),
    };
  } finally {
    rmSync(coverageDir, { recursive: true, force: true, maxRetries: 5 });
  }
}

function scriptsIn(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).result;
  } catch {
    // Of a process that the test ended while it wrote.
    return [];
  }
}

/** The smallest of the ranges around a place says how often it was run. */
function isRun({ functions }, offset) {
  const around = functions
    .flatMap(({ ranges }) => ranges)
    .filter(({ startOffset, endOffset }) => startOffset <= offset && offset < endOffset);
  const innermost = around.sort((a, b) => a.endOffset - a.startOffset - (b.endOffset - b.startOffset))[0];
  return innermost !== undefined && innermost.count > 0;
}
