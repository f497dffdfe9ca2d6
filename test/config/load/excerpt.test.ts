import fc from 'fast-check';
import t from 'tap';
import { createExcerpts } from '../../../src/config/load/excerpt.js';
import { configText, inspect } from '../inspection.js';

const all = (): boolean => true;

/** The excerpt of a place, in two lines. */
function excerpt(text: string, line: number, column: number): readonly string[] {
  return createExcerpts(text, all)({ line, column });
}

const places: readonly {
  readonly name: string;
  readonly text: string;
  readonly place: readonly [number, number];
  readonly expected: readonly string[];
}[] = [
  { name: 'a line within', text: 'a: 1\nbcd: 2\n', place: [2, 6], expected: ['   2 | bcd: 2', '     |      ^'] },
  { name: 'the first column', text: 'a: 1\n', place: [1, 1], expected: ['   1 | a: 1', '     | ^'] },
  { name: 'past the end', text: 'a: 1', place: [1, 5], expected: ['   1 | a: 1', '     |     ^'] },
  { name: 'carriage returns', text: 'a: 1\r\nb: 2\r\n', place: [2, 4], expected: ['   2 | b: 2', '     |    ^'] },
  { name: 'a byte order mark', text: '\ufeffa: 1\n', place: [1, 5], expected: ['   1 | a: 1', '     |    ^'] },
  { name: 'tabs', text: 'a:\t[b,\tc]\n', place: [1, 8], expected: ['   1 | a:  [b,  c]', '     |          ^'] },
  {
    name: 'wide characters',
    text: 'a: ["日本", x]\n',
    place: [1, 11],
    expected: ['   1 | a: ["日本", x]', '     |             ^'],
  },
  {
    name: 'an emoji of two units',
    text: 'a: ["😀", x]\n',
    place: [1, 11],
    expected: ['   1 | a: ["😀", x]', '     |           ^'],
  },
  {
    name: 'a combining mark',
    text: 'a: ["e\u0301", x]\n',
    place: [1, 11],
    expected: ['   1 | a: ["e\u0301", x]', '     |          ^'],
  },
  {
    name: 'controls and directions',
    text: 'a: ["\u001b\u202e", x]\n',
    place: [1, 11],
    expected: ['   1 | a: ["\\x1b\\u{202e}", x]', '     |                     ^'],
  },
  { name: 'a blank line', text: 'a: 1\n  \n', place: [2, 1], expected: [] },
  { name: 'no line at all', text: 'a: 1\n', place: [9, 1], expected: [] },
];

t.test('the line, and a caret under the place', (t) => {
  for (const {
    name,
    text,
    place: [line, column],
    expected,
  } of places) {
    t.same(excerpt(text, line, column), expected, name);
  }
  t.end();
});

t.test('a long line is cut around the place, which stays in sight', (t) => {
  const text = `a: [${Array.from({ length: 2_000 }, (_, index) => `item-${String(index)}`).join(', ')}]`;
  for (const item of ['item-0,', 'item-7,', 'item-1000,', 'item-1999]']) {
    const at = text.indexOf(item);
    const [line = '', caret = ''] = excerpt(text, 1, at + 1);
    t.equal(line.slice(caret.indexOf('^'), caret.indexOf('^') + item.length), item, item);
    t.ok(line.length <= 110, `${item}: ${String(line.length)} columns`);
  }
  t.match(excerpt(text, 1, 5_000)[0], /^ {3}1 \| ….*…$/);
  t.equal(excerpt(`b: "${'x'.repeat(900_000)}"\nc: d`, 2, 4)[0], '   2 | c: d', 'and another line costs nothing of it');
  t.end();
});

/** What stands for a secret in what follows. It has nothing that YAML would have to have quoted. */
const secret = 'hunter2-and-more';

const spellings: readonly { readonly name: string; readonly text: string }[] = [
  { name: 'the key itself', text: `sessions:\n  api_key: ${secret}\n` },
  { name: 'misspelt', text: `sessions:\n  api_kye: ${secret}\n` },
  { name: 'in a map of a line', text: `sessions: { core_url: x, api_key: ${secret}, api_domain: y }\n` },
  { name: 'in quotes', text: `sessions: { core_url: x, "api_key": "a, b: ${secret}", api_domain: y }\n` },
  { name: 'in quotes over lines', text: `sessions:\n  api_key: "a\n    ${secret}"\n` },
  { name: 'folded', text: `sessions:\n  api_key: >-\n    ${secret}\n` },
  { name: 'in the next line', text: `sessions:\n  api_key:\n    ${secret}\n` },
  { name: 'without a blank behind the colon', text: `sessions:\n  core_url: http://x\n  api_key:${secret}\n` },
  { name: 'without a colon', text: `sessions:\n  api_key ${secret}\n` },
  { name: 'without a colon, before another key', text: `sessions:\n  api_key ${secret}\n  core_url: x\n` },
  { name: 'without a blank, before another key', text: `sessions:\n  api_key:${secret}\n  core_url: x\n` },
  { name: 'behind an open quote', text: `sessions:\n  core_url: "http://x\n  api_key: ${secret}\n` },
  { name: 'behind an open bracket', text: `listen: { host: x\nsessions:\n  api_key: ${secret}\n` },
  { name: 'behind a tab', text: `sessions:\n\tapi_key: ${secret}\n` },
  { name: 'as a key of its own', text: `store:\n  redis:\n    password: ${secret}\n` },
  { name: 'in a list', text: `store:\n  redis:\n    passwords:\n    - ${secret}\n    - [${secret}]\n` },
  { name: 'in the place of a file', text: `store: { redis: { url: "redis://x", password_file: ${secret} } }\n` },
  {
    name: 'in the place of a file that holds a key',
    text: `identity:\n  assertion:\n    key_file: |\n      -----BEGIN PRIVATE KEY-----\n      ${secret}\n`,
  },
  { name: 'in the place of a map', text: `sessions: ${secret}\n` },
  { name: 'in the place of the config', text: `${secret}\n` },
  { name: 'in a URL', text: `upstream: { url: "http://user:${secret}@x" }\n` },
  { name: 'in a query', text: `issuers: { core: { jwks_url: "https://x/keys?api_key=${secret}#a" } }\n` },
  { name: 'a token', text: `revoked: { token_ids: ["eyJhbGciOiJSUzI1NiJ9.${secret}.${secret} "] }\n` },
  { name: 'in a comment', text: `listen: 5   # password: ${secret}\n` },
  { name: 'a field', text: `upstream: { url: "Bearer ${secret}" }\n` },
  { name: 'behind an explicit key', text: `sessions:\n  core_url: x\n  ? api_key\n  : ${secret}\n` },
  { name: 'before a colon in another line', text: `sessions:\n  api_key: ${secret}\n:\n` },
  { name: 'beside what is wrong', text: `sessions: { api_key: ${secret}, core_url: 5 }\n` },
];

/** All that is said of a config: problems, their excerpts, notes. */
function outputOf(text: string): string {
  const { problems, notes, excerptOf } = inspect(text);
  return JSON.stringify([problems.map((problem) => [problem, excerptOf(problem)]), notes]);
}

t.test('no excerpt and no problem shows a secret, whatever is wrong around it', (t) => {
  for (const { name, text } of spellings) {
    t.not(inspect(text).problems.length, 0, `${name}: something is wrong`);
    t.notMatch(outputOf(text), secret, name);
    t.notMatch(outputOf(`${configText()}${text}`), secret, `${name}, in a whole config`);
  }
  t.end();
});

t.test('nor where a line of the file was lost or its indentation changed', (t) => {
  const whole = spellings.slice(0, 7).map(({ text }) => text);
  const marks = fc.constantFrom('  ', '- ', '\t', '"', "'", '{', '[', ']', '}', ':', '# ', '| ', '');
  const edits = fc.array(fc.record({ line: fc.nat(12), edit: marks }), { maxLength: 3 });
  fc.assert(
    fc.property(fc.constantFrom(...whole), edits, (text, list) => {
      const lines = `${configText()}${text}`.split('\n');
      for (const { line, edit } of list) {
        if (!(lines[line] ?? secret).includes(secret)) lines[line] = `${edit}${lines[line] ?? ''}`;
      }
      return !outputOf(lines.join('\n')).includes(secret);
    }),
    { numRuns: 1_000 },
  );
  t.end();
});

t.test('what is no secret is shown: values of known keys, placeholders, names that only sound like one', (t) => {
  const rows = [
    { text: 'listen: { host: 127.0.0.1, port: 99999 }\n', shows: 'listen: { host: 127.0.0.1, port: 99999 }' },
    {
      text: 'sessions: { core_url: x, api_domain: "${env:DOMAIN}" }\n',
      shows: 'sessions: { core_url: x, api_domain: "${env:DOMAIN}" }',
    },
    {
      text: 'routes:\n  - permissions: ["secret:read", tokens:write, 5]\n',
      shows: '  - permissions: ["secret:read", tokens:write, 5]',
    },
    {
      text: 'store: { redis: { password_file: /run/secrets/redis, url: 5 } }\n',
      shows: 'store: { redis: { password_file: /run/secrets/redis, url: 5 } }',
    },
    { text: 'routes:\n  - idempotency: requird\n', shows: '  - idempotency: requird' },
    { text: 'issuers:\n  core:\n    token_type: 5 # as minted\n', shows: '    token_type: 5 # as minted' },
  ];
  for (const { text, shows } of rows) {
    const { problems, excerptOf } = inspect(text);
    t.ok(
      problems.flatMap(excerptOf).some((line) => line.replace(/^ *\d+ \| /, '') === shows),
      `${shows}\n${problems.flatMap(excerptOf).join('\n')}`,
    );
  }
  t.end();
});

t.test('a long line is looked at once, not once for each text in it', (t) => {
  const { problems, excerptOf } = inspect('"'.repeat(400_000));
  t.same(problems.flatMap(excerptOf), ['   1 | ***…', '     | ^']);
  const many = inspect(`a: 1 # ${'://x@'.repeat(140_000)}\n`);
  t.match(many.problems.flatMap(many.excerptOf)[0], /^ {3}1 \| a: /);
  t.end();
});
