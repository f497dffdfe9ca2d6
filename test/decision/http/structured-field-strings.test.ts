import t from 'tap';
import { maxKeyCharacters, readIdempotencyKey } from '../../../src/decision/idempotency/key.js';
import { readCorpus } from '../../vectors/corpus.js';

/** A row of the structured-field tests of the HTTP working group. */
interface Row {
  readonly name: string;
  readonly raw: readonly string[];
  readonly must_fail?: boolean;
  readonly expected?: readonly [string, readonly unknown[]];
}

/** Rows of our own, for where the corpus is not at hand. */
const own: readonly Row[] = [
  { name: 'basic string', raw: ['"foo bar"'], expected: ['foo bar', []] },
  { name: 'empty string', raw: ['""'], expected: ['', []] },
  { name: 'escapes', raw: ['"b \\" \\\\ c"'], expected: ['b " \\ c', []] },
  { name: 'bad escape', raw: ['"\\,"'], must_fail: true },
  { name: 'single quoted', raw: ["'foo'"], must_fail: true },
  { name: 'unbalanced', raw: ['"foo'], must_fail: true },
  { name: 'a control character', raw: ['"\t"'], must_fail: true },
  { name: 'parameters', raw: ['"foo";a=1'], expected: ['foo', [['a', 1]]] },
];

t.test('RFC 8941 §3.3.3: a quoted key is read as the structured-field tests of the HTTP working group ask', (t) => {
  const rows = ['sf-string.json', 'sf-string-generated.json'].flatMap(
    (name) => JSON.parse(readCorpus(name) ?? '[]') as readonly Row[],
  );
  for (const {
    name,
    raw: [value, second],
    must_fail: mustFail,
    expected,
  } of [...own, ...rows]) {
    // Two fields are refused before the key is read.
    if (value === undefined || second !== undefined) continue;
    const [text = '', parameters = []] = expected ?? [];
    const isKey = mustFail !== true && parameters.length === 0 && text.length > 0 && text.length <= maxKeyCharacters;
    t.match(
      readIdempotencyKey(value, 'required', false),
      isKey ? { ok: true, value: text } : { ok: false, error: { reason: 'idempotency_key_malformed' } },
      name,
    );
  }
  t.end();
});
