import t from 'tap';
import { oneLine } from '../../src/lib/one-line.js';

t.test('what breaks or disguises a line is escaped, and reads back as it was', async (t) => {
  const texts = ['plain', 'é ü 漢', '\u2028', '\u2029a', '\x7f\x85\x9f', 'a\u202eb\u2066c\u200f'];
  for (const text of texts) {
    const line = oneLine(JSON.stringify({ text }));
    t.same(JSON.parse(line), { text });
    t.notMatch(line, /[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/);
  }
  t.equal(oneLine('"é"'), '"é"', 'the rest stays');
});
