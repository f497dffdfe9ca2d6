import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { run } from '../../../../src/cli/program.js';
import { tempDir } from '../../../support/temp-dir.js';
import { captureIo } from '../../captured-io.js';

/** What `sallyport completion SHELL` prints. */
export async function completionOf(shell: string): Promise<string> {
  const io = captureIo();
  await run(['completion', shell], io);
  if (io.code() !== null || io.err() !== '') throw new Error(`no script for ${shell}: ${io.err()}`);
  return io.out();
}

/** A folder with the shell's script, and with files to complete. */
export async function completionFolder(t: Test, shell: string, scriptName: string): Promise<string> {
  const folder = tempDir(t);
  writeFileSync(join(folder, scriptName), await completionOf(shell));
  for (const name of ['sallyport.yaml', 'with space.yaml']) writeFileSync(join(folder, name), '');
  mkdirSync(join(folder, 'sub'));
  return folder;
}

/** What is typed, what has to be offered, and what may not be. */
const rows: readonly { readonly line: string; readonly offers: readonly string[]; readonly not?: readonly string[] }[] =
  [
    { line: 'sallyport re', offers: ['record', 'revoke'], not: ['serve'] },
    { line: 'sallyport serve --con', offers: ['--config'] },
    { line: 'sallyport check --', offers: ['--config', '--json', '--strict'], not: ['--url'] },
    { line: 'sallyport check sally', offers: ['sallyport.yaml'] },
    { line: 'sallyport check --config sally', offers: ['sallyport.yaml'] },
    { line: 'sallyport core --dialect ', offers: ['seed', 'supertokens'], not: ['sallyport.yaml'] },
    { line: 'sallyport core --port ', offers: [], not: ['sallyport.yaml', '--port', 'serve'] },
    { line: 'sallyport record ', offers: ['resolve', 'show'], not: ['serve'] },
    { line: 'sallyport record resolve --outcome ', offers: ['committed', 'not-applied'] },
    { line: 'sallyport record --config sallyport.yaml sh', offers: ['show'], not: ['revoke'] },
    { line: 'sallyport completion ', offers: ['bash', 'fish', 'zsh'] },
    { line: 'sallyport help di', offers: ['diff'] },
  ];

/** Types each line, and looks at what the shell offers. */
export function checkOffers(t: Test, offersOf: (line: string) => readonly string[]): void {
  for (const { line, offers, not = [] } of rows) {
    const found = offersOf(line);
    t.same(
      offers.filter((offer) => !found.includes(offer)),
      [],
      `${line}: missing of ${found.join(' ')}`,
    );
    t.same(
      not.filter((offer) => found.includes(offer)),
      [],
      `${line}: too many`,
    );
  }
}

/** As a word for the shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
