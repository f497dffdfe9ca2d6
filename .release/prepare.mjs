/**
 * What npm runs after `npm ci` in a clone, and before `npm pack`: the build.
 *
 * The first `npx sallyport` in a clone runs it, too, hides what it prints, and ends without a word where it fails.
 * There it builds nothing: what is built is run, and bin/sallyport.js says so where nothing is.
 */
import { spawnSync } from 'node:child_process';

if (process.env.npm_command !== 'exec') {
  const { status, error } = spawnSync(process.execPath, [process.env.npm_execpath, 'run', 'build'], {
    stdio: 'inherit',
  });
  if (error !== undefined) process.stderr.write(`npm run build: ${error.message}\n`);
  process.exitCode = status ?? 1;
}
