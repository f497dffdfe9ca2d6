import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Scope } from './scope.js';

/** A new empty folder, removed with everything in it when the test ends. */
export function tempDir(t: Scope): string {
  const path = mkdtempSync(join(tmpdir(), 'sallyport-test-'));
  t.teardown(() => {
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  });
  return path;
}
