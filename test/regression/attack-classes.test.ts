import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { projectFiles } from '../support/source-files.js';
import { findings, requirements } from './attack-classes.js';

/** Names of tests: what stands in quotes after `t.test(` or `name:`. */
const names = projectFiles('test').filter(path => /\.test\.ts$|(?:contract|suite|rotation)\.ts$/.test(path)).flatMap((path) => {
  const text = readFileSync(join(projectDir, path), 'utf8');
  return Array.from(text.matchAll(/\.test\(\s*(['`])((?:\\.|(?!\1)[^\\])*)\1/g), ([, , name = '']) => name)
    .concat(Array.from(text.matchAll(/\b(?:name|title): (['`])((?:\\.|(?!\1)[^\\])*)\1/g), ([, , name = '']) => name));
});

t.test('each class of attack has a test that bears its number', (t) => {
  t.ok(names.length > 500, `${String(names.length)} names`);
  const without = [...Object.keys(requirements), ...Object.keys(findings)].filter(id => !names.some(name => new RegExp(`(?<![\\w-])${id}(?!\\d)`).test(name)));
  t.same(without, []);
  t.end();
});

t.test('no test bears a number that stands for nothing', (t) => {
  const known = new Set([...Object.keys(requirements), ...Object.keys(findings)]);
  const used = names.flatMap(name => Array.from(name.matchAll(/(?<![\w-])(?:R-\d\d|F\d{1,2})(?!\d)/g), ([id]) => id));
  t.same(used.filter(id => !known.has(id)), []);
  t.end();
});
