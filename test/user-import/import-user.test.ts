import t from 'tap';
import type { JsonObject } from '../../src/lib/strict-json.js';
import type { CoreReply } from '../../src/user-import/core/requests.js';
import {
  afterFailure,
  afterReply,
  beginFlow,
  createsUser,
  requestOf,
  type Flow,
  type FlowRules,
} from '../../src/user-import/import-user.js';
import type { Begun } from '../../src/user-import/totals.js';
import type { ImportedUser } from '../../src/user-import/row/user.js';

const rules: FlowRules = { dialect: 'seed', cdiVersion: '2.16', thirdPartyVersion: '2.16', overwrite: false };
const supertokens: FlowRules = { ...rules, dialect: 'supertokens' };
const overwriting: FlowRules = { ...rules, overwrite: true };
const password: ImportedUser = { kind: 'password', email: 'a@b.de', passwordHash: '$2a$hash', algorithm: 'bcrypt' };
const scrypt: ImportedUser = { ...password, algorithm: 'hosted_scrypt', passwordHash: '$f_scrypt$x' };
const email = { kind: 'email', value: 'a@b.de' } as const;
const phone = { kind: 'phoneNumber', value: '+4930901820' } as const;
const passwordless: ImportedUser = { kind: 'passwordless', contact: email, add: null };
const both: ImportedUser = { kind: 'passwordless', contact: email, add: phone };
const third: ImportedUser = {
  kind: 'third_party',
  thirdPartyId: 'google',
  thirdPartyUserId: '1',
  email: 'a@b.de',
  isVerified: true,
};
const begun: Begun = { atMs: 1_000_000, userId: null, existed: false };

function reply(json: JsonObject, status = 200): CoreReply {
  return { status, json, text: JSON.stringify(json), retryAfterMs: null };
}

/** Walks a flow through answers: the path of each call, then how it ended. */
function walk(
  user: ImportedUser,
  replies: readonly JsonObject[],
  speech = rules,
  before: Begun | null = null,
): readonly unknown[] {
  let flow: Flow = beginFlow(user, before, speech);
  const seen: unknown[] = [];
  for (const json of replies) {
    const { method, path } = requestOf(flow, speech);
    seen.push(`${method} ${path}`);
    const next = afterReply(flow, reply(json), speech);
    if (next.step === 'end') {
      return [...seen, next.stop === null ? next.outcome.result : `${next.outcome.result}, stop`];
    }
    flow = next.flow;
  }
  const { method, path } = requestOf(flow, speech);
  return [...seen, `then ${method} ${path}`];
}

const hashCall = 'POST /recipe/user/passwordhash/import';
const codeCall = 'POST /recipe/signinup/code';
const consumeCall = 'POST /recipe/signinup/code/consume';
const addCall = 'PUT /recipe/user';
const thirdCall = 'POST /recipe/signinup';
const issued = { status: 'OK', preAuthSessionId: 'p', linkCode: 'l' };
const restart = { status: 'RESTART_FLOW_ERROR' };
const created = { status: 'OK', createdNewUser: true, user: { id: 'u1', timeJoined: 1_000_001 } };
const there = { status: 'OK', createdNewUser: false, user: { id: 'u1', timeJoined: 1_000_001 } };
const old = { status: 'OK', createdNewUser: false, user: { id: 'u1', timeJoined: 1_000_000 - 300_001 } };

t.test('each kind of user, from its first call to its end', async (t) => {
  const cases = [
    {
      name: 'password',
      seen: walk(password, [{ status: 'OK', didUserAlreadyExist: false }]),
      expected: [hashCall, 'created'],
    },
    {
      name: 'password, a Core that does not say',
      seen: walk(password, [{ status: 'OK' }]),
      expected: [hashCall, 'created'],
    },
    { name: 'third party', seen: walk(third, [created]), expected: [thirdCall, 'created'] },
    { name: 'passwordless', seen: walk(passwordless, [issued, created]), expected: [codeCall, consumeCall, 'created'] },
    {
      name: 'with a contact to add',
      seen: walk(both, [issued, created, { status: 'OK' }]),
      expected: [codeCall, consumeCall, addCall, 'created'],
    },
    {
      name: 'a code that was used',
      seen: walk(passwordless, [issued, restart, issued, created]),
      expected: [codeCall, consumeCall, codeCall, consumeCall, 'created'],
    },
    { name: 'no code', seen: walk(passwordless, [restart]), expected: [codeCall, `then ${codeCall}`] },
    {
      name: 'six restarts',
      seen: walk(passwordless, Array<JsonObject>(7).fill(restart)),
      expected: [...Array<string>(6).fill(codeCall), 'rejected'],
    },
    {
      name: 'the contact of another user',
      seen: walk(both, [issued, created, { status: 'PHONE_NUMBER_ALREADY_EXISTS_ERROR' }]),
      expected: [codeCall, consumeCall, addCall, 'rejected'],
    },
    {
      name: 'a user that is gone',
      seen: walk(both, [issued, created, { status: 'UNKNOWN_USER_ID_ERROR' }]),
      expected: [codeCall, consumeCall, addCall, `then ${codeCall}`],
    },
    {
      name: 'a Core that tells no id',
      seen: walk(both, [issued, { status: 'OK', createdNewUser: true }]),
      expected: [codeCall, consumeCall, 'rejected'],
    },
    { name: 'another status', seen: walk(password, [{ status: 'SOMETHING_ERROR' }]), expected: [hashCall, 'rejected'] },
  ];
  for (const { name, seen, expected } of cases) t.same(seen, expected, name);
});

t.test('an existing user stops the run unless that is meant, and is looked up where the Core can tell', async (t) => {
  const existing = { status: 'OK', didUserAlreadyExist: true };
  const lookUp = 'GET /recipe/user?email=a%40b.de';
  const unknown = { status: 'UNKNOWN_EMAIL_ERROR' };
  const cases = [
    { name: 'password', seen: walk(password, [existing]), expected: [hashCall, 'existed, stop'] },
    { name: 'third party', seen: walk(third, [there]), expected: [thirdCall, 'existed, stop'] },
    { name: 'passwordless', seen: walk(both, [issued, there]), expected: [codeCall, consumeCall, 'existed, stop'] },
    { name: 'password, meant', seen: walk(password, [existing], overwriting), expected: [hashCall, 'existed'] },
    {
      name: 'passwordless, meant',
      seen: walk(both, [issued, there, { status: 'OK' }], overwriting),
      expected: [codeCall, consumeCall, addCall, 'existed'],
    },
    {
      name: 'looked up and there',
      seen: walk(password, [{ status: 'OK' }], supertokens),
      expected: [lookUp, 'existed'],
    },
    {
      name: 'looked up and not there',
      seen: walk(password, [unknown, { status: 'OK' }], supertokens),
      expected: [lookUp, hashCall, 'created'],
    },
    {
      name: 'a look-up that fails',
      seen: walk(password, [{ status: 'X' }], supertokens),
      expected: [lookUp, 'rejected'],
    },
    {
      name: 'made between look-up and call',
      seen: walk(password, [unknown, existing], supertokens),
      expected: [lookUp, hashCall, 'existed, stop'],
    },
    {
      name: 'by phone',
      seen: walk({ ...passwordless, contact: phone }, [], supertokens),
      expected: ['then GET /recipe/user?phoneNumber=%2B4930901820'],
    },
    {
      name: 'by provider',
      seen: walk(third, [], supertokens),
      expected: ['then GET /recipe/user?thirdPartyId=google&thirdPartyUserId=1'],
    },
    {
      name: 'meant, not looked up',
      seen: walk(password, [], { ...supertokens, overwrite: true }),
      expected: [`then ${hashCall}`],
    },
  ];
  for (const { name, seen, expected } of cases) t.same(seen, expected, name);
});

t.test('a user that an earlier run began is ours, unless it is older than that', async (t) => {
  const cases = [
    {
      name: 'password',
      seen: walk(password, [{ ...there, didUserAlreadyExist: true }], rules, begun),
      expected: [hashCall, 'created'],
    },
    { name: 'third party', seen: walk(third, [there], rules, begun), expected: [thirdCall, 'created'] },
    { name: 'older', seen: walk(third, [old], rules, begun), expected: [thirdCall, 'existed, stop'] },
    {
      name: 'a little older, by the clock of the Core',
      seen: walk(third, [{ ...old, user: { timeJoined: 1_000_000 - 300_000 } }], rules, begun),
      expected: [thirdCall, 'created'],
    },
    {
      name: 'without a time',
      seen: walk(third, [{ status: 'OK', createdNewUser: false }], rules, begun),
      expected: [thirdCall, 'created'],
    },
    {
      name: 'passwordless begins at the code',
      seen: walk(both, [issued, there, { status: 'OK' }], rules, begun),
      expected: [codeCall, consumeCall, addCall, 'created'],
    },
    {
      name: 'with its id, at what is missing',
      seen: walk(both, [{ status: 'OK' }], rules, { ...begun, userId: 'u1' }),
      expected: [addCall, 'created'],
    },
    {
      name: 'with its id, there before us',
      seen: walk(both, [{ status: 'OK' }], overwriting, { ...begun, userId: 'u1', existed: true }),
      expected: [addCall, 'existed'],
    },
    { name: 'is not looked up', seen: walk(password, [], supertokens, begun), expected: [`then ${hashCall}`] },
  ];
  for (const { name, seen, expected } of cases) t.same(seen, expected, name);
});

t.test('after a call that nobody saw the end of', async (t) => {
  const sent = afterFailure(beginFlow(password, null, rules), true);
  t.equal(sent.mayBeOurs, true);
  t.match(afterReply(sent, reply({ status: 'OK', didUserAlreadyExist: true }), rules), {
    step: 'end',
    outcome: { result: 'created' },
  });
  t.equal(afterFailure(beginFlow(password, null, rules), false).mayBeOurs, false);
  t.equal(afterFailure(beginFlow(passwordless, null, rules), true).mayBeOurs, false, 'a code makes no user');
  const consuming: Flow = {
    ...beginFlow(passwordless, null, rules),
    stage: 'consume',
    code: { preAuthSessionId: 'p', linkCode: 'l' },
  };
  t.match(
    afterFailure(consuming, true),
    { stage: 'code', code: null, mayBeOurs: true },
    'a code that may be spent is not consumed again',
  );
  t.match(afterFailure(consuming, false), { stage: 'consume', mayBeOurs: false });
});

t.test('the journal has to know before a user may be made', async (t) => {
  t.equal(createsUser(beginFlow(password, null, rules)), true);
  t.equal(createsUser(beginFlow(passwordless, null, rules)), true);
  t.equal(createsUser(beginFlow(password, null, supertokens)), false);
  t.equal(createsUser(beginFlow(both, { ...begun, userId: 'u1' }, rules)), false);
});

t.test('calls in both dialects', async (t) => {
  const request = (user: ImportedUser, speech: FlowRules, over: Partial<Flow> = {}): unknown =>
    requestOf({ ...beginFlow(user, begun, speech), ...over }, speech);
  t.match(request(password, rules), { cdiVersion: '2.16', body: { email: 'a@b.de', passwordHash: '$2a$hash' } });
  t.match(request(scrypt, rules), { body: { hashingAlgorithm: 'hosted_scrypt' } });
  t.match(request(scrypt, supertokens), { body: { hashingAlgorithm: 'firebase_scrypt' } });
  t.match(request(both, rules), { body: { email: 'a@b.de' } });
  t.match(request(both, rules, { stage: 'consume', code: { preAuthSessionId: 'p', linkCode: 'l' } }), {
    body: { preAuthSessionId: 'p', linkCode: 'l' },
  });
  const adding = { stage: 'add_contact', userId: 'u1' } as const;
  t.match(request(both, rules, adding), {
    rid: 'passwordless',
    body: { userId: 'u1', email: 'a@b.de', phoneNumber: '+4930901820' },
  });
  t.match(request(both, { ...rules, cdiVersion: '4.0' }, adding), { cdiVersion: '4.0', body: { recipeUserId: 'u1' } });
  t.match(request(third, rules), {
    body: { thirdPartyId: 'google', thirdPartyUserId: '1', email: { id: 'a@b.de', isVerified: true } },
  });
  t.notOk(Object.hasOwn((request(password, rules) as { body: object }).body, 'hashingAlgorithm'));
});

t.test('a contact is added to the user itself, not to those it is linked with', async (t) => {
  const consuming: Flow = {
    ...beginFlow(both, null, rules),
    stage: 'consume',
    code: { preAuthSessionId: 'p', linkCode: 'l' },
  };
  t.match(afterReply(consuming, reply({ ...created, recipeUserId: 'u2' }), rules), {
    flow: { stage: 'add_contact', userId: 'u2' },
  });
  t.match(afterReply(consuming, reply(created), rules), { flow: { stage: 'add_contact', userId: 'u1' } });
});

t.test('a response that makes no sense is not repeated, and none of it is kept', async (t) => {
  const refusedWith = (json: JsonObject, status = 200): unknown => {
    const flow: Flow = { ...beginFlow(passwordless, null, rules), restarts: 5 };
    const next = afterReply(flow, reply(json, status), rules);
    return next.step === 'end' && next.outcome.result === 'rejected' ? next.outcome.why : next;
  };
  const code = { preAuthSessionId: 'pre-auth', linkCode: 'link-code' };
  t.equal(refusedWith(code), 'no code was issued 6 times: status 200 without a status that is known');
  t.equal(
    refusedWith({ ...code, status: 'ok' }),
    'no code was issued 6 times: status 200 without a status that is known',
  );
  t.equal(refusedWith({ status: 'OK', ...code, linkCode: 'x'.repeat(1025) }), 'no code was issued 6 times: OK');
  t.equal(refusedWith({ ...code }, 201), 'the Core refused it: status 201 without a status that is known');
  const consuming: Flow = { ...beginFlow(both, null, rules), stage: 'consume', code };
  for (const id of ['', 'x'.repeat(1025), 7]) {
    t.match(afterReply(consuming, reply({ status: 'OK', user: { id } }), rules), {
      outcome: { why: /did not tell its id/ },
    });
  }
  t.match(afterReply(consuming, reply({ status: 'OK', user: { id: 'x'.repeat(1024) } }), rules), {
    flow: { stage: 'add_contact' },
  });
});

t.test('a refusal is told in the words of the Core', async (t) => {
  const next = afterReply(
    beginFlow(password, null, rules),
    { status: 400, json: null, text: 'Password hash is in invalid format', retryAfterMs: null },
    rules,
  );
  t.match(next, {
    outcome: { result: 'rejected', why: 'the Core refused it: status 400, Password hash is in invalid format' },
  });
  t.match(afterReply(beginFlow(password, null, rules), reply({ status: 'X_ERROR' }), rules), {
    outcome: { why: 'the Core refused it: X_ERROR' },
  });
});

t.test(
  'isVerified goes with a version that carries it, and is counted as lost where the response does not show it',
  async (t) => {
    const newer: FlowRules = { ...rules, thirdPartyVersion: '4.0' };
    t.match(requestOf(beginFlow(third, null, newer), newer), {
      cdiVersion: '4.0',
      body: { email: { isVerified: true } },
    });
    t.match(requestOf(beginFlow(password, null, newer), newer), { cdiVersion: '2.16' });
    const shown = (verified: boolean): JsonObject => ({
      status: 'OK',
      createdNewUser: true,
      recipeUserId: 'r',
      user: {
        id: 'u',
        timeJoined: 1,
        loginMethods: [
          { recipeUserId: 'other', verified: !verified },
          { recipeUserId: 'r', verified },
        ],
      },
    });
    const unverified: ImportedUser = { ...third, isVerified: false };
    const cases = [
      { name: 'kept', user: third, answer: shown(true), lost: [] },
      { name: 'not kept', user: third, answer: shown(false), lost: ['thirdParty.isVerified'] },
      { name: 'not shown', user: third, answer: created, lost: ['thirdParty.isVerified'] },
      { name: 'not verified, and shown so', user: unverified, answer: shown(false), lost: [] },
      { name: 'not verified, not shown', user: unverified, answer: created, lost: [] },
      {
        name: 'not verified, but so in the Core',
        user: unverified,
        answer: shown(true),
        lost: ['thirdParty.isVerified'],
      },
      { name: 'a user that was there', user: third, answer: there, lost: ['thirdParty.isVerified'] },
      { name: 'refused', user: third, answer: { status: 'EMAIL_CHANGE_NOT_ALLOWED_ERROR' }, lost: [] },
      { name: 'another kind', user: password, answer: { status: 'OK' }, lost: [] },
    ];
    for (const { name, user, answer, lost } of cases) {
      t.match(afterReply(beginFlow(user, null, newer), reply(answer), newer), { step: 'end', lost }, name);
    }
  },
);

t.test('a user that is linked to an older one is as old as itself', async (t) => {
  const linked = (timeJoined: number): JsonObject => ({
    status: 'OK',
    createdNewUser: false,
    recipeUserId: 'r',
    user: { id: 'u', timeJoined: 1, loginMethods: [{ recipeUserId: 'r', verified: true, timeJoined }] },
  });
  t.same(walk(third, [linked(1_000_001)], rules, begun), [thirdCall, 'created']);
  t.same(walk(third, [linked(2)], rules, begun), [thirdCall, 'existed, stop']);
});
