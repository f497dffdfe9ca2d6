import { randomUUID } from 'node:crypto';
import type { Test } from 'tap';
import type { CoreAnswer, Headers } from '../core-client.js';
import { freshEmail, importing, notEmails, statusOf, userOf, type CoreUnderTest } from './core-under-test.js';

/** docs/specification.md 4.8: third-party users are created by a sign-in. */
export function thirdPartyContract(t: Test, { core, dialect }: CoreUnderTest): void {
  const signInUp = (body: unknown, headers: Headers = importing): Promise<CoreAnswer> =>
    core.post('/recipe/signinup', body, headers);
  const body = (thirdPartyUserId: string, email: object): object => ({
    thirdPartyId: 'google',
    thirdPartyUserId,
    email,
  });

  t.test('created once, then signed in; another email is taken over', async (t) => {
    const [id, email, next] = [randomUUID(), freshEmail(), freshEmail()];
    const first = await signInUp(body(id, { id: email, isVerified: true }));
    t.match(first.json(), {
      status: 'OK',
      createdNewUser: true,
      user: { email, thirdParty: { id: 'google', userId: id } },
    });
    t.same(Object.keys(userOf(first)).sort(), ['email', 'id', 'thirdParty', 'timeJoined']);
    const second = await signInUp(body(id, { id: next, isVerified: true }));
    t.match(second.json(), { status: 'OK', createdNewUser: false, user: { id: userOf(first).id, email: next } });
    const find = (query: string): Promise<CoreAnswer> =>
      core.get(`/recipe/user?${query}`, { ...importing, rid: 'thirdparty' });
    t.same((await find(`thirdPartyId=google&thirdPartyUserId=${id}`)).json(), { status: 'OK', user: userOf(second) });
    t.same((await find(`userId=${userOf(first).id}`)).json(), { status: 'OK', user: userOf(second) });
    t.equal(statusOf(await find(`thirdPartyId=apple&thirdPartyUserId=${id}`)), 'UNKNOWN_THIRD_PARTY_USER_ERROR');
    t.equal(
      statusOf(await find('thirdPartyId=google')),
      '400 Please provide one of userId or (thirdPartyId & thirdPartyUserId)',
    );
    t.equal(
      statusOf(await find('thirdPartyId=google&userId=x')),
      '400 Please provide only one of userId or (thirdPartyId & thirdPartyUserId)',
    );
  });

  t.test('isVerified counts; SuperTokens reads it from CDI 4.0 on alone', async (t) => {
    const verifiedAt = async (version: string, isVerified: boolean): Promise<unknown> => {
      const id = randomUUID();
      await signInUp(body(id, { id: freshEmail(), isVerified }), { 'cdi-version': version });
      const query = `thirdPartyId=google&thirdPartyUserId=${id}&doUnionOfAccountInfo=true`;
      const found = await core.get(`/users/by-accountinfo?${query}`, { 'cdi-version': '4.0' });
      const [user] = found.json()['users'] as readonly { loginMethods: readonly { verified: boolean }[] }[];
      return user?.loginMethods[0]?.verified;
    };
    for (const version of ['2.16', '2.21', '3.0']) {
      t.equal(await verifiedAt(version, true), dialect === 'seed', version);
    }
    t.equal(await verifiedAt('4.0', true), true);
    for (const version of ['2.16', '4.0']) t.equal(await verifiedAt(version, false), false, version);
    const inWords = await signInUp(body(randomUUID(), { id: freshEmail(), isVerified: 'yes' }));
    t.equal(statusOf(inWords), dialect === 'seed' ? "400 Field name 'isVerified' is invalid in JSON input" : 'OK');
  });

  t.test('isVerified may be left out below CDI 4.0, and is wanted from there on', async (t) => {
    t.equal(statusOf(await signInUp(body(randomUUID(), { id: freshEmail() }))), 'OK');
    const unmarked = await signInUp(body(randomUUID(), { id: freshEmail() }), { 'cdi-version': '4.0' });
    t.equal(statusOf(unmarked), "400 Field name 'isVerified' is invalid in JSON input");
    const answer = await signInUp(body(randomUUID(), { id: freshEmail(), isVerified: true }), { 'cdi-version': '4.0' });
    t.match(userOf(answer), { isPrimaryUser: false, loginMethods: [{ recipeId: 'thirdparty', verified: true }] });
  });

  t.test('refusals are 400 in plain text', async (t) => {
    const field = (name: string): string => `400 Field name '${name}' is invalid in JSON input`;
    const cases = [
      { name: 'no provider', body: { thirdPartyUserId: 'x', email: { id: 'a@b.c' } }, expected: field('thirdPartyId') },
      { name: 'no user', body: { thirdPartyId: 'x', email: { id: 'a@b.c' } }, expected: field('thirdPartyUserId') },
      { name: 'no email', body: { thirdPartyId: 'x', thirdPartyUserId: 'x' }, expected: field('email') },
      {
        name: 'email a string',
        body: { thirdPartyId: 'x', thirdPartyUserId: 'x', email: 'a@b.c' },
        expected: field('email'),
      },
      {
        name: 'email without id',
        body: { thirdPartyId: 'x', thirdPartyUserId: 'x', email: {} },
        expected: field('id'),
      },
      { name: 'no JSON', body: '[]', expected: '400 Invalid Json Input' },
      ...(dialect === 'seed' ? notEmails : []).map((email) => ({
        name: `email ${email}`,
        body: { thirdPartyId: 'x', thirdPartyUserId: 'x', email: { id: email } },
        expected: field('id'),
      })),
    ];
    for (const { name, body: asked, expected } of cases) t.equal(statusOf(await signInUp(asked)), expected, name);
  });
}
