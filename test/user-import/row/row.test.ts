import t from 'tap';
import { parseStrictJson, type JsonValue } from '../../../src/lib/strict-json.js';
import { nearestName } from '../../../src/lib/did-you-mean.js';
import { headerProblem, originOfCells, rowOfCells } from '../../../src/user-import/row/csv.js';
import { readRow } from '../../../src/user-import/row/row.js';
import { contactsOf, identitiesOf, kindOf, problemText } from '../../../src/user-import/row/user.js';

const rules = { accepted: new Set<string>(), stripPrefix: false };
const hash = `$2a$10$${'a'.repeat(53)}`;
const password = { email: 'Ada@example.com', passwordHash: hash };
const third = { thirdPartyId: 'google', thirdPartyUserId: '1', email: 'ada@example.com', isVerified: true };

function row(value: unknown): JsonValue {
  const parsed = parseStrictJson(Buffer.from(JSON.stringify({ value })), { maxDepth: 16 });
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value['value'] ?? null;
}

t.test('the forms of a row', async (t) => {
  const cases = [
    {
      name: 'password',
      value: password,
      user: { kind: 'password', email: 'Ada@example.com', passwordHash: hash, algorithm: 'bcrypt' },
    },
    {
      name: 'passwordless by email',
      value: { passwordless: { email: 'a@b.de' } },
      user: { kind: 'passwordless', contact: { kind: 'email', value: 'a@b.de' }, add: null },
    },
    {
      name: 'passwordless by phone, with the other contact',
      value: { passwordless: { phoneNumber: '+4930901820', add: 'a@b.de' } },
      user: {
        kind: 'passwordless',
        contact: { kind: 'phoneNumber', value: '+4930901820' },
        add: { kind: 'email', value: 'a@b.de' },
      },
    },
    {
      name: 'the other contact by name',
      value: { passwordless: { email: 'a@b.de', add: { phoneNumber: '+4930901820' } } },
      user: {
        kind: 'passwordless',
        contact: { kind: 'email', value: 'a@b.de' },
        add: { kind: 'phoneNumber', value: '+4930901820' },
      },
    },
    { name: 'third party', value: { thirdParty: third }, user: { kind: 'third_party', ...third } },
  ];
  for (const { name, value, user } of cases) {
    t.same(
      readRow(row(value), rules).map(({ method, read }) => [method, read]),
      [[0, { ok: true, value: user }]],
      name,
    );
  }
});

t.test('several users of one person stand alone', async (t) => {
  const users = readRow(row({ methods: [password, { thirdParty: third }, { passwordless: {} }] }), rules);
  t.same(
    users.map(({ method, read }) => [method, read.ok]),
    [
      [1, true],
      [2, true],
      [3, false],
    ],
  );
});

t.test('rows that are refused', async (t) => {
  const cases: readonly { name: string; value: unknown; problem: RegExp }[] = [
    { name: 'no object', value: 7, problem: /^row is no object/ },
    { name: 'nothing', value: {}, problem: /^row has no way to sign in/ },
    {
      name: 'a misspelt member',
      value: { ...password, hashingAlgoritm: 'bcrypt' },
      problem: /the member hashingAlgoritm that does not belong there/,
    },
    {
      name: 'a member that may be a secret',
      value: { ...password, [hash]: 1 },
      problem: /^row has a member that does not belong there/,
    },
    {
      name: 'two forms',
      value: { ...password, thirdParty: third },
      problem: /the member email that does not belong there/,
    },
    { name: 'no list of methods', value: { methods: {} }, problem: /^methods is no list/ },
    { name: 'no methods', value: { methods: [] }, problem: /^methods has 0 users/ },
    { name: 'too many methods', value: { methods: Array(33).fill(password) }, problem: /^methods has 33 users/ },
    { name: 'methods and more', value: { methods: [password], email: 'a@b.de' }, problem: /the member email/ },
    { name: 'a method that is no object', value: { methods: [1] }, problem: /^row is no object/ },
    { name: 'methods within methods', value: { methods: [{ methods: [] }] }, problem: /the member methods/ },
    { name: 'no email', value: { passwordHash: hash }, problem: /^email is missing/ },
    { name: 'an email that is no text', value: { email: 1, passwordHash: hash }, problem: /^email is no text/ },
    {
      name: 'an email without a domain',
      value: { email: 'ada', passwordHash: hash },
      problem: /^email is no email address/,
    },
    {
      name: 'an email with a space',
      value: { email: ' ada@example.com', passwordHash: hash },
      problem: /^email is no email address/,
    },
    {
      name: 'an email with two dots',
      value: { email: 'a..b@example.com', passwordHash: hash },
      problem: /^email is no email address/,
    },
    {
      name: 'an email without a top level',
      value: { email: 'a@localhost', passwordHash: hash },
      problem: /^email is no email address/,
    },
    {
      name: 'an email with a domain in letters',
      value: { email: 'a@exämple.com', passwordHash: hash },
      problem: /^email is no email address/,
    },
    {
      name: 'a local part of 65 bytes',
      value: { email: `${'a'.repeat(65)}@example.com`, passwordHash: hash },
      problem: /^email is no email address/,
    },
    {
      name: 'an email of 255 bytes',
      value: {
        email: `a@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.${'e'.repeat(60)}.${'f'.repeat(5)}.com`,
        passwordHash: hash,
      },
      problem: /^email is/,
    },
    {
      name: 'passwordless that is no object',
      value: { passwordless: 'a@b.de' },
      problem: /^passwordless is no object/,
    },
    {
      name: 'passwordless and more',
      value: { passwordless: { email: 'a@b.de' }, email: 'a@b.de' },
      problem: /the member email/,
    },
    { name: 'no contact', value: { passwordless: {} }, problem: /^passwordless has no contact/ },
    {
      name: 'two contacts',
      value: { passwordless: { email: 'a@b.de', phoneNumber: '+4930901820' } },
      problem: /^passwordless has two contacts/,
    },
    {
      name: 'a misspelt contact',
      value: { passwordless: { phone: '+4930901820' } },
      problem: /^passwordless has the member phone/,
    },
    {
      name: 'a phone number with spaces',
      value: { passwordless: { phoneNumber: '+49 30 901820' } },
      problem: /^passwordless.phoneNumber is not written as E.164/,
    },
    {
      name: 'a national phone number',
      value: { passwordless: { phoneNumber: '030901820' } },
      problem: /^passwordless.phoneNumber is not written as E.164/,
    },
    {
      name: 'a phone number that no country has',
      value: { passwordless: { phoneNumber: '+49123' } },
      problem: /^passwordless.phoneNumber is/,
    },
    {
      name: 'a phone number that is no text',
      value: { passwordless: { phoneNumber: 4930901820 } },
      problem: /^passwordless.phoneNumber is no text/,
    },
    {
      name: 'the same contact to add',
      value: { passwordless: { email: 'a@b.de', add: 'c@d.de' } },
      problem: /^passwordless.add is not written as E.164/,
    },
    {
      name: 'the same contact to add, by name',
      value: { passwordless: { email: 'a@b.de', add: { email: 'c@d.de' } } },
      problem: /^passwordless.add has the member email/,
    },
    {
      name: 'no provider',
      value: { thirdParty: { ...third, thirdPartyId: '' } },
      problem: /^thirdParty.thirdPartyId is missing/,
    },
    {
      name: 'a user id with a control',
      value: { thirdParty: { ...third, thirdPartyUserId: 'a\u0000' } },
      problem: /^thirdParty.thirdPartyUserId is no id/,
    },
    {
      name: 'a provider that is too long for the Core',
      value: { thirdParty: { ...third, thirdPartyId: 'a'.repeat(29) } },
      problem: /^thirdParty.thirdPartyId is no id/,
    },
    {
      name: 'a user id that is too long',
      value: { thirdParty: { ...third, thirdPartyUserId: 'a'.repeat(257) } },
      problem: /^thirdParty.thirdPartyUserId is no id/,
    },
    {
      name: 'no email of a third party',
      value: { thirdParty: { ...third, email: null } },
      problem: /^thirdParty.email is missing/,
    },
    {
      name: 'verified in words',
      value: { thirdParty: { ...third, isVerified: 'true' } },
      problem: /^thirdParty.isVerified is neither true nor false/,
    },
    {
      name: 'a third party and more',
      value: { thirdParty: { ...third, name: 'Ada' } },
      problem: /^thirdParty has the member name/,
    },
  ];
  for (const { name, value, problem } of cases) {
    const [user] = readRow(row(value), rules);
    t.match(user?.read.ok === false ? problemText(user.read.error) : 'taken', problem, name);
  }
});

t.test('what is at the bounds is taken', async (t) => {
  const emails = [`${'a'.repeat(64)}@example.com`, "o'brien+x@sub.example.co", 'jörg@example.xn--p1ai'];
  for (const email of emails) t.ok(readRow(row({ email, passwordHash: hash }), rules)[0]?.read.ok, email);
  const longest = { ...third, thirdPartyId: 'a'.repeat(28), thirdPartyUserId: 'a'.repeat(256) };
  t.ok(readRow(row({ thirdParty: longest }), rules)[0]?.read.ok);
});

t.test('names that the Core keeps users apart by, and contacts that none may share in flight', async (t) => {
  const users = readRow(
    row({
      methods: [password, { passwordless: { email: 'Ada@example.com', add: '+4930901820' } }, { thirdParty: third }],
    }),
    rules,
  ).flatMap(({ read }) => (read.ok ? [read.value] : []));
  t.same(users.map(kindOf), ['bcrypt', 'passwordless', 'third_party']);
  t.same(users.map(identitiesOf), [
    ['password ada@example.com'],
    ['passwordless ada@example.com', 'passwordless +4930901820'],
    ['third_party ["google","1"]'],
  ]);
  t.same(users.map(contactsOf), [['ada@example.com'], ['ada@example.com', '+4930901820'], ['ada@example.com']]);
});

t.test('CSV says the same with columns', async (t) => {
  const cells = (filled: Record<string, string>): JsonValue => rowOfCells(new Map(Object.entries(filled)));
  t.same(cells({ email: 'a@b.de', passwordHash: hash, hashingAlgorithm: '', line: '7', reason: 'x' }), {
    email: 'a@b.de',
    passwordHash: hash,
  });
  t.same(cells({ 'passwordless.email': 'a@b.de', 'passwordless.add': '+4930901820' }), {
    passwordless: { email: 'a@b.de', add: '+4930901820' },
  });
  t.same(cells({ 'passwordless.email': 'a@b.de', 'passwordless.add.phoneNumber': '+49' }), {
    passwordless: { email: 'a@b.de', add: { phoneNumber: '+49' } },
  });
  t.same(cells({ 'thirdParty.isVerified': 'TRUE' }), { thirdParty: { isVerified: true } });
  t.same(cells({ 'thirdParty.isVerified': 'false' }), { thirdParty: { isVerified: false } });
  t.same(cells({ 'thirdParty.isVerified': 'yes' }), { thirdParty: { isVerified: 'yes' } });
  t.same(cells({ email: 'a@b.de', 'thirdParty.email': 'a@b.de' }), {
    methods: [{ email: 'a@b.de' }, { thirdParty: { email: 'a@b.de' } }],
  });
  t.same(cells({ email: '' }), {});
  const problemOf = (...columns: readonly string[]): string | null => headerProblem(columns, nearestName);
  t.equal(problemOf('email', 'passwordHash', 'line', 'record', 'method', 'reason'), null);
  t.equal(problemOf('email', 'passwordHash', 'record', 'method'), null);
  for (const column of ['line', 'record', 'method', 'reason']) {
    const says = `^column 2 of the header has no known name: "${column}"; allowed: email, .*; in a list of rejected rows also line, `;
    t.match(problemOf('email', column), new RegExp(says));
  }
  const twice = /^the columns passwordless\.add and .* say the same, and one would be lost/;
  t.match(problemOf('passwordless.email', 'passwordless.add', 'passwordless.add.phoneNumber'), twice);
  t.equal(
    problemOf(
      'passwordless.email',
      'passwordless.phoneNumber',
      'passwordless.add.email',
      'passwordless.add.phoneNumber',
    ),
    null,
  );
  t.match(
    problemOf('email', 'password_hash'),
    /^column 2 of the header has no known name: "password_hash"; did you mean passwordHash\?; allowed: email, /,
  );
  t.match(
    problemOf('Email', 'passwordHash'),
    /^column 1 of the header has no known name: "Email"; did you mean email\?; /,
  );
  t.match(
    problemOf('email', 'favourite colour'),
    /^column 2 of the header has no known name: "favourite colour"; allowed: /,
  );
  t.match(
    problemOf('passwordhsh'),
    /^column 1 of the header has no known name: "passwordhsh"; did you mean passwordHash\?; /,
    'near to one of ours',
  );
  t.match(
    problemOf('hunter2', 'alice'),
    /^column 1 of the header has no known name; allowed: /,
    'no header: its first line is a user',
  );
  t.match(problemOf('email', '$2a$10$abc'), /^column 2 of the header has no known name; allowed: /, 'no name');
  t.match(problemOf('email', 'x'.repeat(41)), /^column 2 of the header has no known name; allowed: /);
  t.match(problemOf('email', 'email'), /^the column email is there twice/);
  t.match(problemOf('line', 'record', 'method', 'reason'), /^the header has no column of users/);
  t.same(
    originOfCells(
      new Map([
        ['record', '7'],
        ['method', '2'],
      ]),
    ),
    { record: 7, method: 2 },
  );
  t.same(
    originOfCells(
      new Map([
        ['record', '7'],
        ['method', ''],
      ]),
    ),
    { record: 7, method: 0 },
  );
  t.equal(originOfCells(new Map([['record', '0']])), null);
  t.equal(originOfCells(new Map()), null);
});
