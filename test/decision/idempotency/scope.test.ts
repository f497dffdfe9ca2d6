import fc from 'fast-check';
import t from 'tap';
import { digestOf } from '../../../src/lib/digest.js';
import {
  audienceOf,
  parseRecordId,
  recordIdOf,
  reservationIdOf,
  scopeOf,
} from '../../../src/decision/idempotency/scope.js';

type Input = Parameters<typeof scopeOf>[0];

const base: Input = {
  principal: { kind: 'service', issuer: 'https://a', subject: 's' },
  audience: 'orders',
  operation: 'create',
  key: 'k',
  tokenId: 'j',
};

t.test('every part of the scope counts where it belongs', (t) => {
  const scope = scopeOf(base);
  const changes: readonly {
    readonly change: Partial<Input>;
    readonly parts: readonly ('principal' | 'operation' | 'token')[];
  }[] = [
    { change: { principal: { ...base.principal, kind: 'session' } }, parts: ['principal'] },
    { change: { principal: { ...base.principal, issuer: 'https://b' } }, parts: ['principal'] },
    { change: { principal: { ...base.principal, subject: 't' } }, parts: ['principal'] },
    { change: { audience: 'billing' }, parts: ['operation'] },
    { change: { operation: 'cancel' }, parts: ['operation'] },
    { change: { key: 'l' }, parts: ['operation'] },
    { change: { tokenId: 'i' }, parts: ['token'] },
  ];
  for (const { change, parts } of changes) {
    const other = scopeOf({ ...base, ...change });
    const differing = (['principal', 'operation', 'token'] as const).filter((part) => other[part] !== scope[part]);
    t.same(differing, parts, JSON.stringify(change));
  }
  t.same(scopeOf({ ...base, key: null, tokenId: null }), { principal: scope.principal, operation: null, token: null });
  t.end();
});

t.test('callers of an issuer have the audience of its first entry', (t) => {
  const entry = (issuer: string, audience: string) => ({ rules: { issuer, audience } });
  const entries = [entry('https://a', 'one'), entry('https://b', 'two'), entry('https://b', 'three')];
  t.same(
    entries.map(({ rules }) => audienceOf(rules, entries)),
    ['one', 'two', 'two'],
  );
  t.equal(audienceOf({ issuer: 'https://c', audience: 'four' }, entries), 'four', 'its own where none has its issuer');
  t.end();
});

t.test('parts that would be the same when joined name different scopes', (t) => {
  const odd = fc.oneof(
    fc.string({ maxLength: 8 }),
    fc.constantFrom('a|b', 'a', 'b|c', '{x}', '*', 'a\nb', '', '\u0000'),
  );
  fc.assert(
    fc.property(fc.tuple(odd, odd, odd), fc.tuple(odd, odd, odd), (a, b) => {
      const same = a.join('\u0001') === b.join('\u0001') && a.every((part, i) => part === b[i]);
      const one = scopeOf({
        principal: { kind: 'service', issuer: a[0], subject: a[1] },
        audience: a[0],
        operation: a[1],
        key: a[2],
        tokenId: a[2],
      });
      const two = scopeOf({
        principal: { kind: 'service', issuer: b[0], subject: b[1] },
        audience: b[0],
        operation: b[1],
        key: b[2],
        tokenId: b[2],
      });
      return (
        (one.operation === two.operation) === same &&
        (one.principal === two.principal) === (a[0] === b[0] && a[1] === b[1])
      );
    }),
    { numRuns: 2_000 },
  );
  t.end();
});

t.test('a value hashed for one purpose is never one hashed for another', (t) => {
  t.not(digestOf('one', ['x']), digestOf('two', ['x']));
  t.not(digestOf('one', ['x', 'y']), digestOf('one', ['xy']));
  t.equal(digestOf('one', ['é']), digestOf('one', [Buffer.from('é')]));
  t.end();
});

t.test('the id of a record names its place in the store and nothing else', (t) => {
  const scope = scopeOf(base);
  const id = recordIdOf(scope) ?? '';
  t.same(parseRecordId(id), { principal: scope.principal, operation: scope.operation });
  t.equal(recordIdOf(scopeOf({ ...base, key: null })), null);
  t.equal(reservationIdOf(scope), id, 'what is reserved is the record, whether or not a token is used up with it');
  t.equal(reservationIdOf(scopeOf({ ...base, key: null })), `${scope.principal}.${scope.token ?? ''}`);
  t.equal(reservationIdOf(scopeOf({ ...base, key: null, tokenId: null })), null);
  const bads = ['', '.', id.slice(1), `x${id}`, `${id}x`, id.replace('.', ':'), `${id}\n`, `{${id}}`];
  for (const bad of bads) t.equal(parseRecordId(bad), null, JSON.stringify(bad));
  t.end();
});
