/**
 * Which test files a change concerns: those that load a changed file, and those that name one, or a folder that holds
 * it.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { loadedBy } from './imports.mjs';
import { run } from './step.mjs';
import { howMany, inShort } from './words.mjs';

/** A string that could be a path. */
const path = /(['"`])((?:\.{1,2}\/)*[\w.@-]+(?:\/[\w.@-]+)*)\/?\1/g;

/** What a test names to start the program, and what that holds. */
const program = /^(?:dist|bin)\//;
const main = 'src/main.ts';

/** What no test file names and all of them depend on. */
const forAll = ['package-lock.json', 'test/tsconfig.json', 'tsconfig.json'];

/**
 * Of these test files, those that a change since `base` concerns, said in one line; `leftOut` are the lines for the end
 * of the run, which say what else depends on the change. Where git cannot tell what changed, that is a failure.
 */
export async function selectChanged(base, files) {
  const { ref, changed } = await changedSince(base);
  if (changed === null) {
    console.log(`FAILED git does not say where this branch left ${ref}; --changed=REF names another base`);
    return { files: [], leftOut: [], failures: 1 };
  }
  const { selected, starting, unread, shared } = concernedBy(changed, files);
  console.log(`changed since ${ref}: ${changed.length === 0 ? 'nothing' : changed.join(' ')}`);
  const started = `${howMany(starting, ' that starts', 's that start')} the program, in which something changed`;
  const leftOut = [
    ...(starting.length > 0 ? [`NOT SELECTED: ${started}: ${inShort(starting)}`] : []),
    ...(shared.length > 0 ? [`NOT SELECTED: the other test files, which all depend on ${shared.join(' ')}`] : []),
    ...(unread.length > 0 ? [`NOT KNOWN: which of these test files depend on ${unread.join(' ')}`] : []),
  ];
  return { files: selected, leftOut, failures: 0 };
}

/**
 * Every file that differs from the point where this branch left `base`, or, where that is empty, `origin/main` or else
 * `main`: in commits, in the work tree, or as one that git does not know yet. `null` where git cannot tell.
 */
async function changedSince(base) {
  for (const ref of base === '' ? ['origin/main', 'main'] : [base]) {
    const start = await run('git', ['merge-base', 'HEAD', ref]);
    if (start.code !== 0) continue;
    const lists = await Promise.all([
      run('git', ['diff', '--name-only', '--no-renames', '-z', start.output.trim()]),
      run('git', ['ls-files', '--others', '--exclude-standard', '-z']),
    ]);
    const changed = lists.flatMap(({ output }) => output.split('\0')).filter((name) => name !== '');
    return { ref, changed: [...new Set(changed)].sort() };
  }
  return { ref: base === '' ? 'main' : base, changed: null };
}

/**
 * Of these test files, those that the changed files concern (`selected`); those that start the program instead of
 * loading it, where that changed (`starting`); the changed files on which all of them depend (`shared`), and those on
 * which none is known to (`unread`).
 */
function concernedBy(changed, files) {
  const known = new Set();
  const note = (concerned) => {
    for (const one of concerned) known.add(one);
    return concerned.length > 0;
  };
  const all = files
    .map((file) => ({ file, loaded: loadedBy(file) }))
    .map(({ file, loaded }) => ({ file, loaded, named: namedIn(loaded) }));
  const selected = all
    .filter(({ loaded, named }) => note(changed.filter((one) => loaded.has(one) || isNamed(one, named))))
    .map(({ file }) => file);
  const inProgram = loadedBy(main);
  const programChanged = note(changed.filter((one) => inProgram.has(one)));
  const starting = programChanged
    ? all.filter(({ named }) => [...named].some((name) => program.test(name))).map(({ file }) => file)
    : [];
  return {
    selected,
    starting: starting.filter((file) => !selected.includes(file)),
    unread: changed.filter((one) => !known.has(one) && !forAll.includes(one)),
    shared: changed.filter((one) => forAll.includes(one)),
  };
}

/** What looks like a path in the test files and helpers among these, from the project's folder. */
function namedIn(loaded) {
  const found = new Set();
  for (const file of [...loaded].filter((one) => one.startsWith('test/'))) {
    for (const name of namesIn(file)) found.add(name);
  }
  return found;
}

const names = new Map();

function namesIn(file) {
  if (!names.has(file)) {
    const texts = [...readFileSync(file, 'utf8').matchAll(path)].map(([, , text]) => text);
    names.set(
      file,
      texts.map((text) => normalize(text.startsWith('.') ? join(dirname(file), text.replace(/\.js$/, '.ts')) : text)),
    );
  }
  return names.get(file);
}

/** The file itself, or a folder that holds it. */
function isNamed(file, named) {
  const parts = file.split('/');
  return parts.some((_, index) => named.has(parts.slice(0, index + 1).join('/')));
}
