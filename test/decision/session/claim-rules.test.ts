import t from 'tap';
import {
  isSubsetOf,
  unmetClaims,
  type ClaimRule,
  type SessionPolicy,
} from '../../../src/decision/session/claim-rules.js';
import { parseStrictJson, type JsonObject } from '../../../src/lib/strict-json.js';

function payloadOf(text: string): JsonObject {
  const parsed = parseStrictJson(Buffer.from(text), { maxDepth: 16 });
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value;
}

function policy(...claims: readonly (readonly [string, ClaimRule['value']])[]): SessionPolicy {
  return { claims: claims.map(([path, value]) => ({ path: path.split('.'), value })), forwardsTokens: false };
}

const payload = payloadOf(
  '{"sub":"u","tId":"public","n":1,"on":true,' +
    '"st-role":{"v":["support","admin"],"t":1},"st-ev":{"v":true},"deep":{"a":{"b":"c"}},"list":[["x"]],"big":1234567890123456790,"bigs":[1234567890123456790]}',
);

const cases: readonly (readonly [string, ClaimRule['value'], boolean])[] = [
  ['st-role.v', 'support', true],
  ['st-role.v', 'admin', true],
  ['st-role.v', 'supp', false],
  ['st-role.v', 'Support', false],
  ['st-role.v', 'support,admin', false],
  ['st-role', 'support', false],
  ['st-role.v.0', 'support', false],
  ['st-role.t', 1, true],
  ['tId', 'public', true],
  ['tId', 'other', false],
  ['st-ev.v', true, true],
  ['st-ev.v', 'true', false],
  ['n', 1, true],
  ['n', '1', false],
  ['on', true, true],
  ['on', 1, false],
  ['deep.a.b', 'c', true],
  ['deep.a', 'c', false],
  ['deep.a.b.c', 'c', false],
  ['none', 'x', false],
  ['none.v', 'x', false],
  ['list', 'x', false],
  ['constructor.name', 'Object', false],
  ['__proto__.x', 'y', false],
  ['st-role.v.length', 2, false],
  ['big', 1_234_567_890_123_456_800, false],
  ['bigs', 1_234_567_890_123_456_800, false],
];

t.test('a claim holds by itself or in a list, and what is missing does not', (t) => {
  for (const [path, value, holds] of cases) {
    t.equal(unmetClaims(policy([path, value]), payload).length === 0, holds, `${path} ${String(value)}`);
  }
  t.equal(
    unmetClaims(policy(['__proto__.x', 'y']), payloadOf('{"__proto__":{"x":"y"}}')).length,
    0,
    'a member like any other',
  );
  t.same(unmetClaims(policy(), payload), [], 'no claim');
  t.same(
    unmetClaims(policy(['tId', 'public'], ['st-role.v', 'x'], ['n', 2]), payload).map(({ path }) => path.join('.')),
    ['st-role.v', 'n'],
    'all are needed',
  );
  t.end();
});

t.test('which of two policies lets more users through', (t) => {
  const [none, one, two] = [policy(), policy(['a', 'x']), policy(['a', 'x'], ['b', 'y'])];
  const table: readonly (readonly [SessionPolicy, SessionPolicy, boolean])[] = [
    [none, none, true],
    [none, one, true],
    [one, none, false],
    [one, one, true],
    [one, two, true],
    [two, one, false],
    [policy(['a', 'x']), policy(['a', 'z']), false],
    [policy(['a', 1]), policy(['a', '1']), false],
  ];
  for (const [a, b, expected] of table) t.equal(isSubsetOf(a, b), expected, JSON.stringify([a, b]));
  t.end();
});
