/** docs/architecture.md: every folder of src has its row and its place in the picture, and what is cited is there. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { layers, type Layer } from '../support/layers.js';
import { projectDir } from '../support/project-dir.js';
import { readProjectFile } from '../support/source-files.js';
import { tableBelow } from './pages.js';

const page = readProjectFile('docs/architecture.md');

function foldersIn(path: string): readonly string[] {
  return readdirSync(join(projectDir, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

t.test('every folder of src has a row in the page, a row in CONTRIBUTING.md and a room in the picture', (t) => {
  const rooms = readProjectFile('docs/rooms.svg');
  const contributing = readProjectFile('CONTRIBUTING.md');
  const rowsOf = (text: string): readonly string[] =>
    [...text.matchAll(/^\| `src\/([a-z-]+)` \|/gm)].map(([, name = '']) => name).sort();
  // What the build writes there is nobody's source.
  const folders = foldersIn('src')
    .filter((name) => name !== 'built')
    .sort();
  t.ok(folders.includes('decision'));
  t.same(rowsOf(page), folders);
  t.same(rowsOf(contributing), folders);
  const drawn = [...rooms.matchAll(/font-weight="600">([a-z-]+)<\/text>/g)].map(([, name = '']) => name).sort();
  t.same(drawn, folders, 'the rooms that are drawn');
  t.end();
});

t.test('the folders of decision and of proxy are drawn, and named in the page', (t) => {
  const rooms = readProjectFile('docs/rooms.svg');
  for (const name of [...foldersIn('src/decision'), ...foldersIn('src/proxy'), ...foldersIn('src/adapters')]) {
    t.match(rooms, new RegExp(`\\b${name}\\b`), `${name} is drawn`);
  }
  for (const name of foldersIn('src/decision')) t.match(page, `\`${name}\``, name);
  t.end();
});

t.test('every file and folder that the page links is there, and the pictures are ones of its own folder', (t) => {
  const links = [...page.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, path = '']) => path);
  t.ok(links.length > 25);
  for (const path of links) t.ok(existsSync(join(projectDir, 'docs', path)), path);
  t.ok(['rooms.svg', 'request-way.svg'].every((picture) => links.includes(picture)));
  t.end();
});

t.test('a question of the first table is answered by the first file that its row names', (t) => {
  const answers: readonly { question: RegExp; file: RegExp; holds: RegExp }[] = [
    { question: /order.*checked/, file: /src\/proxy\/auth\//, holds: /export function authorizeRequest\(/ },
    { question: /in flight/, file: /src\/proxy\/exchange\//, holds: /export function createSlots/ },
    { question: /access log line/, file: /src\/proxy\/exchange\//, holds: /requestLog/ },
    { question: /fails over/, file: /src\/adapters\/redis\//, holds: /FailoverCause/ },
  ];
  const rows = page.split('\n').filter((line) => line.startsWith('| '));
  for (const { question, file, holds } of answers) {
    const [, path = ''] = /\]\(\.\.\/([^)]+)\)/.exec(rows.find((row) => question.test(row)) ?? '') ?? [];
    t.match(path, file, String(question));
    t.match(readProjectFile(path), holds, path);
  }
  const [, schema = ''] = /`token_cache`.*?\(\.\.\/(src\/config\/sections\/[a-z-]+\.ts)\)/.exec(page) ?? [];
  t.match(readProjectFile(schema), /tokenCache = section\(\{\s+schema: size\(/, 'the schema of token_cache');
  t.end();
});

/** As the table of the page says it: `decision`, `lib`; types of `config`. */
function mayImport({ path, may, mayTypes = [] }: Layer): string {
  const namesOf = (paths: readonly string[]): string =>
    paths.map((each) => `\`${each.replace(/^src\//, '').replace(/\/$/, '')}\``).join(', ');
  // All that a room has in it belongs to it.
  const others = may.filter((each) => !path.startsWith(each) || each === 'src/');
  if (others.includes('src/')) return 'all';
  const parts = [
    ...(others.length === 0 ? [] : [namesOf(others)]),
    ...(mayTypes.length === 0 ? [] : [`types of ${namesOf(mayTypes)}`]),
  ];
  return parts.length === 0 ? 'nothing of ours' : parts.join('; ');
}

t.test('what a room may import is what the test of the layers lets it', (t) => {
  for (const [name = '', , said = ''] of tableBelow('docs/architecture.md', '## The rooms')) {
    const room = `${name.replaceAll('`', '')}/`;
    const own = layers.find(({ path }) => path === room);
    if (own === undefined) throw new Error(`no layer is ${room}`);
    const usual = mayImport(own);
    const within = layers
      .filter((layer) => layer.path.startsWith(room) && layer !== own && mayImport(layer) !== usual)
      .map((layer) => `\`${layer.path.slice(room.length).replace(/\/$/, '')}\`: ${mayImport(layer)}`);
    t.equal(said, [usual, ...within].join('. '), name);
  }
  t.end();
});

t.test('each call of the three ways is in the file of its row', (t) => {
  let followed = 0;
  for (const way of ['### An authorized GET', '### A reserved POST', '### A reload']) {
    for (const [file = '', calls = ''] of tableBelow('docs/architecture.md', way)) {
      const [, path = ''] = /\]\(\.\.\/(src\/[^)]+)\)/.exec(file) ?? [];
      const code = readProjectFile(path);
      for (const [, name = ''] of calls.matchAll(/`([^`]+)`/g)) {
        t.match(code, new RegExp(`\\b${name}\\b`), `${way}: ${path} has ${name}`);
        followed += 1;
      }
    }
  }
  t.ok(followed > 100, `${String(followed)} names`);
  t.end();
});
