#!/usr/bin/env node
// Stands in the repository, so that `npx sallyport` finds it in a clone that nothing was built in yet, and asks no
// registry for that name.
try {
  await import('../dist/main.js');
} catch (error) {
  if (error?.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  process.stderr.write(
    `sallyport is not built, or was not installed whole: run npm ci in its folder\n  ${error.message}\n`,
  );
  process.exitCode = 1;
}
