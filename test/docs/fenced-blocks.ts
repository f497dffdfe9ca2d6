/** Fenced blocks of the documentation. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { projectDir } from '../support/project-dir.js';

export interface FencedBlock {
  readonly page: string;
  readonly line: number;
  readonly language: string;
  readonly text: string;
}

/** Pages that people read. */
export const pages: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(projectDir, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `docs/${name}`),
];

/** Pages about one provider of tokens each: test/docs/issuers.test.ts tries every block of them. */
export const providerPages: readonly string[] = readdirSync(join(projectDir, 'docs/issuers'))
  .sort()
  .map((name) => `docs/issuers/${name}`);

/** Every fenced block of a page, in order; one that is never closed throws. */
export function fencedBlocks(page: string): readonly FencedBlock[] {
  const blocks: FencedBlock[] = [];
  let open: { readonly line: number; readonly language: string; readonly lines: string[] } | null = null;
  for (const [index, line] of readFileSync(join(projectDir, page), 'utf8').split('\n').entries()) {
    const fence = /^```(.*)$/.exec(line);
    if (open === null) {
      if (fence !== null) open = { line: index + 1, language: fence[1] ?? '', lines: [] };
    } else if (fence === null) {
      open.lines.push(line);
    } else {
      blocks.push({ page, line: open.line, language: open.language, text: `${open.lines.join('\n')}\n` });
      open = null;
    }
  }
  if (open !== null) throw new Error(`${page}:${String(open.line)} is not closed`);
  return blocks;
}

/** The block of a page that begins so. */
export function blockThatBegins(page: string, begins: string): FencedBlock {
  const found = fencedBlocks(page).filter(({ text }) => text.startsWith(begins));
  if (found.length !== 1 || found[0] === undefined) {
    throw new Error(`${page}: ${String(found.length)} blocks begin with ${begins}`);
  }
  return found[0];
}
