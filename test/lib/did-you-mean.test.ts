import t from 'tap';
import { nearestName } from '../../src/lib/did-you-mean.js';

const names = [
  'listen',
  'port',
  'permissions',
  'path',
  'host',
  'max_age',
  'max_stale',
  'url',
  'audience',
  'max_in_flight',
];

const cases = [
  { name: 'a letter too few', input: 'liste', expected: 'listen' },
  { name: 'a letter too many', input: 'listenn', expected: 'listen' },
  { name: 'another letter', input: 'lisden', expected: 'listen' },
  { name: 'neighbours swapped', input: 'prot', expected: 'port' },
  { name: 'two letters missing apart', input: 'permision', expected: 'permissions' },
  { name: 'two letters too few in a long name', input: 'permisions', expected: 'permissions' },
  { name: 'two other letters in a long name', input: 'parmissians', expected: 'permissions' },
  { name: 'three mistakes in a long name', input: 'parmissianz', expected: 'permissions' },
  { name: 'as it is spoken', input: 'max_in_flite', expected: 'max_in_flight' },
  { name: 'three mistakes in a name of eight', input: 'odiense', expected: 'audience' },
  { name: 'three mistakes in a name of seven', input: 'may_ich', expected: null },
  { name: 'four mistakes', input: 'parmizzianz', expected: null },
  { name: 'two mistakes in a short name', input: 'pirt2', expected: null },
  { name: 'another case', input: 'Listen', expected: 'listen' },
  { name: 'a dash for an underscore', input: 'max-age', expected: 'max_age' },
  { name: 'the nearest of two', input: 'max_ages', expected: 'max_age' },
  { name: 'a short name', input: 'uri', expected: 'url' },
  { name: 'nothing alike', input: 'zebra', expected: null },
  { name: 'nothing', input: '', expected: null },
  { name: 'much longer', input: 'x'.repeat(100_000), expected: null },
];

t.test('the name that was probably meant', (t) => {
  for (const { name, input, expected } of cases) t.equal(nearestName(input, names), expected, name);
  t.end();
});
