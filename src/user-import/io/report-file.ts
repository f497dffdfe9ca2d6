import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { codeOf } from '../../lib/errors.js';
import { accept, refuse, type Result } from '../../lib/result.js';

/** Joined before they are written: a system call for each line would take most of the time. */
const blockChars = 64 * 1024;

/**
 * Writes lines to a file of mode 0600 that takes the place of an older one only when it is whole. Refuses in words that
 * follow the path.
 */
export async function writeReport(
  path: string,
  lines: AsyncIterable<string> | Iterable<string>,
): Promise<Result<null, string>> {
  const draft = `${path}.new`;
  try {
    await rm(draft, { force: true });
    const file = await open(draft, 'wx', 0o600);
    try {
      await writeLines(file, lines);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
    return accept(null);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    const code = codeOf(error, '');
    if (code === '') throw error;
    return refuse(`cannot be written (${code})`);
  }
}

async function writeLines(file: FileHandle, lines: AsyncIterable<string> | Iterable<string>): Promise<void> {
  let block = '';
  for await (const line of lines) {
    block += line;
    if (block.length < blockChars) continue;
    await file.writeFile(block);
    block = '';
  }
  if (block !== '') await file.writeFile(block);
}
