import t from 'tap';
import type { JsonObject } from '../../../src/lib/strict-json.js';
import { parseHashParameters, rowOfFirebaseUser } from '../../../src/user-import/row/firebase.js';

const parameters = { memCost: 14, rounds: 8, saltSeparator: 'Bw==' };
const scrypt = '$f_scrypt$aGFzaA==$c2FsdA==$m=14$r=8$s=Bw==';

t.test('hash parameters, as the console shows them and as JSON', async (t) => {
  const console =
    'hash_config {\n  algorithm: SCRYPT,\n  base64_signer_key: jxspr8Ki==,\n  base64_salt_separator: Bw==,\n  rounds: 8,\n  mem_cost: 14,\n}\n';
  t.same(parseHashParameters(console), { ok: true, value: parameters });
  t.same(parseHashParameters('{"signer_key":"x==","salt_separator":"Bw==","rounds":8,"mem_cost":14}'), {
    ok: true,
    value: parameters,
  });
  const refused = [
    { text: '', problem: 'has no mem_cost from 1 to 14' },
    { text: 'mem_cost: 15, rounds: 8, base64_salt_separator: Bw==', problem: 'has no mem_cost from 1 to 14' },
    { text: 'mem_cost: 14, rounds: 9, base64_salt_separator: Bw==', problem: 'has no rounds from 1 to 8' },
    { text: 'mem_cost: 14, rounds: 8', problem: 'has no base64_salt_separator in base64' },
    {
      text: 'algorithm: BCRYPT, mem_cost: 14, rounds: 8, base64_salt_separator: Bw==',
      problem: 'has an algorithm that is not SCRYPT',
    },
  ];
  for (const { text, problem } of refused) t.same(parseHashParameters(text), { ok: false, error: problem }, text);
});

t.test('users of an export', async (t) => {
  const cases: readonly { name: string; user: JsonObject; row: unknown }[] = [
    {
      name: 'with a password',
      user: {
        localId: '1',
        email: 'a@b.de',
        passwordHash: 'aGFzaA==',
        salt: 'c2FsdA==',
        providerUserInfo: [{ providerId: 'password' }],
      },
      row: { email: 'a@b.de', passwordHash: scrypt, hashingAlgorithm: 'hosted_scrypt' },
    },
    {
      name: 'in base64url',
      user: { email: 'a@b.de', passwordHash: '-_8', salt: 'c2FsdA' },
      row: { passwordHash: '$f_scrypt$+/8=$c2FsdA==$m=14$r=8$s=Bw==' },
    },
    {
      name: 'with a phone',
      user: { phoneNumber: '+4930901820', providerUserInfo: [{ providerId: 'phone' }] },
      row: { passwordless: { phoneNumber: '+4930901820' } },
    },
    { name: 'with a link by email', user: { email: 'a@b.de' }, row: { passwordless: { email: 'a@b.de' } } },
    {
      name: 'with a third party',
      user: {
        email: 'a@b.de',
        emailVerified: true,
        providerUserInfo: [{ providerId: 'google.com', rawId: '7', email: 'A@b.de' }],
      },
      row: { thirdParty: { thirdPartyId: 'google', thirdPartyUserId: '7', email: 'A@b.de', isVerified: true } },
    },
    {
      name: 'with a third party that has another address: the mark is not about that one',
      user: {
        email: 'a@b.de',
        emailVerified: true,
        providerUserInfo: [{ providerId: 'google.com', rawId: '7', email: 'g@b.de' }],
      },
      row: { thirdParty: { thirdPartyId: 'google', thirdPartyUserId: '7', email: 'g@b.de', isVerified: false } },
    },
    {
      name: 'with a phone and a verified address',
      user: { email: 'a@b.de', emailVerified: true, phoneNumber: '+4930901820' },
      row: { passwordless: { phoneNumber: '+4930901820', add: 'a@b.de' } },
    },
    {
      name: 'with a third party of its own name',
      user: { email: 'a@b.de', providerUserInfo: [{ providerId: 'oidc.corp', rawId: '7' }] },
      row: { thirdParty: { thirdPartyId: 'oidc.corp', thirdPartyUserId: '7', email: 'a@b.de', isVerified: false } },
    },
    {
      name: 'with two ways',
      user: { email: 'a@b.de', passwordHash: 'aGFzaA==', salt: 'c2FsdA==', phoneNumber: '+4930901820' },
      row: { methods: [{ email: 'a@b.de' }, { passwordless: {} }] },
    },
    {
      name: 'with a provider that has no name',
      user: { providerUserInfo: [{ rawId: '7' }] },
      row: { thirdParty: { thirdPartyId: null } },
    },
  ];
  for (const { name, user, row } of cases) {
    t.match(rowOfFirebaseUser(user, parameters), { ok: true, value: { row } }, name);
  }
});

t.test('users that an import cannot carry', async (t) => {
  t.match(rowOfFirebaseUser({ email: 'a@b.de', disabled: true }, parameters), {
    ok: false,
    error: { what: /^is disabled there/ },
  });
  t.match(rowOfFirebaseUser({ localId: '1' }, parameters), { ok: false, error: { what: /anonymous/ } });
  t.match(rowOfFirebaseUser(7, parameters), { ok: false, error: { what: 'is no object' } });
  const malformed: readonly (readonly [string, JsonObject])[] = [
    ['email', { email: 7, phoneNumber: '+4930901820' }],
    ['passwordHash', { email: 'a@b.de', passwordHash: 7 }],
    ['salt', { email: 'a@b.de', passwordHash: 'aGFzaA==', salt: ['x'] }],
    ['phoneNumber', { phoneNumber: 4930901820 }],
    ['disabled', { email: 'a@b.de', disabled: 'true' }],
    ['emailVerified', { email: 'a@b.de', emailVerified: 'true' }],
    ['providerUserInfo', { email: 'a@b.de', providerUserInfo: { providerId: 'google.com' } }],
    ['providerUserInfo', { email: 'a@b.de', providerUserInfo: [7] }],
  ];
  for (const [field, user] of malformed) {
    t.match(rowOfFirebaseUser(user, parameters), { ok: false, error: { field } }, JSON.stringify(user));
  }
});

t.test('what an export says and no call of the Core carries is named, user by user', async (t) => {
  const password = { email: 'a@b.de', passwordHash: 'aGFzaA==', salt: 'c2FsdA==' };
  const google = { providerId: 'google.com', rawId: '7', email: 'a@b.de' };
  const cases: readonly { name: string; user: JsonObject; lost: readonly (readonly string[])[] }[] = [
    {
      name: 'all is carried',
      user: { ...password, disabled: false, emailVerified: false, providerUserInfo: [] },
      lost: [[]],
    },
    {
      name: 'empty values say nothing',
      user: { ...password, displayName: '', photoUrl: null, customAttributes: '{}', mfaInfo: [], customAuth: false },
      lost: [[]],
    },
    {
      name: 'members of the account',
      user: {
        ...password,
        localId: 'l',
        displayName: 'Ada',
        photoUrl: 'p',
        createdAt: '1',
        lastSignedInAt: '2',
        customAttributes: '{"a":1}',
        mfaInfo: [{}],
      },
      lost: [['localId', 'displayName', 'photoUrl', 'createdAt', 'lastSignedInAt', 'customAttributes', 'mfaInfo']],
    },
    {
      name: 'a member that nobody knows',
      user: { ...password, newThing: 1, 'a secret that is a name': 1 },
      lost: [['newThing', 'other members']],
    },
    {
      name: 'a verified address of a password user',
      user: { ...password, emailVerified: true },
      lost: [['emailVerified']],
    },
    {
      name: 'a verified address that a third party holds',
      user: { email: 'a@b.de', emailVerified: true, providerUserInfo: [google] },
      lost: [[]],
    },
    {
      name: 'of both, each by itself',
      user: { ...password, emailVerified: true, localId: 'l', providerUserInfo: [google] },
      lost: [['localId', 'emailVerified'], ['localId']],
    },
    {
      name: 'a verified address that is added',
      user: { email: 'a@b.de', emailVerified: true, phoneNumber: '+49' },
      lost: [['emailVerified']],
    },
    {
      name: 'an address that is not verified, beside a phone',
      user: { email: 'a@b.de', phoneNumber: '+49' },
      lost: [['email']],
    },
    {
      name: 'an address that nobody gets',
      user: { email: 'a@b.de', emailVerified: true, providerUserInfo: [{ ...google, email: 'g@b.de' }] },
      lost: [['email', 'emailVerified']],
    },
    {
      name: 'members of a provider',
      user: { providerUserInfo: [{ ...google, displayName: 'Ada', photoUrl: 'p', federatedId: 'f' }] },
      lost: [['providerUserInfo.displayName', 'providerUserInfo.photoUrl', 'providerUserInfo.federatedId']],
    },
    {
      name: 'an entry that repeats what the account says',
      user: { ...password, providerUserInfo: [{ providerId: 'password', rawId: 'a@b.de', email: 'a@b.de' }] },
      lost: [[]],
    },
    {
      name: 'an entry that says more',
      user: { ...password, providerUserInfo: [{ providerId: 'password', email: 'c@d.de' }] },
      lost: [['providerUserInfo.email']],
    },
  ];
  for (const { name, user, lost } of cases) {
    const read = rowOfFirebaseUser(user, parameters);
    t.same(read.ok ? read.value.lost : read.error, lost, name);
  }
});
