/**
 * Hostile targets of others: whatever they hold, each is either refused or read the one way in which it was sent
 * (docs/security-requirements.md ). Without the public corpora the same runs on the project's own list.
 */
import t from 'tap';
import { readTarget } from '../../src/decision/http/request-target.js';
import { reEncoded } from '../decision/http/target-spelling.js';
import { readCorpus, readVectors } from '../vectors/corpus.js';

const limit = 8192;

const corpora = [
  { name: 'our own', inputs: readVectors('hostile-targets.json') as string[] },
  { name: 'traversal-140.txt', inputs: linesOf('traversal-140.txt') },
  { name: 'traversal-887.txt', inputs: linesOf('traversal-887.txt') },
  { name: 'whatwg-urltestdata.json', inputs: urlsOf('whatwg-urltestdata.json') },
];

for (const { name, inputs } of corpora) {
  t.test(`${name}: refused, or read as it was sent and without dot segments`, (t) => {
    const wrong = inputs.flatMap(spellings).filter((input) => !isRefusedOrExact(input));
    t.same(wrong, []);
    t.end();
  });
}

t.test('no traversal of the corpora is taken where its dots would climb', (t) => {
  const climbing = corpora
    .flatMap(({ inputs }) => inputs)
    .filter((input) => /(?:^|[/\\])\.\.(?:[/\\]|$)/.test(beforeQuery(input)));
  t.not(climbing.length, 0);
  const taken = climbing.filter(
    (input) => readTarget(`/${input}`, limit).ok || readTarget(`/static/${input}/x`, limit).ok,
  );
  t.same(taken, []);
  t.end();
});

t.test('of the same inputs, those without a second reading are taken', (t) => {
  for (const input of ['/a%20b', '/a?b=c%zz', '/~user/', '/%F0%9F%99%82', '/%7Bid%7D']) {
    t.ok(readTarget(input, limit).ok, input);
  }
  t.end();
});

/** An input as it stands, and at the places of a target where it may come. Text beyond latin1 also as its bytes. */
function spellings(input: string): readonly string[] {
  const named = input.replaceAll('{FILE}', 'etc/passwd');
  const bytes = Buffer.from(named, 'utf8').toString('latin1');
  return [named, bytes].flatMap((text) => [text, `/${text}`, `/static/${text}`, `/static/${text}/x`, `/static${text}`]);
}

function isRefusedOrExact(input: string): boolean {
  const target = readTarget(input, limit);
  if (!target.ok) return true;
  const { raw, path, query, segments } = target.value;
  const sent = query === null ? path : `${path}?${query}`;
  const hidden = segments.flatMap((segment) => segment.split(/;|%2f/i));
  return (
    raw === input &&
    sent === input &&
    reEncoded(segments) === escapedAlike(path.slice(1)) &&
    !hidden.includes('.') &&
    !hidden.includes('..') &&
    !segments.slice(0, -1).includes('')
  );
}

/** Escapes what a path has plain and `reEncoded` escapes, so that the two can be compared. */
function escapedAlike(path: string): string {
  return path
    .replace(/%[0-9a-f]{2}/gi, (escape) => escape.toUpperCase())
    .replace(/[!$&'()*+,;=:@]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}

function beforeQuery(input: string): string {
  return input.replace(/[?#].*/s, '');
}

function linesOf(name: string): string[] {
  return (readCorpus(name) ?? '').split(/\r?\n/).filter((line) => line !== '');
}

function urlsOf(name: string): string[] {
  const entries = JSON.parse(readCorpus(name) ?? '[]') as (string | { input: string; base: string | null })[];
  return entries.flatMap((entry) => (typeof entry === 'string' ? [] : [entry.input, entry.base ?? '/']));
}
