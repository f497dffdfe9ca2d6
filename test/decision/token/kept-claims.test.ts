import t from 'tap';
import { keepClaims } from '../../../src/decision/token/kept-claims.js';
import type { ClaimRules } from '../../../src/decision/token/profiles.js';
import { parseStrictJson, type JsonObject } from '../../../src/lib/strict-json.js';

const rules: ClaimRules = { subject: ['sub'], permissions: ['scope'], require: [] };

function read(value: object): JsonObject {
  const parsed = parseStrictJson(Buffer.from(JSON.stringify(value)), { maxDepth: 16 });
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value;
}

const kept = (value: object, by: Partial<ClaimRules> = {}): unknown =>
  JSON.parse(JSON.stringify(keepClaims(read(value), { ...rules, ...by }).claims));

const rows: { name: string; answer: object; by?: Partial<ClaimRules>; expected: object }[] = [
  {
    name: 'what rules ask for, and nothing else',
    answer: { active: true, iss: 'i', aud: ['a', 'b'], exp: 1, sub: 's', scope: 'x y', username: 'u', more: [{}] },
    expected: { iss: 'i', aud: ['a', 'b'], exp: 1, sub: 's', scope: 'x y' },
  },
  { name: 'what it is bound to', answer: { cnf: { jkt: 'A'.repeat(43) } }, expected: { cnf: { jkt: 'A'.repeat(43) } } },
  {
    name: 'a certificate that it is bound to',
    answer: { cnf: { 'x5t#S256': 'B'.repeat(42) + 'A' } },
    expected: { cnf: { 'x5t#S256': 'B'.repeat(42) + 'A' } },
  },
  {
    name: 'what it is bound to beside something else',
    answer: { cnf: { jkt: 'A'.repeat(43), kid: 'x' } },
    expected: { cnf: { jkt: 'A'.repeat(43), '': null } },
  },
  {
    name: 'what nobody knows',
    answer: { cnf: { kid: 'x' } },
    expected: { cnf: null },
  },
  { name: 'what it is bound to, in no form that counts', answer: { cnf: { jkt: 'x' } }, expected: { cnf: null } },
  {
    name: 'a list of what is no text',
    answer: { aud: [{}, {}], scope: ['a', 1] },
    expected: { aud: null, scope: null },
  },
  { name: 'a text of 8 KiB', answer: { scope: 'x'.repeat(8_192) }, expected: { scope: 'x'.repeat(8_192) } },
  { name: 'a longer one', answer: { scope: 'x'.repeat(8_193) }, expected: { scope: null } },
  {
    name: 'a list of 8 KiB',
    answer: { scope: ['x'.repeat(8_191), 'y'] },
    expected: { scope: ['x'.repeat(8_191), 'y'] },
  },
  { name: 'a longer list', answer: { scope: ['x'.repeat(8_191), 'yy'] }, expected: { scope: null } },
  { name: '1,000 texts', answer: { scope: Array(1_000).fill('') }, expected: { scope: Array(1_000).fill('') } },
  { name: 'one more', answer: { scope: Array(1_001).fill('') }, expected: { scope: null } },
  {
    name: 'what lies within',
    answer: { realm: { roles: ['r'], other: 1 }, tenant: { name: 'acme', id: 7 } },
    by: { permissions: ['realm', 'roles'], require: [{ path: ['tenant', 'name'], values: ['acme'] }] },
    expected: { realm: { roles: ['r'] }, tenant: { name: 'acme' } },
  },
  {
    name: 'an object, and what lies within it',
    answer: { tenant: { name: 'acme', id: 7 } },
    by: {
      permissions: null,
      require: [
        { path: ['tenant', 'name'], values: ['acme'] },
        { path: ['tenant'], values: ['acme'] },
      ],
    },
    expected: { tenant: { name: 'acme' } },
  },
  {
    name: 'a path through a text',
    answer: { realm: 'x' },
    by: { permissions: ['realm', 'roles'] },
    expected: { realm: 'x' },
  },
  { name: 'a path that ends', answer: { realm: {} }, by: { permissions: ['realm', 'roles'] }, expected: { realm: {} } },
  { name: 'nothing', answer: {}, by: { permissions: null }, expected: {} },
];

t.test('what is kept of a response', (t) => {
  for (const { name, answer, by, expected } of rows) t.same(kept(answer, by), expected, name);
  t.notOk(
    Object.getPrototypeOf(keepClaims(read({ cnf: { jkt: 'A'.repeat(43) } }), rules).claims['cnf']),
    'objects have no prototype',
  );
  t.end();
});

t.test('what it takes grows with what is kept, and not with the response', (t) => {
  const bytes = (answer: object): number => keepClaims(read(answer), rules).bytes;
  t.equal(bytes({ sub: 's', more: Array(10_000).fill({}) }), bytes({ sub: 's' }));
  t.ok(bytes({ scope: 'x'.repeat(8_000) }) > 16_000);
  t.ok(bytes({ scope: Array(1_000).fill('x') }) > 40_000);
  t.end();
});
