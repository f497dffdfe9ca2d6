/**
 * Writes into the compiled program which commit it was made of. `npm run build` runs it last.
 *
 *   node .release/revision.mjs [REVISION]     the commit, where git cannot be asked: in `docker build`
 *
 * Without git, in a copy without its history, or in a folder of another repository, the commit stays `unknown`. Changes
 * that are not committed are told by `-dirty`, since the commit alone would be wrong then.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const unknown = 'unknown';
const stamped = /^export const revision = '[^']*';$/m;

/** The commit of the tree at `root`, as far as that can be told. */
export function revisionOf(root) {
  // Someone else's repository around an unpacked copy has commits too, which are not ours.
  const top = git(root, 'rev-parse', '--show-toplevel');
  const head = git(root, 'rev-parse', '--verify', 'HEAD');
  const changes = git(root, 'status', '--porcelain', '--untracked-files=all');
  if (top === null || head === null || changes === null || realpathSync(top) !== realpathSync(root)) return unknown;
  // Files that git does not know count where they are compiled.
  const changed = changes
    .split('\n')
    .some((line) => line !== '' && (!line.startsWith('??') || /^\?\? "?src\//.test(line)));
  return changed ? `${head}-dirty` : head;
}

/** Writes a revision into the program compiled to `dist`. */
export function stampRevision(dist, revision) {
  if (!/^(?:unknown|[0-9a-f]{7,64}(?:-dirty)?)$/.test(revision)) {
    throw new Error(`${JSON.stringify(revision)} is no commit: allowed are 7 to 64 hex digits, or unknown`);
  }
  const file = join(dist, 'version.js');
  const text = readFileSync(file, 'utf8');
  if (!stamped.test(text)) throw new Error(`${file} has no line for the revision`);
  writeFileSync(file, text.replace(stamped, `export const revision = '${revision}';`));
}

function git(cwd, ...args) {
  const { status, stdout } = spawnSync('git', args, { cwd, encoding: 'utf8' });
  return status === 0 ? stdout.trimEnd() : null;
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const [, , given = ''] = process.argv;
  try {
    stampRevision(join(root, 'dist'), given === '' ? revisionOf(root) : given);
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
