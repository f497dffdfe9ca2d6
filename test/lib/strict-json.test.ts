import fc from 'fast-check';
import t from 'tap';
import {
  defaultMaxDepth,
  isJsonArray,
  isJsonObject,
  parseStrictJson,
  type JsonObject,
  type JsonProblem,
} from '../../src/lib/strict-json.js';
import type { Result } from '../../src/lib/result.js';
import { readVectors } from '../vectors/corpus.js';

interface Vector {
  readonly name: string;
  readonly json: string;
  readonly accepted?: true;
  readonly problem?: JsonProblem;
}

function parse(text: string, maxDepth = defaultMaxDepth): Result<JsonObject, JsonProblem> {
  return parseStrictJson(Buffer.from(text), { maxDepth });
}

function nested(depth: number): string {
  return `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
}

t.test('an object that any two parsers read alike, or nothing', (t) => {
  for (const { name, json, accepted, problem } of readVectors('strict-json.json') as Vector[]) {
    const result = parse(json);
    if (accepted === true) t.equal(result.ok && JSON.stringify(result.value), JSON.stringify(JSON.parse(json)), name);
    else t.same(result, { ok: false, error: problem }, name);
  }
  t.end();
});

t.test('UTF-8 and nothing else', (t) => {
  const cases: { name: string; bytes: readonly number[]; ok: boolean }[] = [
    { name: 'two bytes', bytes: [0xc3, 0xa9], ok: true },
    { name: 'four bytes', bytes: [0xf0, 0x9f, 0x98, 0x80], ok: true },
    { name: 'a lone continuation byte', bytes: [0xa9], ok: false },
    { name: 'a sequence cut short', bytes: [0xc3], ok: false },
    { name: 'an overlong spelling', bytes: [0xc0, 0xaf], ok: false },
    { name: 'an encoded surrogate', bytes: [0xed, 0xa0, 0x80], ok: false },
    { name: 'beyond Unicode', bytes: [0xf4, 0x90, 0x80, 0x80], ok: false },
    { name: 'Latin-1', bytes: [0xe9], ok: false },
  ];
  for (const { name, bytes, ok } of cases) {
    const result = parseStrictJson(Buffer.from([...Buffer.from('{"a":"'), ...bytes, ...Buffer.from('"}')]), {
      maxDepth: 4,
    });
    t.same(result.ok ? 'accepted' : result.error, ok ? 'accepted' : 'encoding', name);
  }
  t.same(parseStrictJson(Buffer.from('{}', 'utf16le'), { maxDepth: 4 }), { ok: false, error: 'syntax' }, 'UTF-16');
  t.end();
});

t.test('nesting is capped before anything recurses', (t) => {
  t.ok(parse(nested(defaultMaxDepth)).ok, 'at the cap');
  t.same(parse(nested(defaultMaxDepth + 1)), { ok: false, error: 'too_deep' }, 'one above it');
  t.equal(defaultMaxDepth, 16);
  t.ok(parse('{}', 1).ok, 'the object itself counts as one');
  t.same(parse('{"a":{}}', 1), { ok: false, error: 'too_deep' });
  t.ok(parse(`{"a":[${'[],'.repeat(1000)}{}]}`, 3).ok, 'neighbours do not add up');
  t.same(parse('{"a":[],"b":[[]]}', 2), { ok: false, error: 'too_deep' }, 'what is closed makes no room for more');
  t.ok(parse(`{"a":"${'['.repeat(1000)}"}`, 1).ok, 'brackets in strings do not count');
  t.same(parse('['.repeat(1_000_000)), { ok: false, error: 'too_deep' }, 'a million brackets');
  t.same(parse('{"a":'.repeat(100_000)), { ok: false, error: 'too_deep' }, 'a hundred thousand objects');
  t.end();
});

t.test('objects have no prototype, so a member is there or is not', (t) => {
  const result = parse('{"__proto__":{"sub":"admin"},"inner":{}}');
  t.ok(result.ok);
  if (!result.ok) return t.end();
  t.equal(Object.getPrototypeOf(result.value), null);
  t.equal(result.value['sub'], undefined, 'nothing is inherited from a member named __proto__');
  t.equal(result.value['constructor'], undefined);
  t.ok(isJsonObject(result.value['__proto__']));
  const { inner } = result.value;
  t.ok(isJsonObject(inner) && Object.getPrototypeOf(inner) === null, 'inside as well');
  t.equal(({} as Record<string, unknown>)['sub'], undefined, 'and no other object has changed');
  return t.end();
});

t.test('kinds of values are told apart', (t) => {
  t.equal(isJsonObject({}), true);
  for (const value of [null, true, 1, '', [], undefined]) t.equal(isJsonObject(value), false, JSON.stringify(value));
  t.equal(isJsonArray([]), true);
  for (const value of [null, {}, 'ab', undefined]) t.equal(isJsonArray(value), false, JSON.stringify(value));
  t.end();
});

t.test('what is accepted means what JSON.parse says', (t) => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 6 })),
      fc.nat(4),
      (object, indent) => {
        const text = JSON.stringify(object, null, indent);
        const result = parse(text);
        return result.ok && JSON.stringify(result.value) === JSON.stringify(JSON.parse(text));
      },
    ),
  );
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ':',
    ',',
    '"a"',
    '"\\u0061"',
    '"b"',
    '"__proto__"',
    '1',
    '-0',
    'null',
    ' ',
    '"',
    '\\',
    'x',
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 14 }), (parts) => {
      const text = parts.join('');
      const result = parse(text);
      return !result.ok || JSON.stringify(result.value) === JSON.stringify(JSON.parse(text));
    }),
    { numRuns: 2000 },
  );
  t.end();
});

t.test('a name that comes twice in one object is found, however it is spelled', (t) => {
  const member = fc.tuple(fc.constantFrom('a', 'b', 'é', ':', '"', '__proto__', ''), fc.boolean());
  fc.assert(
    fc.property(fc.array(member, { maxLength: 5 }), fc.array(member, { maxLength: 5 }), (outer, inner) => {
      const text = object(
        outer.map(([name, escaped]) => spell(name, escaped)),
        object(
          inner.map(([name, escaped]) => spell(name, escaped)),
          '0',
        ),
      );
      const repeats = [outer, inner].some((members) => new Set(members.map(([name]) => name)).size !== members.length);
      // The inner object stands once for each outer member; without one it is not written at all.
      const expected = repeats && outer.length > 0;
      const result = parse(text);
      return expected ? !result.ok && result.error === 'duplicate_member' : result.ok;
    }),
    { numRuns: 1000 },
  );
  t.end();
});

function object(names: readonly string[], value: string): string {
  return `{${names.map((name) => `${name}:${value}`).join(',')}}`;
}

/** A name as JSON, each of its UTF-16 units escaped or none. */
function spell(name: string, escaped: boolean): string {
  if (!escaped) return JSON.stringify(name);
  return `"${Array.from({ length: name.length }, (_, at) => `\\u${name.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`;
}
