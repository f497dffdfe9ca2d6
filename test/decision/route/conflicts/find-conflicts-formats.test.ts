/** Drawn policies of paths with formats, against a model: in a file of its own, since it takes most of a minute. */
import fc from 'fast-check';
import t from 'tap';
import '../../../support/campaign.js';
import { comparePoliciesWithModel, sequences } from './fold-model.js';

t.test('finds every format that reaches a less restrictive route, and nothing else, where most paths have one', (t) => {
  const suffixed = ['a.zz', 'a..zz'];
  // Each literal in upper case, with a dot and with a suffix that no path has, and text that no path has.
  const texts = [
    ...['a', 'b', ...suffixed].flatMap((text) => [text, text.toUpperCase(), `${text}.`, `${text}.x`]),
    'x',
    '.x',
  ];
  // Paths name three segments at most: what a fourth one says matters to none, unless it is nothing but a format.
  const asked = sequences(texts, 3).flatMap((parts) => (parts.length === 3 ? [parts, [...parts, '.x']] : [parts]));
  const requests = asked.flatMap((parts) => (parts.length === 4 ? [parts] : [parts, [...parts, '']]));
  const part = fc.constantFrom('a', 'b', '{x}', '{x}', ...suffixed);
  const path = fc
    .tuple(fc.array(part, { minLength: 1, maxLength: 3 }), fc.constantFrom('', '', '', '/', '/**'))
    // No request has more than three segments, and what is below a path is to be asked for too.
    .map(([parts, end]) => `/${(end === '/**' ? parts.slice(0, 2) : parts).join('/')}${end}`);
  comparePoliciesWithModel({ path, folds: { formatSuffix: true, pathInfo: false }, requests, numRuns: 50 });
  t.end();
});
