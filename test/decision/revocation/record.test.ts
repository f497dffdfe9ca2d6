import t from 'tap';
import {
  checkRevocationValue,
  isRevocationId,
  maxAuthorLength,
  maxReasonLength,
  maxRevocationBytes,
  maxRevocationMs,
  maxRevocationRecords,
  readRevocation,
  readUndo,
  revocationBody,
  revocationKinds,
  undoBody,
  type NewRevocation,
} from '../../../src/decision/revocation/record.js';

const id = 'A'.repeat(22);
const revocation: NewRevocation = {
  id,
  kind: 'subject',
  value: 'checkout',
  issuer: null,
  reason: 'a "leak" – ü',
  author: 'ann',
};

t.test('a revocation comes back from its record as it was', (t) => {
  const values = {
    key_id: 'd-1',
    subject: 's'.repeat(1_024),
    token_id: 'j'.repeat(256),
    token: 'x'.repeat(43),
    issued_before: '2026-01-31T12:00:00.5Z',
  };
  t.same(revocationKinds, Object.keys(values));
  for (const kind of revocationKinds) {
    for (const issuer of [null, 'https://api.example.com']) {
      const made = { ...revocation, kind, value: values[kind], issuer };
      t.same(readRevocation(id, `1 5 10 ${revocationBody(made)}`), { ...made, createdAtMs: 5, endsAtMs: 10 }, kind);
    }
  }
  const longest = { ...revocation, issuer: 'i'.repeat(2_048), reason: 'r'.repeat(500), author: 'a'.repeat(256) };
  t.same(
    readRevocation(id, `1 5 10 ${revocationBody(longest)}`),
    { ...longest, createdAtMs: 5, endsAtMs: 10 },
    'as long as may be',
  );
  for (const reason of [null, 'a mistake', 'r'.repeat(500)]) {
    t.same(readUndo(id, `1 5 10 ${undoBody({ reason, author: 'ann' })}`), {
      id,
      reason,
      author: 'ann',
      undoneAtMs: 5,
      endsAtMs: 10,
    });
  }
  t.end();
});

const body = revocationBody(revocation);

const damaged: readonly { readonly name: string; readonly id?: string; readonly text: string }[] = [
  { name: 'nothing', text: '' },
  { name: 'another version', text: `2 5 10 ${body}` },
  { name: 'something before it', text: `v1 5 10 ${body}` },
  { name: 'something behind it', text: `1 5 10 ${body}x` },
  { name: 'no times', text: `1 ${body}` },
  { name: 'a negative time', text: `1 -5 10 ${body}` },
  { name: 'a time that no number holds', text: `1 5 1${'0'.repeat(15)} ${body}` },
  { name: 'a time in words', text: `1 5 soon ${body}` },
  { name: 'no object', text: '1 5 10 []' },
  { name: 'cut off', text: `1 5 10 ${body.slice(0, -2)}}` },
  { name: 'a member twice', text: `1 5 10 ${body.replace('{', '{"kind":"subject",')}` },
  { name: 'a member too many', text: `1 5 10 ${body.replace('{', '{"more":1,')}` },
  { name: 'a member too few', text: '1 5 10 {"kind":"subject","value":"a","issuer":null,"reason":"x"}' },
  { name: 'a member by another name', text: `1 5 10 ${body.replace('author', 'autor')}` },
  { name: 'another kind', text: `1 5 10 ${body.replace('subject', 'role')}` },
  { name: 'a value that is no text', text: `1 5 10 ${body.replace('"checkout"', '5')}` },
  { name: 'a value that no credential has', text: `1 5 10 ${body.replace('checkout', 'a b')}` },
  { name: 'an empty issuer', text: `1 5 10 ${body.replace('null', '""')}` },
  { name: 'an issuer that is none', text: `1 5 10 ${body.replace('null', '{}')}` },
  {
    name: 'a reason that is too long',
    text: `1 5 10 ${revocationBody({ ...revocation, reason: 'x'.repeat(maxReasonLength + 1) })}`,
  },
  {
    name: 'an issuer that is too long',
    text: `1 5 10 ${revocationBody({ ...revocation, issuer: 'i'.repeat(2_049) })}`,
  },
  { name: 'an author that is too long', text: `1 5 10 ${revocationBody({ ...revocation, author: 'a'.repeat(257) })}` },
  { name: 'an author that is none', text: `1 5 10 ${body.replace('"ann"', 'null')}` },
  { name: 'a nested object', text: `1 5 10 ${body.replace('null', '{"a":{}}')}` },
  { name: 'an id that is none', id: 'A'.repeat(21), text: `1 5 10 ${body}` },
  { name: '__proto__', text: '1 5 10 {"__proto__":{},"value":"a","issuer":null,"reason":"x","author":"y"}' },
];

t.test('what is not wholly ours is not read', (t) => {
  for (const { name, id: as = id, text } of damaged) {
    t.equal(readRevocation(as, text), null, name);
    t.equal(readUndo(as, text), null, name);
  }
  const undo = undoBody({ reason: 'x', author: 'ann' });
  for (const text of [
    undo.replace('"ann"', '5'),
    undo.replace('"x"', '5'),
    undo.replace('}', ',"more":1}'),
    undo.replace('x', 'x'.repeat(501)),
  ]) {
    t.equal(readUndo(id, `1 5 10 ${text}`), null, text);
  }
  t.end();
});

t.test('what can be revoked', (t) => {
  const rows: readonly (readonly [Parameters<typeof checkRevocationValue>[0], string, boolean])[] = [
    ['key_id', 'd-1', true],
    ['key_id', '', false],
    ['key_id', 'k'.repeat(256), true],
    ['key_id', 'k'.repeat(257), false],
    ['subject', 's'.repeat(1_024), true],
    ['subject', 's'.repeat(1_025), false],
    ['subject', 'a b', false],
    ['token_id', 'j'.repeat(256), true],
    ['token_id', 'j'.repeat(257), false],
    ['token', 'x'.repeat(43), true],
    ['token', 'x'.repeat(42), false],
    ['token', 'x'.repeat(44), false],
    ['token', `:${'x'.repeat(43)}`, false],
    ['token', `${'x'.repeat(43)}:`, false],
    ['issued_before', '2026-01-31T12:00:00Z', true],
    ['issued_before', '2026-13-31T12:00:00Z', false],
    ['issued_before', '2026-01-31T12:00:00+01:00', false],
    ['issued_before', '+012026-01-31T12:00:00Z', false],
    ['issued_before', '2026-01-31T12:00:00Z (then)', false],
  ];
  for (const [kind, value, expected] of rows) {
    t.equal(checkRevocationValue(kind, value).ok, expected, `${kind} ${value.slice(0, 30)}`);
  }
  t.same([isRevocationId(id), isRevocationId(`${id}A`), isRevocationId(`${'A'.repeat(21)}:`)], [true, false, false]);
  t.end();
});

t.test('how much of revocations there may be, and for how long they hold', (t) => {
  t.same([maxRevocationRecords, maxRevocationBytes, maxReasonLength, maxAuthorLength], [5_000, 8_192, 500, 256]);
  t.equal(maxRevocationMs, Date.UTC(2026, 1, 1) - Date.UTC(2026, 0, 1), 'the days of January');
  t.end();
});
