/** Keeps the layers: which folder may import which, what the pure ones may touch, and how long a file may get. */
import { dirname, join, normalize } from 'node:path';
import t from 'tap';
import ts from 'typescript';
import { layers, type Layer } from './support/layers.js';
import { parseSource, projectFiles, readProjectFile, type Import, type SourceFile } from './support/source-files.js';

/** Names through which a file reaches the world or waits for it. */
const outside = new Set([
  'process',
  'performance',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
  'console',
  'fetch',
  'globalThis',
  'Promise',
  'Atomics',
]);
/** What pure files may not take from the modules they may use. */
const chance = new Set([
  'randomBytes',
  'randomUUID',
  'randomInt',
  'generateKeyPair',
  'generateKeyPairSync',
  'webcrypto',
  'Server',
  'connect',
  'createServer',
]);

/** Lists of names that are imported, or exported again, from a file. */
const namedFrom = /\b(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s+from\s+'(\.[^']+)'/g;
/** The same where the file is loaded when the code gets there. */
const namedLater = /\bconst\s+\{([^}]*)\}\s+=\s+await\s+import\(\s*'(\.[^']+)'/g;
/** A file of which anything may be used. */
const asAWhole = /\*(?:\s+as\s+\w+)?\s+from\s+'(\.[^']+)'|\bimport\(\s*'(\.[^']+)'/g;
const declaration = /^export (?:async |abstract )?(?:const|let|function\*?|class|interface|type|enum) ([\w$]+)/gm;

/** Exported, and imported by nobody. */
const exportedAllTheSame = new Set([
  // The compiler writes these names into the declarations of other files.
  'src/config/schema/section.ts: Section',
  'src/config/sections/egress/egress.ts: EgressSettings',
  'src/config/sections/listeners/decide.ts: DecideSettings',
  'src/proxy/upstream/http2/connection.ts: ConnectionTimes',
  // It stands for `node:os`, from which a package of the page takes it.
  'src/playground/node/os.ts: availableParallelism',
]);

const sources = projectFiles('src')
  .filter((path) => /\.tsx?$/.test(path))
  .map(parseSource);

t.test('every source file belongs to a layer', (t) => {
  t.not(sources.length, 0);
  t.same(
    sources.filter(({ path }) => layerOf(path) === undefined).map(({ path }) => path),
    [],
  );
  t.end();
});

t.test('imports keep to the table of layers', (t) => {
  const wrong = sources.flatMap((source) =>
    source.imports.filter((entry) => !isAllowed(source, entry)).map((entry) => `${source.path} imports ${entry.text}`),
  );
  t.same(wrong, []);
  t.end();
});

t.test('the adapters of one technology do not know those of another', (t) => {
  const folder = (path: string): string => path.split('/')[2] ?? '';
  const wrong = sources
    .filter(({ path }) => path.startsWith('src/adapters/'))
    .flatMap((source) =>
      source.imports
        .filter(({ file }) => file?.startsWith('src/adapters/') === true && folder(file) !== folder(source.path))
        .map(({ text }) => `${source.path} imports ${text}`),
    );
  t.same(wrong, []);
  t.end();
});

t.test('what Node does not document is used in one folder', (t) => {
  const folder = 'src/proxy/node-internals/';
  const internal =
    /\._\w+\b(?!\()|\b_readableState\b|\.(?:push|read|resume|pause|destroySoon|onIncoming) = |\.push\(''\)|removeAllListeners\('data'\)|prototype\.\w+\.call|[gs]etGlobalDispatcher|\breq\.(?:method|headers|url) = |\bserver\.emit\(|'_\w+' in |'internalMessage'/;
  const using = (path: string): boolean => internal.test(readProjectFile(path));
  t.same(
    sources.map(({ path }) => path).filter((path) => !path.startsWith(folder) && using(path)),
    [],
  );
  const inside = sources.map(({ path }) => path).filter((path) => path.startsWith(folder));
  t.same(
    inside.filter((path) => !using(path)),
    [],
    'and nothing else is there',
  );
  const tests = projectFiles('test/proxy/node-internals');
  t.same(
    inside.filter((path) => !tests.includes(path.replace('src/', 'test/').replace('.ts', '.test.ts'))),
    [],
    'each has its canary',
  );
  t.end();
});

t.test('no imports in a circle, but of types', (t) => {
  t.same(circles(sources), []);
  t.end();
});

t.test('what a file exports is imported by another, of src or of test', (t) => {
  const unused = unusedExports(projectFiles().filter((path) => /\.(tsx?|mjs)$/.test(path)));
  t.same(
    unused.filter((name) => !exportedAllTheSame.has(name)),
    [],
  );
  t.same(
    [...exportedAllTheSame].filter((name) => !unused.includes(name)),
    [],
    'and no exception is for one that is imported',
  );
  t.end();
});

t.test('what decides is pure: no clock, process, waiting, chance or throw', (t) => {
  const pure = sources.filter(({ path }) => layerOf(path)?.pure === true);
  t.not(pure.length, 0);
  for (const source of pure) t.same(impurities(source), [], source.path);
  const reaching = pure.flatMap(({ path, imports }) =>
    imports
      .filter(({ file }) => file !== null && layerOf(file)?.pure !== true)
      .map(({ text }) => `${path} imports ${text}`),
  );
  t.same(reaching, [], 'they import nothing that is not');
  t.end();
});

t.test('files stay short and are named for what they hold', (t) => {
  const code = projectFiles().filter((path) => /\.(ts|mjs|js)$/.test(path));
  const isTooLong = (path: string): boolean => readProjectFile(path).split('\n').length - 1 > 500;
  t.same(code.filter(isTooLong), [], 'at most 500 lines');
  const names = code.map((path) => path.slice(path.lastIndexOf('/') + 1));
  t.same(
    names.filter((name) => !/^[a-z0-9-]+(\.long)?(\.test|\.config)?\.(ts|mjs|js)$/.test(name)),
    [],
    'kebab-case',
  );
  t.same(
    names.filter((name) => /utils?|helpers?|manager|handle/.test(name)),
    [],
    'nouns that say something',
  );
  t.end();
});

t.test('a folder is read at a glance', (t) => {
  const sizes = new Map<string, number>();
  for (const { path } of sources) {
    const folder = path.slice(0, path.lastIndexOf('/'));
    sizes.set(folder, (sizes.get(folder) ?? 0) + 1);
  }
  t.same(
    [...sizes].filter(([, size]) => size > 15),
    [],
    'at most 15 files',
  );
  t.end();
});

t.test('the lock file names no registry', (t) => {
  t.notMatch(readProjectFile('package-lock.json'), /"resolved"/);
  t.end();
});

t.test('nothing names the place it was made in', (t) => {
  // Written in halves, so that this file does not find itself.
  const halves = [
    ['/wo', 'rk/main'],
    ['/wo', 'rk/sha'],
    ['/wo', 'rk/.lib'],
    ['/tmp/', 'tools'],
    ['/tmp/', 'brief'],
    ['clau', 'de'],
    ['anthro', 'pic'],
    ['shared/de', 'sign'],
  ];
  const words = halves.map((pair) => pair.join('').toLowerCase());
  const found = projectFiles()
    .filter((path) => path !== 'package-lock.json')
    .flatMap((path) => {
      const text = readProjectFile(path).toLowerCase();
      return words.filter((word) => text.includes(word)).map((word) => `${path}: ${word}`);
    });
  t.same(found, []);
  t.end();
});

function layerOf(path: string): Layer | undefined {
  return layers.filter((layer) => path.startsWith(layer.path)).sort((a, b) => b.path.length - a.path.length)[0];
}

function isAllowed(source: SourceFile, { file, text, typeOnly }: Import): boolean {
  const layer = layerOf(source.path);
  if (layer === undefined) return false;
  if (file === null) return layer.modules === null || layer.modules.includes(text) || (typeOnly && layer.pure !== true);
  const open = [layer.path, ...layer.may, ...(typeOnly ? (layer.mayTypes ?? []) : [])];
  return open.some((start) => file.startsWith(start));
}

/** Chains of imports that come back to where they started, each once. Types are left out: nothing of them is loaded. */
function circles(files: readonly SourceFile[]): string[] {
  const targets = new Map(
    files.map(({ path, imports }) => [
      path,
      imports.flatMap(({ file, typeOnly }) => (file === null || typeOnly ? [] : [file])),
    ]),
  );
  const done = new Set<string>();
  const found: string[] = [];
  const walk = (path: string, trail: readonly string[]): void => {
    const seen = trail.indexOf(path);
    if (seen >= 0) found.push([...trail.slice(seen), path].join(' → '));
    if (seen >= 0 || done.has(path)) return;
    for (const next of targets.get(path) ?? []) walk(next, [...trail, path]);
    done.add(path);
  };
  for (const { path } of files) walk(path, []);
  return found;
}

/** Exports of src that no list of imports names. Files that are imported as a whole are left out. */
function unusedExports(paths: readonly string[]): readonly string[] {
  const texts = new Map(paths.map((path) => [path, readProjectFile(path)]));
  const fileOf = (path: string, text: string): string => {
    const from = normalize(join(dirname(path), text)).replace(/^(?:\.build\/)?(?:dist\/)?/, (start) =>
      start.endsWith('dist/') ? 'src/' : '',
    );
    const file = from.replace(/\.js$/, '.ts');
    return texts.has(file) ? file : `${file}x`;
  };
  const taken = new Set<string>();
  const whole = new Set<string>();
  for (const [path, text] of texts) {
    for (const [, list = '', from = ''] of [...text.matchAll(namedFrom), ...text.matchAll(namedLater)]) {
      for (const [, name = ''] of list.matchAll(/(?:^|,)\s*(?:type\s+)?([\w$]+)/g)) {
        taken.add(`${fileOf(path, from)}: ${name}`);
      }
    }
    for (const [, from, later = ''] of text.replace(namedLater, '').matchAll(asAWhole)) {
      whole.add(fileOf(path, from ?? later));
    }
  }
  return [...texts].flatMap(([path, text]) => {
    if (!path.startsWith('src/') || whole.has(path)) return [];
    return [...text.matchAll(declaration)]
      .map(([, name = '']) => `${path}: ${name}`)
      .filter((name) => !taken.has(name));
  });
}

function impurities({ path, nodes, imports }: SourceFile): string[] {
  const nodeNames = imports.flatMap(({ names }) => names).filter((name) => chance.has(name));
  return [...nodes.flatMap((node) => impurityOf(node)), ...nodeNames].map((what) => `${path}: ${what}`);
}

function impurityOf(node: ts.Node): string[] {
  if (ts.isThrowStatement(node)) return ['throw'];
  if (ts.isAwaitExpression(node) || node.kind === ts.SyntaxKind.AsyncKeyword) return ['async'];
  if (ts.isPropertyAccessExpression(node) && /^(Date\.now|Math\.random)$/.test(node.getText())) return [node.getText()];
  if (ts.isNewExpression(node) && node.expression.getText() === 'Date' && (node.arguments?.length ?? 0) === 0) {
    return ['new Date()'];
  }
  if (!ts.isIdentifier(node) || !outside.has(node.text)) return [];
  const parent = node.parent;
  const isMember =
    (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
    (ts.isPropertyAssignment(parent) && parent.name === node);
  return isMember ? [] : [node.text];
}
