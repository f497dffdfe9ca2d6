import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { shippedSchema } from '../../../src/config/docs/json-schema.js';
import { saidByAnother, type KeyChanges } from '../../../src/config/schema/key-changes.js';
import { keyChanges, sectionNames, sections } from '../../../src/config/sections/index.js';
import { targetKeys } from '../../../src/config/sections/egress/targets.js';
import { tokenKeys } from '../../../src/config/sections/egress/tokens.js';
import { issuerKeys } from '../../../src/config/sections/issuers/issuers.js';
import { routeKeys } from '../../../src/config/sections/routes/routes.js';
import { projectDir } from '../../support/project-dir.js';

interface Node {
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: Node;
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
  readonly oneOf?: readonly Node[];
}

/** Keys that hold a value and no further keys, from the section. */
function leavesOf(node: Node, path = ''): readonly string[] {
  const maps = [node, ...(node.anyOf ?? []), ...(node.oneOf ?? [])].flatMap(({ properties }) => properties ?? []);
  const entries = maps.flatMap((properties): readonly (readonly [string, Node])[] => Object.entries(properties));
  if (entries.length === 0) return [path];
  return entries.flatMap(([key, inner]) => leavesOf(inner, path === '' ? key : `${path}.${key}`));
}

function isAnswered(leaf: string, keys: Readonly<Record<string, { readonly whole?: true }>>): boolean {
  if (Object.hasOwn(keys, leaf)) return true;
  return Object.entries(keys).some(([key, { whole }]) => whole === true && leaf.startsWith(`${key}.`));
}

function unanswered(node: Node, keys: Readonly<Record<string, { readonly whole?: true }>>): readonly string[] {
  return leavesOf(node).filter((leaf) => !isAnswered(leaf, keys));
}

const { properties = {} } = shippedSchema() as Node;

interface Answered {
  readonly name: string;
  readonly node: Node;
  readonly keys: KeyChanges<never>;
}

/** Each section as it is written, with what is said of its keys. */
const answered: readonly Answered[] = sectionNames.map((name) => {
  const node = properties[name] ?? {};
  if (name === 'issuers') return { name, node: node.additionalProperties ?? {}, keys: issuerKeys };
  if (name === 'routes') return { name, node: node.items ?? {}, keys: routeKeys };
  return { name, node, keys: keyChanges[name] };
});

t.test('each key says what a reload makes of it, and whether diff shows it', (t) => {
  for (const { name, node, keys } of answered) {
    t.same(unanswered(node, keys), [], `${name}: every key has an answer`);
    const leaves = leavesOf(node);
    const strays = Object.keys(keys).filter(
      (key) => key !== '' && !leaves.some((leaf) => leaf === key || leaf.startsWith(`${key}.`)),
    );
    t.same(strays, [], `${name}: no answer is for a key that is not there`);
  }
  t.end();
});

/** What is said of the keys of a section, of an issuer, of a route, of a target and of a token. */
const compared: readonly Answered[] = [
  ...answered,
  { name: 'egress.targets', node: inner('targets').items ?? {}, keys: targetKeys },
  { name: 'egress.tokens', node: inner('tokens').additionalProperties ?? {}, keys: tokenKeys },
];

function inner(name: string): Node {
  const egress = properties['egress'] ?? {};
  const maps = [egress, ...(egress.anyOf ?? []), ...(egress.oneOf ?? [])];
  return maps.flatMap(({ properties: known }) => known?.[name] ?? [])[0] ?? {};
}

t.test('targets and tokens of the calling side have an answer to each key as well', (t) => {
  for (const { name, node, keys } of compared.slice(-2)) {
    t.ok(leavesOf(node).length > 5, name);
    t.same(unanswered(node, keys), [], name);
    t.same(
      Object.keys(keys).filter((key) => !leavesOf(node).some((leaf) => leaf === key || leaf.startsWith(`${key}.`))),
      [],
      `${name}: no answer is for a key that is not there`,
    );
  }
  t.end();
});

t.test('diff compares each key, or the page says that it does not', (t) => {
  const page = readFileSync(join(projectDir, 'docs/policy-tests.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `([a-z_.]+)` \| ([^|]+) \|/gm)];
  const listed = new Map(rows.map(([, name = '', words = '']) => [name, words]));
  for (const { name, keys } of compared) {
    const silent = Object.entries(keys)
      .filter(([, change]) => change.widens === undefined && change !== saidByAnother)
      .filter(([key]) => name !== 'egress' || !['tokens', 'targets'].includes(key))
      .map(([key]) => key);
    const words = listed.get(name) ?? '';
    const named = words.startsWith('all') ? silent : [...words.matchAll(/`([a-z0-9_.]+)`/g)].map(([, key = '']) => key);
    t.same(silent.toSorted(), named.toSorted(), name);
    if (words.startsWith('all')) t.equal(silent.length, Object.keys(keys).length, `${name}: all of it`);
  }
  t.end();
});

t.test('a key without an answer is found, on its own and below another', (t) => {
  const node: Node = { properties: { a: {}, b: { anyOf: [{ properties: { c: {}, d: {} } }, {}] } } };
  t.same(unanswered(node, { a: {} }), ['b.c', 'b.d']);
  t.same(unanswered(node, { a: {}, 'b.c': {} }), ['b.d']);
  t.same(unanswered(node, { a: {}, b: {} }), ['b.c', 'b.d'], 'what is said of a map is not said of its keys');
  t.same(unanswered(node, { a: {}, b: { whole: true } }), []);
  t.end();
});

t.test('what counts at start counts so with its whole section, and can be compared', (t) => {
  const opened = answered.filter(({ keys }) => Object.values(keys).some(({ restart }) => restart));
  t.same(
    opened.map(({ name }) => name),
    ['listen', 'admin', 'probes', 'sessions', 'store', 'egress', 'decide', 'telemetry', 'workers'],
  );
  for (const { name, node, keys } of opened) {
    const others = leavesOf(node).filter(
      (leaf) =>
        // Of the calling side its listener alone is opened then.
        (name !== 'egress' || leaf.startsWith('listen.')) &&
        // Which requests are traced is replaced.
        !(name === 'telemetry' && leaf.startsWith('traces.')) &&
        Object.hasOwn(keys, leaf) &&
        keys[leaf] !== saidByAnother &&
        keys[leaf]?.restart !== true,
    );
    t.same(others, [], `${name}: a reload keeps all of it`);
  }
  for (const { name, keys } of answered) {
    const blind = Object.entries(keys).filter(
      ([, change]) =>
        (change.restart === true || change.widens !== undefined) &&
        change.of === undefined &&
        change.shown === undefined,
    );
    t.same(blind, [], `${name}: whatever is compared says what is compared`);
  }
  t.same(Object.keys(keyChanges), Object.keys(sections));
  t.end();
});
