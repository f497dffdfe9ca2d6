import t from 'tap';
import { configText, inspect, problemsOf, withRoutes } from '../inspection.js';

const refused = [
  { name: 'nothing', input: '', expected: ['c.yaml:1:1: error: the file is empty; allowed: a config'] },
  { name: 'white space', input: ' \n\n', expected: ['c.yaml:1:1: error: the file is empty; allowed: a config'] },
  { name: 'comments', input: '# nothing\n', expected: ['c.yaml:1:1: error: the file is empty; allowed: a config'] },
  { name: 'null', input: 'null\n', expected: ['c.yaml:1:1: error: the file is empty; allowed: a config'] },
  { name: 'a list', input: '- a\n', expected: ['c.yaml:1:1: error: the config is a list; allowed: a map'] },
  { name: 'a text', input: 'text\n', expected: ['c.yaml:1:1: error: the config is one value; allowed: a map'] },
  {
    name: 'a second document',
    input: `${configText()}---\n{}\n`,
    expected: ['c.yaml:5:1: error: the file has a second document; allowed: one document'],
  },
  {
    name: 'YAML 1.1',
    input: `%YAML 1.1\n---\n${configText()}`,
    expected: ['c.yaml:1:1: error: the file has a directive; allowed: YAML 1.2 without directives'],
  },
] as const;

const broken: readonly {
  readonly name: string;
  readonly input: string;
  readonly place: string;
  readonly says: string;
}[] = [
  {
    name: 'a bracket that stays open',
    input: 'a: [b\nc: d\n',
    place: '1:4',
    says: 'a [ is not closed; allowed: ] at the end, ',
  },
  {
    name: 'a bracket in front of more lines',
    input: 'routes:\n- methods: [GET\n  path: /a\n- methods: [POST]\n  path: /b\n',
    place: '2:12',
    says: 'a [ is not closed; allowed: ] at the end, and lines between that are indented further than the key',
  },
  {
    name: 'a brace that stays open',
    input: 'a: { b: 1\nc: { d: 2 }\n',
    place: '1:4',
    says: 'a { is not closed; allowed: } at the end, ',
  },
  { name: 'the inner one of two', input: 'a: [b, { c: d ]\ne: f\n', place: '1:8', says: 'a { is not closed; ' },
  {
    name: 'a quote that stays open',
    input: 'a:\n  b: "c\n  d: e\n',
    place: '2:6',
    says: 'a quote is not closed; allowed: " at the end of the text',
  },
  {
    name: 'the other quote',
    input: "a:\n  b: 'c\nd: e\n",
    place: '2:6',
    says: "a quote is not closed; allowed: ' at the end of the text",
  },
  { name: 'a tab', input: 'listen:\n\thost: a\n', place: '2:1', says: 'a tab indents the line; allowed: spaces' },
  {
    name: 'two keys in a line',
    input: 'listen: host: a\n',
    place: '1:9',
    says: 'a line has two keys; allowed: quotes around a text with ": " in it, ',
  },
  {
    name: 'a line too far in',
    input: 'a:\n  b: c\n    d: e\n',
    place: '3:5',
    says: 'the line is indented further than the key before it, ',
  },
  {
    name: 'a line too far out',
    input: 'a:\n  b: c\n d: e\n',
    place: '3:1',
    says: 'the line is indented otherwise than the keys before it; ',
  },
  {
    name: 'a key without a colon',
    input: 'a:\n  b c\n  d: e\n',
    place: '2:3',
    says: 'a key has no colon; allowed: `key: value`, with a space after the colon',
  },
  {
    name: 'an item without a dash',
    input: 'a:\n  - b: c\n   d: e\n',
    place: '3:1',
    says: 'the line is neither an item of the list nor part of the one before; ',
  },
  {
    name: 'an asterisk',
    input: 'a: [*]\n',
    place: '1:5',
    says: '* and & begin an alias and an anchor; allowed: quotes around a text that begins so, such as "*"',
  },
  {
    name: 'a tag that leads nowhere',
    input: 'a: !b!c d\n',
    place: '1:4',
    says: '! begins a tag; allowed: the value without it; quotes around a text that begins so',
  },
  {
    name: 'another first character',
    input: 'a: @b\n',
    place: '1:4',
    says: 'a text may not begin with this character; allowed: quotes around the text',
  },
  {
    name: 'an escape of another language',
    input: 'a: "\\d+"\n',
    place: '1:5',
    says: 'there is no such escape in double quotes; allowed: \\\\ for a backslash, or single quotes',
  },
  { name: 'a closing bracket too many', input: 'a: ]\n', place: '1:4', says: 'a ] closes nothing; ' },
  {
    name: 'two commas',
    input: 'a: { b: 1,, c: 2 }\n',
    place: '1:11',
    says: 'a comma follows nothing; allowed: one comma between values',
  },
  {
    name: 'no comma in a list',
    input: 'a: [ "b" "c" ]\n',
    place: '1:10',
    says: 'a comma is missing before this; allowed: a comma between two values, ',
  },
  {
    name: 'no comma in a map',
    input: 'a: { "b": "c" "d": "e" }\n',
    place: '1:15',
    says: 'a comma is missing before this; ',
  },
  {
    name: 'no comma at the end of a line',
    input: 'a: { b: c\n  d: e }\n',
    place: '2:3',
    says: 'a comma is missing before this; ',
  },
  {
    name: 'a text behind a quote',
    input: 'a: "b" c\n',
    place: '1:8',
    says: 'something follows the end of the value; ',
  },
  { name: 'an anchor without a name', input: 'a: &\n', place: '1:4', says: '* and & begin an alias and an anchor; ' },
  { name: 'an empty line of another document', input: 'a: b\n... c\n', place: '2:5', says: '' },
];

t.test('of broken YAML the cause is told, once, at the place to mend', (t) => {
  for (const { name, input, place, says } of broken) {
    const problems = problemsOf(input);
    t.equal(inspect(input).config, null, name);
    t.equal(problems.length, 1, `${name}: ${problems.join('\n')}`);
    t.ok(
      problems[0]?.startsWith(`c.yaml:${place}: error: the YAML is malformed: ${says}`),
      `${name}: ${problems.join()}`,
    );
    t.notMatch(problems[0], /YAML 1\.2/, 'and what would be right is no name of a standard');
  }
  t.end();
});

t.test('what is no single YAML 1.2 document is refused', (t) => {
  for (const { name, input, expected } of refused) {
    t.equal(inspect(input).config, null, name);
    t.same(problemsOf(input), expected, name);
  }
  t.end();
});

t.test('a brace without quotes in brackets is explained', (t) => {
  for (const value of ['[{ path: [/a/{x}] }]', '[{ path: ${env:X} }]']) {
    t.match(
      problemsOf(configText({ routes: value }))[0],
      /a \{ stands within a text; allowed: inside \{…\} and \[…\], quotes around texts with \{ \} \[ \] or a comma in them$/,
      value,
    );
  }
  t.end();
});

const extras = [
  {
    name: 'an unknown key',
    input: { lisen: '1' },
    expected: [
      /^c\.yaml:5:1: error: unknown key "lisen" in the config, did you mean "listen"\?; allowed: listen, admin, /,
    ],
  },
  {
    name: 'a key unlike any',
    input: { zebra: '1' },
    expected: [/^c\.yaml:5:1: error: unknown key "zebra" in the config; allowed: listen, admin, /],
  },
  { name: 'a name of the language', input: { __proto__x: '1' }, expected: [/unknown key "__proto__x"/] },
  {
    name: 'a prototype',
    input: { '"__proto__"': '{ a: 1 }' },
    expected: [/^c\.yaml:5:1: error: the config has the key "__proto__", which is never read; allowed: another key$/],
  },
  { name: 'a constructor', input: { constructor: '1' }, expected: [/unknown key "constructor"/] },
  {
    name: 'a key within',
    input: { log: '{ levl: info }' },
    expected: [
      /^c\.yaml:5:8: error: unknown key "levl" in log, did you mean "level"\?; allowed: level, client_address, user_agent, refusals_per_second$/,
    ],
  },
  {
    name: 'a prototype within',
    input: { log: '{ __proto__: { level: debug } }' },
    expected: [/^c\.yaml:5:8: error: log has the key "__proto__", which is never read; allowed: another key$/],
  },
  {
    name: 'a prototype among claims',
    input: {
      issuers:
        '{ a: { profile: oauth, issuer: "https://a.example", audience: b, claims: { require: { __proto__: x } } } }',
      sessions: '{ core_url: "http://127.0.0.1:3567", api_domain: "https://a.example" }',
      routes: '[{ name: a, methods: [GET], path: /a, accept: [session], session: { claims: { "__proto__": x } } }]',
    },
    expected: [
      /: error: issuers\.a\.claims\.require has the key "__proto__", which is never read; allowed: another key$/,
      /: error: routes\[0\]\.session\.claims has the key "__proto__", which is never read; allowed: another key$/,
    ],
  },
  {
    name: 'a merge key',
    input: { log: '{ <<: { level: debug } }' },
    expected: [
      /^c\.yaml:5:8: error: unknown key "<<" in log; allowed: level, client_address, user_agent, refusals_per_second$/,
    ],
  },
  {
    name: 'a number as a key',
    input: { 5: '1' },
    expected: [/: error: a key in the config is no text; allowed: keys in quotes/],
  },
  {
    name: 'a list as a key',
    input: { '? [a]\n': 'b' },
    expected: [/: error: a key in the config is no text; allowed: quotes around a text that begins with \{ or \[$/],
  },
  {
    name: 'an anchor',
    input: { log: '&a { level: info }' },
    expected: [/^c\.yaml:5:9: error: log has an anchor; allowed: the value without it$/],
  },
  {
    name: 'a tag',
    input: { log: '{ level: !!str info }' },
    expected: [/: error: log\.level has a tag; allowed: the value without it$/],
  },
  {
    name: 'a tag that the library knows, on what it cannot be',
    input: { log: '{ !!binary level: info }' },
    expected: [/: error: log has a tag; allowed: the value without it$/],
  },
] as const;

t.test('unknown keys, merge keys, anchors and tags are errors', (t) => {
  for (const { name, input, expected } of extras) {
    const problems = problemsOf(configText(input));
    t.equal(problems.length, expected.length, `${name}: ${problems.join('\n')}`);
    expected.forEach((line, index) => t.match(problems[index], line, name));
  }
  t.end();
});

t.test('an alias is refused, so that none can be a bomb', (t) => {
  const names = Array.from('abcdefghij');
  const nine = (item: string): string => Array<string>(9).fill(item).join(', ');
  const bomb = names
    .map((name, level) => `${name}: &${name} [${nine(level === 0 ? 'x' : `*${names[level - 1] ?? ''}`)}]\n`)
    .join('');
  t.equal(inspect(bomb).config, null);
  t.ok(problemsOf(bomb).includes('c.yaml:2:8: error: b[0] has an alias; allowed: the value itself'));
  t.same(problemsOf(`${configText({ upstream: '&u { url: "http://127.0.0.1:3000" }' })}receiver: *u\n`), [
    'c.yaml:2:14: error: upstream has an anchor; allowed: the value without it',
    'c.yaml:5:11: error: receiver has an alias; allowed: the value itself',
  ]);
  t.end();
});

t.test('a repeated key is an error at its second place', (t) => {
  t.same(problemsOf(configText({ log: '{ level: info, level: debug }' })), [
    'c.yaml:5:21: error: the key "level" in log is given twice: first in line 5; allowed: each key once',
  ]);
  t.same(problemsOf(`${configText()}upstream: { url: "http://127.0.0.1:1" }\n`), [
    'c.yaml:5:1: error: the key "upstream" in the config is given twice: first in line 2; allowed: each key once',
  ]);
  t.end();
});

t.test('places are right after a byte order mark, carriage returns and letters beyond ASCII', (t) => {
  t.match(problemsOf(`\ufeff${configText({ lig: '1' })}`)[0], /^c\.yaml:5:1: /);
  t.match(problemsOf(configText({ lig: '1' }).replaceAll('\n', '\r\n'))[0], /^c\.yaml:5:1: /);
  t.match(problemsOf(configText({ log: '{ é: 1, "😀": 2 }' }))[0], /^c\.yaml:5:8: error: unknown key "é" /);
  t.match(problemsOf(configText({ log: '{ é: 1, "😀": 2 }' }))[1], /^c\.yaml:5:14: error: unknown key "😀" /);
  t.end();
});

t.test('an empty key where null means something is a warning, and a null that is written is not', (t) => {
  const route = 'name: a, methods: [GET], path: /a, subjects: [checkout], permissions: [read]';
  const warning = (place: string, key: string): string =>
    `c.yaml:${place}: warning: ${key} is empty, which counts as null; allowed: a value, or null where that is meant`;
  const text = (tail: string): string =>
    `${configText({ routes: null })}limits: { max_in_flight: 5 }\nroutes:\n- name: a\n  methods: [GET]\n  path: /a\n  subjects: [checkout]\n  permissions: [read]\n${tail}`;
  t.same(problemsOf(text('  limits: # 10 a second\n')), [warning('11:11', 'routes[0].limits')]);
  for (const written of ['null', '~', 'Null', 'NULL']) t.same(problemsOf(text(`  limits: ${written}\n`)), [], written);
  t.same(problemsOf(withRoutes([`${route}, limits: `], { limits: '{ max_in_flight: 5 }' })).length, 1, 'in braces');
  t.match(problemsOf(configText({ revoked: '{ issued_before: }' })), [/revoked\.issued_before is empty, /]);
  t.match(problemsOf(configText({ listen: '{ host: 127.0.0.1, port: 8080, dpop: }' })), [/listen\.dpop is empty, /]);
  t.match(problemsOf(configText({ store: '' })), [/^c\.yaml:5:8: .*store is empty, /]);
  t.match(problemsOf(configText({ log: '{ level: }' })), [/: error: log\.level is empty; allowed: /]);
  t.end();
});

t.test('every problem is one line of what can be seen', (t) => {
  const lines = problemsOf(
    configText({ log: '{ level: "a\\n\\u2028\\u202e\\u001b[31m\\ud800" }', '"k\\n\\u0085"': '1' }),
  );
  t.equal(lines.length, 2);
  for (const line of lines) t.notMatch(line, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
  t.match(lines[0], /log\.level is "a\\n\\u\{2028\}\\u\{202e\}\\u001b\[31m\\ud800"; /);
  t.end();
});

const hostile = [
  { name: 'deep brackets', input: '['.repeat(500_000) },
  { name: 'deep brackets that close', input: `${'['.repeat(5_000)}${']'.repeat(5_000)}` },
  { name: 'deep maps', input: Array.from({ length: 1_000 }, (_, depth) => `${' '.repeat(depth)}a:\n`).join('') },
  { name: 'deep lists', input: '- '.repeat(100_000) },
  { name: 'deep keys', input: '? '.repeat(100_000) },
];

t.test('a deeply nested file is refused before anything recurses into it', (t) => {
  for (const { name, input } of hostile) {
    t.match(problemsOf(input), [/error: the file is nested too deeply; allowed: at most 32 levels$/], name);
  }
  t.end();
});

t.test('a file of more than 1 MiB is refused', (t) => {
  const text = configText();
  const padding = (bytes: number): string => `${text}#${'x'.repeat(bytes - Buffer.byteLength(text) - 2)}\n`;
  t.same(problemsOf(padding(1_048_576)), []);
  t.same(problemsOf(padding(1_048_577)), ['c.yaml:1:1: error: the file is too large; allowed: at most 1MiB']);
  t.same(
    problemsOf(`é${padding(1_048_575)}`),
    ['c.yaml:1:1: error: the file is too large; allowed: at most 1MiB'],
    'in bytes',
  );
  t.end();
});

t.test('thousands of problems are cut, and said to be', (t) => {
  const lines = problemsOf(Array.from({ length: 1_500 }, (_, number) => `k${number}: 1\n`).join(''));
  t.equal(lines.length, 1_001);
  t.match(lines.at(-1), /: error: 50\d more problems are not listed; /);
  t.end();
});
