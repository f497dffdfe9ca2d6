/** What is proposed where: `|` is the cursor. */
import t from 'tap';
import { annotatedSchema } from '../../../src/config/docs/json-schema.js';
import { placeAt } from '../../../src/playground/editor/completion/place.js';
import { proposalsAt } from '../../../src/playground/editor/completion/proposals.js';
import { suiteJsonSchema } from '../../../src/policy-test/suite/suite.js';

/** Text, path, and whether it is a value. */
const places: readonly (readonly [string, string, boolean?])[] = [
  ['|', ''],
  ['li|', ''],
  ['listen:\n  |', 'listen'],
  ['listen:\n  host: a\n  |', 'listen'],
  ['listen:\n  host: a\n|', ''],
  ['listen:\n  tls:\n    cert|', 'listen.tls'],
  ['listen: { |', 'listen'],
  ['listen: { host: 1, po|', 'listen'],
  ['listen: { host: |', 'listen.host', true],
  ['listen: { host: 1 }\n|', ''],
  ['listen: {\n  host: "a, {b",\n  |', 'listen'],
  ['mode: |', 'mode', true],
  ['mode: en|', 'mode', true],
  ['mode:|', 'mode', true],
  ['routes:\n  - |', 'routes.[]'],
  ['routes:\n- |', 'routes.[]'],
  ['routes:\n- name: a\n  |', 'routes.[]'],
  ['routes:\n- name: a\n|', ''],
  ['routes:\n  - name: a\n    path: /a\n  - na|', 'routes.[]'],
  ['routes:\n  - name: a\n    idempotency:\n      mode: |', 'routes.[].idempotency.mode', true],
  ['routes:\n  - methods: [|', 'routes.[].methods.[]'],
  ['routes:\n  - methods: [GET, |', 'routes.[].methods.[]'],
  ['routes:\n  - any_of: [{ subjects: [a], per|', 'routes.[].any_of.[]'],
  ['routes:\n  - {name: a, mode: |', 'routes.[].mode', true],
  ['a:\n  - - b:\n        |', 'a.[].[].b'],
  ['"listen":\n  |', 'listen'],
  ['text: |-\n  a:\n  b\nmode: |', 'mode', true],
  ['# listen:\n|', ''],
  ['listen:\n\n  # words: with\n  |', 'listen'],
  ['a: http://b\nc: |', 'c', true],
  ["a: 'it''s: {'\nc: |", 'c', true],
];

const nowhere = ['# li|', 'a: b # c|', 'a: "b|', "a: 'b|", 'a: { b: "c|', 'text: |-\n  a|'];

t.test('where somebody writes', (t) => {
  for (const [marked, path, isValue = false] of places) {
    const place = placeOf(marked);
    t.same([place?.path.join('.'), place?.isValue], [path, isValue], marked);
  }
  for (const marked of nowhere) t.equal(placeOf(marked), null, marked);
  t.end();
});

t.test('what the map has already, above and below', (t) => {
  const marked =
    'routes:\n  - name: a\n    |\n    # words\n    path: /a\n    any_of:\n      - x: 1\n    mode: shadow\n  - grpc: b\n';
  t.same([...(placeOf(marked)?.siblings ?? [])], ['name', 'path', 'any_of', 'mode']);
  t.same([...(placeOf('listen: { host: a, |')?.siblings ?? [])], ['host']);
  t.end();
});

const config = annotatedSchema();
const proposed = (marked: string, schema = config): readonly string[] => {
  const place = placeOf(marked);
  return place === null ? [] : proposalsAt(schema, place).map(({ label }) => label);
};

t.test('keys of the schema and words of closed lists', (t) => {
  t.ok(proposed('|').includes('routes'));
  t.notOk(proposed('routes:\n  - name: a\n|').includes('routes'), 'none that is there already');
  t.ok(proposed('routes:\n  - |').includes('methods'));
  t.same(proposed('mode: |').toSorted(), ['enforce', 'shadow']);
  t.ok(proposed('issuers:\n  core:\n    |').includes('audience'), 'under a name that people choose');
  t.same(proposed('issuers:\n  core:\n    profile: |').toSorted(), ['core', 'kubernetes', 'oauth', 'spiffe']);
  t.same(proposed('listen:\n  http2: |'), ['true', 'false']);
  t.same(proposed('constructor:\n  |'), []);
  const [name] = proposalsAt(config, placeOf('routes:\n  - na|') ?? fail());
  t.match(name, { label: 'name', isRequired: true, holds: 'value', about: /^Unique name.* Allowed: / });
  const holds = Object.fromEntries(proposalsAt(config, placeOf('|') ?? fail()).map((one) => [one.label, one.holds]));
  t.match(holds, { listen: 'map', routes: 'maps', mode: 'value' });
  t.end();
});

t.test('policy tests', (t) => {
  const tests = suiteJsonSchema();
  t.same(proposed('|', tests), ['config', 'cases']);
  const keys = ['name', 'request', 'claims', 'session', 'credential', 'at', 'listener', 'expect'];
  t.same(proposed('cases:\n  - |', tests), keys);
  t.ok(proposed('cases:\n  - expect: { reason: |', tests).includes('permission_missing'));
  t.end();
});

function placeOf(marked: string): ReturnType<typeof placeAt> {
  const at = marked.lastIndexOf('|');
  const cursor = /\|(?!-)/.exec(marked)?.index ?? at;
  return placeAt(marked.slice(0, cursor) + marked.slice(cursor + 1), cursor);
}

function fail(): never {
  throw new Error('there is no place');
}
