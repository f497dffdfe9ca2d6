import t from 'tap';
import type { Folding } from '../../../../src/decision/route/conflicts/folded-table.js';
import { createSpeller } from '../../../../src/decision/route/conflicts/sample-paths.js';
import { routeOf, routePath } from '../route-samples.js';

const both: Folding = { case: true, slash: true, dots: false, suffix: false, pathInfo: false };

/** What is spelled for the first of some paths against the second; the others are there as well. */
function spelled(paths: readonly string[], folding: Folding = both, includesPlain = false): readonly string[] {
  const [guard = '', reached = ''] = paths;
  const spell = createSpeller(
    paths.map((path) => routeOf(`GET ${path}`)),
    folding,
    includesPlain,
  );
  return [...spell(routePath(guard), routePath(reached))].map((segments) => `/${segments.join('/')}`);
}

const rows: { name: string; paths: readonly string[]; folding?: Folding; expected: readonly string[] }[] = [
  { name: 'in upper case, with and without a slash', paths: ['/ab', '/{p}'], expected: ['/AB', '/AB/'] },
  {
    name: 'where the slash counts',
    paths: ['/ab', '/{p}'],
    folding: { case: true, slash: false, dots: false, suffix: false, pathInfo: false },
    expected: ['/AB'],
  },
  {
    name: 'where the case counts',
    paths: ['/ab', '/{p}'],
    folding: { case: false, slash: true, dots: false, suffix: false, pathInfo: false },
    expected: ['/ab', '/ab/'],
  },
  { name: 'a slash of its own', paths: ['/ab/', '/{p}/'], expected: ['/AB', '/AB/'] },
  {
    name: 'one that counts',
    paths: ['/ab/', '/{p}/'],
    folding: { case: true, slash: false, dots: false, suffix: false, pathInfo: false },
    expected: ['/AB/'],
  },
  { name: 'as the other path has it', paths: ['/ab/{q}', '/{p}/cd'], expected: ['/AB/cd', '/AB/cd/'] },
  { name: 'a case that no route writes', paths: ['/ab', '/{p}', '/AB'], expected: ['/Ab', '/Ab/'] },
  {
    name: 'the one that is left',
    paths: ['/abc', '/{p}', '/ABC', '/Abc', '/aBc', '/abC', '/AbC', '/aBC'],
    expected: ['/ABc', '/ABc/'],
  },
  { name: 'all of them where every one is written', paths: ['/a', '/{p}', '/A'], expected: ['/A', '/A/', '/a', '/a/'] },
  {
    name: 'all combinations of them',
    paths: ['/a/b', '/{p}/{q}', '/A/B'],
    expected: ['/A/B', '/A/B/', '/a/B', '/a/B/', '/A/b', '/A/b/', '/a/b', '/a/b/'],
  },
  { name: 'no letters', paths: ['/7', '/{p}'], expected: ['/7', '/7/'] },
  { name: 'a letter whose upper case is another text', paths: ['/\u00df', '/{p}'], expected: ['/\u00df', '/\u00df/'] },
  { name: 'text that no route has', paths: ['/{q}', '/{p}', '/x', '/X', '/xx'], expected: ['/xxx', '/xxx/'] },
  { name: 'the root', paths: ['/', '/{p}'], expected: ['/'] },
  { name: 'what is below one path only', paths: ['/ab/**', '/{p}'], expected: ['/AB', '/AB/'] },
  { name: 'what is below the other only', paths: ['/ab', '/{p}/**'], expected: ['/AB', '/AB/'] },
  {
    name: 'what is below both',
    paths: ['/ab/**', '/{p}/**'],
    expected: ['/AB', '/AB/', '/AB/x', '/AB/x/', '/AB/x/x', '/AB/x/x/'],
  },
  {
    name: 'where the slash counts, too',
    paths: ['/ab/**', '/{p}/**'],
    folding: { case: true, slash: false, dots: false, suffix: false, pathInfo: false },
    expected: ['/AB', '/AB/', '/AB/x', '/AB/x/', '/AB/x/x', '/AB/x/x/'],
  },
  {
    name: 'and beyond the longest path',
    paths: ['/ab/**', '/{p}/**', '/7/7/7'],
    expected: ['/AB', '/AB/', '/AB/x', '/AB/x/', '/AB/x/x', '/AB/x/x/', '/AB/x/x/x', '/AB/x/x/x/'],
  },
  { name: 'everything', paths: ['/**', '/**'], expected: ['/', '/x', '/x/', '/x/x', '/x/x/'] },
];

t.test('the spellings that are tried of one path against another', (t) => {
  for (const { name, paths, folding, expected } of rows) t.same(spelled(paths, folding), expected, name);
  t.end();
});

t.test('the spellings that a router which ignores endings would mix up', (t) => {
  const endings: Folding = { case: false, slash: false, dots: true, suffix: true, pathInfo: false };
  t.same(spelled(['/ab', '/{p}'], endings), ['/ab', '/ab.x', '/ab.'], 'in another format, and with a dot');
  t.same(
    spelled(['/ab/cd', '/{p}/{q}'], endings),
    ['/ab/cd', '/ab./cd', '/ab/cd.x', '/ab./cd.x', '/ab/cd.', '/ab./cd.'],
    'a format is that of the last segment',
  );
  t.same(
    spelled(['/ab', '/{p}', '/ab.', '/ab..', '/x'], { ...endings, suffix: false, pathInfo: false }),
    ['/ab', '/ab...'],
    'as no route writes it',
  );
  t.same(spelled(['/ab', '/{p}', '/x'], { ...endings, dots: false }), ['/ab', '/ab.xx']);
  t.same(spelled(['/ab', '/ab.json'], endings), ['/ab.json'], 'as the other path has it');
  t.same(spelled(['/ab', '/{p}'], { ...endings, case: true }), ['/AB'], 'one is enough');
  t.same(
    spelled(['/7', '/{p}'], { ...endings, case: true }),
    ['/7', '/7.x', '/7.'],
    'and there is none without a letter',
  );
  t.same(spelled(['/', '/{p}'], endings), ['/', '/.x'], 'nothing but a suffix');
  t.same(
    spelled(['/7/', '/{p}/{q}'], { ...endings, dots: false, slash: true }),
    ['/7/x', '/7/x/', '/7/', '/7/.x', '/7/.x/'],
    'a suffix of the slash at the end',
  );
  t.same(
    spelled(['/7/', '/{p}/{q}/{r}'], { ...endings, dots: false, slash: true }),
    ['/7/x/x', '/7/x/x/'],
    'which is the last segment',
  );
  t.same(
    spelled(['/ab', '/{p}'], { ...endings, dots: false }, true),
    ['/ab', '/ab.x'],
    'as it is, too, where the method alone may be read otherwise',
  );
  t.end();
});

t.test('no more than 64 combinations are tried of one pair', (t) => {
  const most = spelled(['/a/b/c/d/e/f', '/{1}/{2}/{3}/{4}/{5}/{6}', '/A/B/C/D/E/F'], {
    case: true,
    slash: false,
    dots: false,
    suffix: false,
    pathInfo: false,
  });
  t.same([most.length, new Set(most).size], [64, 64]);
  const capped = spelled(['/a/b/c/d/e/f/g', '/{1}/{2}/{3}/{4}/{5}/{6}/{7}', '/A/B/C/D/E/F/G'], {
    case: true,
    slash: false,
    dots: false,
    suffix: false,
    pathInfo: false,
  });
  t.same([capped.length, new Set(capped).size], [64, 64]);
  t.end();
});
