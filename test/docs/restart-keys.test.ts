/** What counts at start only is named by pages and by the chart as the sections declare it. */
import t from 'tap';
import { keyChanges, sectionNames } from '../../src/config/sections/index.js';
import { saidByAnother } from '../../src/config/schema/key-changes.js';
import { projectFiles, readProjectFile } from '../support/source-files.js';
import { codeSpans } from './pages.js';

interface StartSection {
  readonly name: string;
  /** First parts of its keys that count at start, and of those that are reloaded. */
  readonly atStart: readonly string[];
  readonly reloaded: readonly string[];
}

const startSections: readonly StartSection[] = sectionNames.flatMap((name) => {
  const all = Object.entries(keyChanges[name]);
  // Whether a map is there is said by the keys in it.
  const keys = all.filter(
    ([key, change]) => change !== saidByAnother && !all.some(([other]) => other.startsWith(`${key}.`)),
  );
  const partsOf = (restart: boolean): readonly string[] => [
    ...new Set(
      keys.filter(([, change]) => (change.restart === true) === restart).map(([key]) => key.split('.')[0] ?? ''),
    ),
  ];
  const section = { name, atStart: partsOf(true), reloaded: partsOf(false) };
  return section.atStart.length === 0 ? [] : [section];
});

/** Those of which no key is reloaded. */
const whole = startSections.filter(({ reloaded }) => reloaded.length === 0).map(({ name }) => name);

/** The paths that a page has to name: a section, the one part of it that counts, or the one part that does not. */
const named = startSections.flatMap(({ name, atStart, reloaded }) => {
  if (reloaded.length === 0) return [name];
  return atStart.length === 1 ? [`${name}.${atStart.join()}`] : [name, ...reloaded.map((part) => `${name}.${part}`)];
});

t.test('the sections say what counts at start', (t) => {
  t.same(
    startSections.filter(({ reloaded }) => reloaded.length > 0).map(({ name }) => name),
    ['egress', 'telemetry'],
  );
  t.ok(['listen', 'workers', 'decide', 'egress.listen', 'telemetry.traces'].every((name) => named.includes(name)));
  t.end();
});

t.test('each page that lists it names all of it', (t) => {
  const found: string[] = [];
  // Decisions are as they were when they were made.
  for (const page of projectFiles('docs').filter((path) => path.endsWith('.md') && !path.startsWith('docs/adr/'))) {
    const text = readProjectFile(page).replace(/\s+/g, ' ');
    for (const [list] of text.matchAll(/`listen`, `admin`(?:(?:,? and|,| but for)? `[\w.]+`)+/g)) {
      // What the chart adds to a config is another list.
      if (list.includes('`shutdown`')) continue;
      t.same(codeSpans(list).toSorted(), named.toSorted(), `${page}: ${list}`);
      found.push(page);
    }
  }
  t.same(found.toSorted(), [
    'docs/contract.md',
    'docs/deployment.md',
    'docs/operations.md',
    'docs/systemd.md',
    'docs/troubleshooting.md',
  ]);
  t.end();
});

t.test('the checksum of the chart is of all of it', (t) => {
  const template = readProjectFile('helm/sallyport/templates/_config.tpl');
  const [, sections = ''] = /\$start := pick \$config ((?:"\w+" )+)\}\}/.exec(template) ?? [];
  t.same([...sections.matchAll(/\w+/g)].flat().toSorted(), whole.toSorted());
  for (const { name, atStart, reloaded } of startSections.filter((section) => section.reloaded.length > 0)) {
    const [part = ''] = atStart.length === 1 ? atStart : reloaded;
    const taken = atStart.length === 1 ? `(pick . "${part}")` : `(omit . "${part}")`;
    t.ok(template.includes(`{{- with $config.${name} }}{{ $_ := set $start "${name}" ${taken} }}{{ end }}`), name);
  }
  t.end();
});
