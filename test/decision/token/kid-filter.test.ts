import t from 'tap';
import { acceptsKeyId, isKeyId } from '../../../src/decision/token/kid-filter.js';

t.test('key ids that count', (t) => {
  const cases = [
    { name: 'a dynamic key', accept: ['d-*'], reject: [], keyId: 'd-1750000000000', expected: true },
    { name: 'a static key', accept: ['d-*'], reject: [], keyId: 's-2b1f', expected: false },
    {
      name: 'a bare UUID, static before Core 5.0',
      accept: ['d-*'],
      reject: [],
      keyId: 'd1f0c7a6-0000-4000-8000-000000000000',
      expected: false,
    },
    { name: 'the prefix alone', accept: ['d-*'], reject: [], keyId: 'd-', expected: true },
    { name: 'shorter than the prefix', accept: ['d-*'], reject: [], keyId: 'd', expected: false },
    { name: 'the prefix inside', accept: ['d-*'], reject: [], keyId: 'xd-1', expected: false },
    { name: 'case matters', accept: ['d-*'], reject: [], keyId: 'D-1', expected: false },
    { name: 'a whole id', accept: ['d-1'], reject: [], keyId: 'd-1', expected: true },
    { name: 'a whole id is no prefix', accept: ['d-1'], reject: [], keyId: 'd-12', expected: false },
    { name: 'a star stands for anything', accept: ['*'], reject: [], keyId: 's-1', expected: true },
    { name: 'a dot is a dot', accept: ['d.*'], reject: [], keyId: 'd-1', expected: false },
    { name: 'a star inside is a character', accept: ['d-*x'], reject: [], keyId: 'd-1x', expected: false },
    { name: 'one of several', accept: ['a-*', 'd-*'], reject: [], keyId: 'd-1', expected: true },
    { name: 'nothing accepted', accept: [], reject: [], keyId: 'd-1', expected: false },
    { name: 'reject wins', accept: ['d-*'], reject: ['d-1'], keyId: 'd-1', expected: false },
    { name: 'reject wins over the whole id', accept: ['d-1'], reject: ['d-*'], keyId: 'd-1', expected: false },
    { name: 'others stay accepted', accept: ['d-*'], reject: ['d-1'], keyId: 'd-12', expected: true },
    { name: 'reject by prefix', accept: ['*'], reject: ['s-*', 'd-17*'], keyId: 'd-1750', expected: false },
  ];
  for (const { name, accept, reject, keyId, expected } of cases) {
    t.equal(acceptsKeyId({ accept, reject }, keyId), expected, name);
  }
  t.end();
});

t.test('the form of a key id', (t) => {
  t.equal(isKeyId('k'.repeat(256)), true);
  for (const value of ['', 'k'.repeat(257), 'd 1', 'd-1\n', 'd-é', 1, null, ['d-1'], undefined]) {
    t.equal(isKeyId(value), false, String(value));
  }
  t.end();
});
