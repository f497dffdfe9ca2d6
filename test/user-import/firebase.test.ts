import t from 'tap';
import type { JsonObject } from '../../src/decision/strict-json.js';
import { parseHashParameters, rowOfFirebaseUser } from '../../src/user-import/firebase.js';

const parameters = { memCost: 14, rounds: 8, saltSeparator: 'Bw==' };
const scrypt = '$f_scrypt$aGFzaA==$c2FsdA==$m=14$r=8$s=Bw==';

t.test('hash parameters, as the console shows them and as JSON', async (t) => {
  const console = 'hash_config {\n  algorithm: SCRYPT,\n  base64_signer_key: jxspr8Ki==,\n  base64_salt_separator: Bw==,\n  rounds: 8,\n  mem_cost: 14,\n}\n';
  t.same(parseHashParameters(console), { ok: true, value: parameters });
  t.same(parseHashParameters('{"signer_key":"x==","salt_separator":"Bw==","rounds":8,"mem_cost":14}'), { ok: true, value: parameters });
  const refused = [
    { text: '', problem: 'has no mem_cost from 1 to 14' },
    { text: 'mem_cost: 15, rounds: 8, base64_salt_separator: Bw==', problem: 'has no mem_cost from 1 to 14' },
    { text: 'mem_cost: 14, rounds: 9, base64_salt_separator: Bw==', problem: 'has no rounds from 1 to 8' },
    { text: 'mem_cost: 14, rounds: 8', problem: 'has no base64_salt_separator in base64' },
    { text: 'algorithm: BCRYPT, mem_cost: 14, rounds: 8, base64_salt_separator: Bw==', problem: 'has an algorithm that is not SCRYPT' },
  ];
  for (const { text, problem } of refused) t.same(parseHashParameters(text), { ok: false, error: problem }, text);
});

t.test('users of an export', async (t) => {
  const cases: readonly { name: string; user: JsonObject; row: unknown }[] = [
    {
      name: 'with a password',
      user: { localId: '1', email: 'a@b.de', passwordHash: 'aGFzaA==', salt: 'c2FsdA==', providerUserInfo: [{ providerId: 'password' }] },
      row: { email: 'a@b.de', passwordHash: scrypt, hashingAlgorithm: 'hosted_scrypt' },
    },
    {
      name: 'in base64url', user: { email: 'a@b.de', passwordHash: '-_8', salt: 'c2FsdA' },
      row: { passwordHash: '$f_scrypt$+/8=$c2FsdA==$m=14$r=8$s=Bw==' },
    },
    {
      name: 'with a phone', user: { phoneNumber: '+4930901820', providerUserInfo: [{ providerId: 'phone' }] },
      row: { passwordless: { phoneNumber: '+4930901820' } },
    },
    { name: 'with a link by email', user: { email: 'a@b.de' }, row: { passwordless: { email: 'a@b.de' } } },
    {
      name: 'with a third party',
      user: { email: 'a@b.de', emailVerified: true, providerUserInfo: [{ providerId: 'google.com', rawId: '7', email: 'g@b.de' }] },
      row: { thirdParty: { thirdPartyId: 'google', thirdPartyUserId: '7', email: 'g@b.de', isVerified: true } },
    },
    {
      name: 'with a third party of its own name', user: { email: 'a@b.de', providerUserInfo: [{ providerId: 'oidc.corp', rawId: '7' }] },
      row: { thirdParty: { thirdPartyId: 'oidc.corp', thirdPartyUserId: '7', email: 'a@b.de', isVerified: false } },
    },
    {
      name: 'with two ways', user: { email: 'a@b.de', passwordHash: 'aGFzaA==', salt: 'c2FsdA==', phoneNumber: '+4930901820' },
      row: { methods: [{ email: 'a@b.de' }, { passwordless: {} }] },
    },
    { name: 'with a provider that has no name', user: { providerUserInfo: [{ rawId: '7' }] }, row: { thirdParty: { thirdPartyId: null } } },
  ];
  for (const { name, user, row } of cases) t.match(rowOfFirebaseUser(user, parameters), { ok: true, value: row }, name);
});

t.test('users that an import cannot carry', async (t) => {
  t.match(rowOfFirebaseUser({ email: 'a@b.de', disabled: true }, parameters), { ok: false, error: { what: /^is disabled there/ } });
  t.match(rowOfFirebaseUser({ localId: '1' }, parameters), { ok: false, error: { what: /anonymous/ } });
  t.match(rowOfFirebaseUser(7, parameters), { ok: false, error: { what: 'is no object' } });
});
