/** Keeps commands quick to start: help loads what it prints, and a command what it runs. */
import t from 'tap';
import { commandNames } from '../../src/cli/program.js';
import { parseSource, projectFiles } from '../support/source-files.js';

const sources = new Map(
  projectFiles('src')
    .filter((path) => path.endsWith('.ts'))
    .map((path) => [path, parseSource(path)]),
);

/** Packages that are loaded before the first line of a file runs. */
function packagesOf(path: string): readonly string[] {
  const seen = new Set<string>();
  const packages = new Set<string>();
  const walk = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const entry of sources.get(file)?.imports ?? []) {
      if (entry.typeOnly || entry.isLazy) continue;
      if (entry.file !== null) walk(entry.file);
      else if (!entry.text.startsWith('node:')) packages.add(entry.text);
    }
  };
  walk(path);
  return [...packages].sort();
}

/** Where a command's arguments and options are. */
function definitionOf(name: string): string {
  const elsewhere: Readonly<Record<string, string>> = {
    core: 'src/core-emulator/cli/index.ts',
    import: 'src/user-import/cli/index.ts',
    schema: 'src/cli/commands/schema.ts',
  };
  return elsewhere[name] ?? `src/cli/commands/${name}/index.ts`;
}

t.test('help and completion of every command load nothing but the parser of arguments', async (t) => {
  for (const path of [
    'src/cli/program.ts',
    'src/cli/commands/completion/script.ts',
    ...commandNames.map(definitionOf),
  ]) {
    t.ok(sources.has(path), path);
    t.same(
      packagesOf(path).filter((name) => name !== 'commander'),
      [],
      path,
    );
  }
});

t.test('the first file loads no other before it takes signals', async (t) => {
  t.same(packagesOf('src/main.ts'), []);
  t.same(
    sources
      .get('src/main.ts')
      ?.imports.filter(({ isLazy }) => !isLazy)
      .map(({ file }) => file),
    ['src/cli/early-signals.ts'],
  );
  t.same(
    sources.get('src/cli/early-signals.ts')?.imports.filter(({ typeOnly }) => !typeOnly),
    [],
  );
});

t.test('what is run often, or in a hurry, loads neither the proxy nor Redis', async (t) => {
  const allowed: Readonly<Record<string, readonly string[]>> = {
    'src/cli/commands/health/run.ts': ['yaml'],
    'src/cli/commands/check/run.ts': ['yaml', 'zod'],
    'src/cli/commands/diff/run.ts': ['yaml', 'zod'],
    'src/cli/commands/explain/run.ts': ['yaml', 'zod'],
    'src/cli/commands/mint/run.ts': ['undici'],
    'src/cli/commands/record/run.ts': ['yaml', 'zod'],
  };
  for (const [path, packages] of Object.entries(allowed)) {
    t.same(
      packagesOf(path).filter((name) => name !== 'commander'),
      packages,
      path,
    );
  }
});
