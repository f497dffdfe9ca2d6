import type { Test } from 'tap';
import type { CoreAnswer } from '../core-client.js';
import {
  freshEmail,
  freshPhoneNumber,
  importing,
  notEmails,
  notInternational,
  statusOf,
  userOf,
  type CoreUnderTest,
  type UserJson,
} from './core-under-test.js';

/** docs/specification.md 4.5 to 4.7: passwordless users come from a code that is made and consumed. */
export function passwordlessContract(t: Test, { core, dialect }: CoreUnderTest): void {
  const rid = { ...importing, rid: 'passwordless' };
  const createCode = (body: unknown): Promise<CoreAnswer> => core.post('/recipe/signinup/code', body, importing);
  const consume = (body: unknown): Promise<CoreAnswer> => core.post('/recipe/signinup/code/consume', body, importing);
  const codeFor = async (contact: object): Promise<Record<string, string>> =>
    (await createCode(contact)).json() as Record<string, string>;
  const byLink = ({ preAuthSessionId, linkCode }: Record<string, string>): object => ({ preAuthSessionId, linkCode });
  const create = async (contact: object): Promise<UserJson> => userOf(await consume(byLink(await codeFor(contact))));

  t.test('the record of a code', async (t) => {
    for (const contact of [{ email: freshEmail() }, { phoneNumber: freshPhoneNumber() }]) {
      const code = (await createCode(contact)).json();
      t.same(Object.keys(code).sort(), [
        'codeId',
        'codeLifetime',
        'deviceId',
        'linkCode',
        'preAuthSessionId',
        'status',
        'timeCreated',
        'userInputCode',
      ]);
      t.match(code, { status: 'OK', userInputCode: /^\d{6}$/, codeId: /^[0-9a-f-]{36}$/ });
      for (const name of ['preAuthSessionId', 'deviceId', 'linkCode']) t.match(code[name], /^.+$/, name);
      t.ok(Number.isSafeInteger(code['codeLifetime']) && Number(code['codeLifetime']) > 0, 'milliseconds');
      t.ok(
        Number.isSafeInteger(code['timeCreated']) && Math.abs(Number(code['timeCreated']) - Date.now()) < 600_000,
        'milliseconds since the epoch',
      );
    }
  });

  t.test('consuming a link code creates the user once; the next one signs in', async (t) => {
    const email = freshEmail();
    const first = await consume(byLink(await codeFor({ email })));
    t.match(first.json(), { status: 'OK', createdNewUser: true, user: { email } });
    t.same(Object.keys(userOf(first)).sort(), ['email', 'id', 'timeJoined']);
    const second = await consume(byLink(await codeFor({ email })));
    t.match(second.json(), { status: 'OK', createdNewUser: false, user: { id: userOf(first).id } });
  });

  t.test('a used, unknown or superseded code starts over', async (t) => {
    const email = freshEmail();
    const [one, other] = [await codeFor({ email }), await codeFor({ email })];
    t.equal(statusOf(await consume(byLink(one))), 'OK');
    t.equal(statusOf(await consume(byLink(one))), 'RESTART_FLOW_ERROR', 'used');
    t.equal(statusOf(await consume(byLink(other))), 'RESTART_FLOW_ERROR', 'another device of the contact');
    t.equal(
      statusOf(await consume({ preAuthSessionId: one['preAuthSessionId'], linkCode: 'dW5rbm93bg' })),
      'RESTART_FLOW_ERROR',
      'unknown',
    );
  });

  t.test('of two that race for one contact, one wins and the other starts over', async (t) => {
    const phoneNumber = freshPhoneNumber();
    const codes = [await codeFor({ phoneNumber }), await codeFor({ phoneNumber })];
    const answers = await Promise.all(codes.map((code) => consume(byLink(code))));
    t.same(answers.map(statusOf).sort(), ['OK', 'RESTART_FLOW_ERROR']);
    const code = await codeFor({ phoneNumber });
    const same = await Promise.all([consume(byLink(code)), consume(byLink(code))]);
    t.same(same.map(statusOf).sort(), ['OK', 'RESTART_FLOW_ERROR']);
  });

  t.test('a user input code: right, wrong five times, and not beside a link code', async (t) => {
    const typed = (
      { preAuthSessionId, deviceId }: Record<string, string>,
      userInputCode: string | undefined,
    ): object => ({ preAuthSessionId, deviceId, userInputCode });
    const right = await codeFor({ email: freshEmail() });
    t.equal(statusOf(await consume(typed(right, right['userInputCode']))), 'OK');
    const code = await codeFor({ email: freshEmail() });
    for (const count of [1, 2, 3, 4]) {
      t.match((await consume(typed(code, 'wrong'))).json(), {
        status: 'INCORRECT_USER_INPUT_CODE_ERROR',
        failedCodeInputAttemptCount: count,
        maximumCodeInputAttempts: 5,
      });
    }
    t.equal(statusOf(await consume(typed(code, 'wrong'))), 'RESTART_FLOW_ERROR');
    t.equal(statusOf(await consume(typed(code, code['userInputCode']))), 'RESTART_FLOW_ERROR');
  });

  t.test('one more code for a device, both good until one is used', async (t) => {
    const first = await codeFor({ email: freshEmail() });
    const second = await codeFor({ deviceId: first['deviceId'] });
    t.equal(second['preAuthSessionId'], first['preAuthSessionId']);
    t.equal(statusOf(await consume(byLink(first))), 'OK');
    t.equal(statusOf(await consume(byLink(second))), 'RESTART_FLOW_ERROR');
    t.equal(statusOf(await createCode({ deviceId: first['deviceId'] })), 'RESTART_FLOW_ERROR');
  });

  t.test('refusals of codes are 400 in plain text', async (t) => {
    const code = await codeFor({ email: freshEmail() });
    const other = await codeFor({ email: freshEmail() });
    const contact = '400 Please provide exactly one of email, phoneNumber or deviceId';
    const way = '400 Please provide exactly one of linkCode or deviceId+userInputCode';
    const field = (name: string): string => `400 Field name '${name}' is invalid in JSON input`;
    const creating = [
      { name: 'no contact', body: {}, expected: contact },
      { name: 'two contacts', body: { email: 'a@b.c', phoneNumber: '+14155550100' }, expected: contact },
      { name: 'email and device', body: { email: 'a@b.c', deviceId: 'x' }, expected: contact },
      { name: 'email a number', body: { email: 1 }, expected: field('email') },
      { name: 'no JSON', body: 'null', expected: '400 Invalid Json Input' },
      ...(dialect === 'seed' ? notEmails : []).map((email) => ({
        name: `email ${email}`,
        body: { email },
        expected: field('email'),
      })),
      ...(dialect === 'seed' ? notInternational : []).map((phoneNumber) => ({
        name: `phone ${phoneNumber}`,
        body: { phoneNumber },
        expected: field('phoneNumber'),
      })),
    ];
    for (const { name, body, expected } of creating) t.equal(statusOf(await createCode(body)), expected, name);
    const { preAuthSessionId, linkCode, deviceId, userInputCode } = code;
    const consuming = [
      { name: 'no session', body: { linkCode }, expected: field('preAuthSessionId') },
      { name: 'no code', body: { preAuthSessionId }, expected: way },
      { name: 'half a typed code', body: { preAuthSessionId, deviceId }, expected: way },
      { name: 'both ways', body: { preAuthSessionId, linkCode, deviceId, userInputCode }, expected: way },
      {
        name: 'another session',
        body: { preAuthSessionId: other['preAuthSessionId'], linkCode },
        expected: "400 preAuthSessionId and deviceId doesn't match",
      },
    ];
    for (const { name, body, expected } of consuming) t.equal(statusOf(await consume(body)), expected, name);
  });

  t.test('contact information is added to a passwordless user', async (t) => {
    const [email, phoneNumber] = [freshEmail(), freshPhoneNumber()];
    const { id } = await create({ email });
    const update = (body: unknown): Promise<CoreAnswer> => core.put('/recipe/user', body, rid);
    t.equal(statusOf(await update({ userId: id, email, phoneNumber })), 'OK');
    const found = await core.get(`/recipe/user?phoneNumber=${encodeURIComponent(phoneNumber)}`, rid);
    t.match(found.json(), { status: 'OK', user: { id, email, phoneNumber } });
    t.equal((await create({ phoneNumber })).id, id, 'a code to the number signs the same user in');
    const taken = await create({ email: freshEmail() });
    t.equal(statusOf(await update({ userId: taken.id, email })), 'EMAIL_ALREADY_EXISTS_ERROR');
    t.equal(statusOf(await update({ userId: taken.id, phoneNumber })), 'PHONE_NUMBER_ALREADY_EXISTS_ERROR');
    t.equal(statusOf(await update({ userId: '00000000-0000-4000-8000-000000000000', email })), 'UNKNOWN_USER_ID_ERROR');
    t.equal(
      statusOf(await update({ userId: id, email: null, phoneNumber: null })),
      '400 You cannot clear both email and phone number of a user',
    );
    t.equal(statusOf(await update({ userId: id, email: null })), 'OK');
    t.equal(statusOf(await core.get(`/recipe/user?email=${encodeURIComponent(email)}`, rid)), 'UNKNOWN_EMAIL_ERROR');
    t.equal(statusOf(await update({ email })), "400 Field name 'userId' is invalid in JSON input");
    if (dialect !== 'seed') return;
    for (const text of notEmails) {
      t.match(statusOf(await update({ userId: id, email: text })), /^400 Field name 'email' is invalid/, text);
    }
    for (const text of notInternational) {
      t.match(
        statusOf(await update({ userId: id, phoneNumber: text })),
        /^400 Field name 'phoneNumber' is invalid/,
        text,
      );
    }
  });

  t.test('an email that a code was consumed for is verified: by SuperTokens from CDI 4.0 on', async (t) => {
    const verifiedAt = async (version: string, email: string): Promise<unknown> => {
      const consumed = await core.post('/recipe/signinup/code/consume', byLink(await codeFor({ email })), {
        'cdi-version': version,
      });
      const found = userOf(await core.get(`/user/id?userId=${userOf(consumed).id}`, { 'cdi-version': '4.0' }));
      return (found['loginMethods'] as readonly { verified: boolean }[])[0]?.verified;
    };
    const [email, other] = [freshEmail(), freshEmail()];
    t.equal(await verifiedAt('2.16', email), dialect === 'seed');
    t.equal(await verifiedAt('4.0', email), true, 'the next code does it');
    t.equal(await verifiedAt('4.0', other), true);
  });

  t.test('a contact that changes hands ends the codes that were sent to it', async (t) => {
    const [email, next] = [freshEmail(), freshEmail()];
    const { id } = await create({ email });
    const codes = [await codeFor({ email }), await codeFor({ email: next })];
    t.equal(statusOf(await core.put('/recipe/user', { userId: id, email: next }, rid)), 'OK');
    for (const code of codes) t.equal(statusOf(await consume(byLink(code))), 'RESTART_FLOW_ERROR');
  });

  t.test('a passwordless user is found by one contact or id, and not by two', async (t) => {
    const email = freshEmail();
    const find = (query: string): Promise<CoreAnswer> => core.get(`/recipe/user?${query}`, rid);
    t.equal(statusOf(await find(`email=${encodeURIComponent(email)}`)), 'UNKNOWN_EMAIL_ERROR');
    const user = await create({ email });
    t.same((await find(`email=${encodeURIComponent(email)}`)).json(), { status: 'OK', user });
    t.same((await find(`userId=${user.id}`)).json(), { status: 'OK', user });
    t.equal(
      statusOf(await find(`phoneNumber=${encodeURIComponent(freshPhoneNumber())}`)),
      'UNKNOWN_PHONE_NUMBER_ERROR',
    );
    t.equal(
      statusOf(await find('email=a&phoneNumber=b')),
      '400 Please provide exactly one of userId, email or phoneNumber',
    );
  });
}
