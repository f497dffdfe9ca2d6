import fc from 'fast-check';
import t from 'tap';
import { encodeSegment, readTarget } from '../../../src/decision/http/request-target.js';
import { ambiguousTargets } from '../../support/attacks/targets.js';
import { readVectors } from '../../vectors/corpus.js';
import { reEncoded } from './target-spelling.js';

interface Accepted {
  readonly name: string;
  readonly input: string;
  readonly segments: readonly string[];
  readonly literalSegments?: readonly string[];
  readonly query?: string;
  readonly encodedSlash?: boolean;
  readonly pathParameters?: boolean;
}

const vectors = readVectors('targets.json') as {
  accepted: readonly Accepted[];
  refused: readonly { name: string; input: string }[];
};
const limit = 8192;

t.test('targets that read one way only', (t) => {
  for (const {
    name,
    input,
    segments,
    literalSegments = null,
    query = null,
    encodedSlash = false,
    pathParameters = false,
  } of vectors.accepted) {
    const path = query === null ? input : input.slice(0, -query.length - 1);
    const expected = {
      ok: true,
      value: { raw: input, path, query, segments, literalSegments, encodedSlash, pathParameters },
    };
    t.same(readTarget(input, limit), expected, name);
  }
  t.end();
});

t.test('everything else is malformed', (t) => {
  for (const { name, input } of vectors.refused) {
    t.same(readTarget(input, limit), { ok: false, error: { reason: 'target_malformed' } }, name);
  }
  t.end();
});

t.test('what readers differ about is malformed, or told to the route', (t) => {
  for (const { name, targets } of ambiguousTargets) {
    for (const input of targets) {
      const target = readTarget(input, limit);
      const isTold = target.ok && (target.value.encodedSlash || target.value.pathParameters);
      t.ok(!target.ok || isTold, `${name} ${input}`);
    }
  }
  t.end();
});

t.test('the length is checked with the query, and first', (t) => {
  const tooLong = { ok: false, error: { reason: 'target_too_long' } };
  t.equal(readTarget(`/${'a'.repeat(9)}`, 10).ok, true, 'as long as may be');
  t.same(readTarget(`/${'a'.repeat(10)}`, 10), tooLong, 'one byte longer');
  t.equal(readTarget('/a?23456789'.slice(0, 10), 10).ok, true, 'with a query');
  t.same(readTarget('/a?23456789', 10), tooLong, 'one byte longer by its query');
  t.same(readTarget('//////////x', 10), tooLong, 'malformed and too long');
  t.end();
});

t.test('of all bytes, escaped, only those without a plain spelling or another meaning pass', (t) => {
  const passing: string[] = [];
  for (let byte = 0; byte < 256; byte++) {
    const escape = `%${byte.toString(16).padStart(2, '0')}`;
    // A blank alone is malformed.
    for (const input of [`/.${escape}x`, `/.${escape.toUpperCase()}x`]) {
      const target = readTarget(input, limit);
      if (target.ok && !target.value.encodedSlash) passing.push(target.value.segments.join('/').slice(1, -1));
    }
  }
  t.equal([...new Set(passing)].join(''), ' !"$%&\'()*+,:<=>@[]^`{|}');
  t.end();
});

t.test('of all bytes, raw, only pchar, slash and the start of a query pass', (t) => {
  let passing = '';
  for (let byte = 0; byte < 256; byte++) {
    const character = String.fromCharCode(byte);
    if (readTarget(`/a${character}b`, limit).ok) passing += character;
  }
  t.equal(passing, "!$&'()*+,-./0123456789:;=?@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~");
  t.end();
});

/** Pieces that segments are made of, sound and hostile. */
const piece = fc.oneof(
  fc.constantFrom(
    '.',
    '..',
    '/',
    '//',
    '%2F',
    '%2f',
    ';',
    '%25',
    '%',
    '%2e',
    '%5c',
    '\\',
    '#',
    '?',
    '%00',
    '%C3%A9',
    '%c3',
    '%F0%9F%98%80',
    '%20',
    '2',
    'f',
    '\u00e9',
  ),
  fc.string({ unit: fc.constantFrom(..."abzAZ09-_~!$&'()*+,=:@".split('')), maxLength: 4 }),
);
const anyTarget = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`);

t.test('for any target, what is accepted is forwarded as it came, and its judged segments spell it', (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(anyTarget, (input) => {
        const target = readTarget(input, limit);
        if (!target.ok) return true;
        const { raw, path, query, segments } = target.value;
        const sent = query === null ? path : `${path}?${query}`;
        const hasDotSegment = segments.some((segment) =>
          segment.split(/;|%2f/i).some((part) => part === '.' || part === '..'),
        );
        return (
          raw === input &&
          sent === input &&
          reEncoded(segments) === reEncoded(path.slice(1).split('/').map(decodeOnce)) &&
          !hasDotSegment &&
          !segments.slice(0, -1).includes('')
        );
      }),
      { numRuns: 2000 },
    ),
  );
  t.end();
});

t.test('segments that are encoded and read again are the same, once and twice', (t) => {
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }).filter(isOrdinary);
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 6 }), (segments) => {
        const once = readTarget(`/${segments.map(encodeURIComponent).join('/')}`, limit);
        if (!once.ok || once.value.segments.join('/') !== segments.join('/')) return false;
        const twice = readTarget(`/${once.value.segments.map(encodeURIComponent).join('/')}`, limit);
        return twice.ok && twice.value.raw === once.value.raw && twice.value.segments.join('/') === segments.join('/');
      }),
      { numRuns: 500 },
    ),
  );
  t.end();
});

t.test('a segment is spelled with the escapes that it needs, and no other', (t) => {
  for (const [text, spelled] of [
    ['orders-2.v1~_', 'orders-2.v1~_'],
    ["!$&'()*+,=:@", "!$&'()*+,=:@"],
    ['a b', 'a%20b'],
    ['100%', '100%25'],
    ['été', '%C3%A9t%C3%A9'],
    ['{a}[b]', '%7Ba%7D%5Bb%5D'],
  ] as const) {
    t.equal(encodeSegment(text), spelled);
    t.match(readTarget(`/${spelled}`, limit), { ok: true, value: { segments: [text], literalSegments: null } }, text);
  }
  t.end();
});

/** Decodes like the platform does, but for encoded slashes. */
function decodeOnce(segment: string): string {
  return segment
    .split(/(%2f)/i)
    .map((part) => (/^%2f$/i.test(part) ? part : decodeURIComponent(part)))
    .join('');
}

/** Whether a segment, encoded, is one of those that are taken: one of blanks alone, or of blanks and dots, is not. */
function isOrdinary(text: string): boolean {
  return !/\p{Surrogate}|^\.{1,2}$|^[. ]* [. ]*$|[/\\;?#\u0000-\u001f\u007f-\u009f]|%[0-9a-f]{2}/iu.test(text);
}

t.test('hex digits and the borders of UTF-8', (t) => {
  const refused = [
    '%2:',
    '%:2',
    '%2G',
    '%2`',
    '%@1',
    '%g1',
    '%C1%80',
    '%c2%7f',
    '%c2%c0',
    '%c2',
    '%c2x',
    '%80',
    '%e0%9f%bf',
    '%ed%a0%80',
    '%f0%8f%bf%bf',
    '%f4%90%80%80',
    '%f8%88%80%80%80',
    '%7e',
    '%7f',
  ];
  for (const text of refused) t.equal(readTarget(`/a/${text}`, limit).ok, false, text);
  for (const text of ['%c2%bf', '%df%bf', '%e0%a0%80', '%ef%bf%bf', '%f0%90%80%80', '%f4%8f%bf%bf']) {
    t.equal(readTarget(`/a/${text}`, limit).ok, true, text);
  }
  t.end();
});
