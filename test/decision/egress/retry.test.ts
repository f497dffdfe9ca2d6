import t from 'tap';
import {
  asksForNonce,
  judgeAttempt,
  leavesDoubt,
  settlesDoubt,
  type AttemptedRequest,
  type AttemptOutcome,
  type RetryLimits,
} from '../../../src/decision/egress/retry.js';

const limits: RetryLimits = { attempts: 3, withinMs: 10_000 };
const chance = { random: 0.5, isInBudget: true };
const write: AttemptedRequest = {
  method: 'POST',
  hasKey: false,
  isRepeatable: true,
  isHandshake: false,
  attempts: 1,
  elapsedMs: 0,
  hasNewToken: false,
};
const keyed = { ...write, hasKey: true };
const read = { ...write, method: 'GET' };
const handshake = { ...read, isHandshake: true };

function response(status: number, rest: Partial<Extract<AttemptOutcome, { kind: 'response' }>> = {}): AttemptOutcome {
  return { kind: 'response', status, isSallyports: false, problemType: null, retryAfterMs: null, ...rest };
}

const notSent: AttemptOutcome = { kind: 'not_sent' };
const noResponse: AttemptOutcome = { kind: 'no_response' };
const ours = { isSallyports: true };
const inProgress = { ...ours, problemType: 'urn:sallyport:idempotency-in-progress', retryAfterMs: 1_000 };
const unknown = { ...ours, problemType: 'urn:sallyport:idempotency-outcome-unknown' };

/** Each outcome, and whether a read, a write and a write with a key are sent again. */
const table: readonly (readonly [string, AttemptOutcome, string, string, string])[] = [
  ['not connected', notSent, 'retry', 'retry', 'retry'],
  ['a connection that broke', noResponse, 'retry', 'in_doubt', 'retry'],
  ['502 of anybody', response(502), 'retry', 'in_doubt', 'retry'],
  ['502 of a Sallyport', response(502, ours), 'retry', 'in_doubt', 'retry'],
  ['504', response(504), 'retry', 'in_doubt', 'retry'],
  ['503 of a Sallyport', response(503, ours), 'retry', 'retry', 'retry'],
  ['503 of the target', response(503), 'final', 'final', 'final'],
  ['503 of the target with Retry-After', response(503, { retryAfterMs: 1_000 }), 'final', 'final', 'final'],
  ['425', response(425), 'retry', 'retry', 'retry'],
  ['429 with Retry-After', response(429, { retryAfterMs: 1_000 }), 'retry', 'retry', 'retry'],
  ['429 without', response(429), 'final', 'final', 'final'],
  ['401', response(401), 'retry', 'retry', 'retry'],
  ['403', response(403, ours), 'final', 'final', 'final'],
  ['409 in progress', response(409, inProgress), 'retry', 'retry', 'retry'],
  ['the same words of the target', response(409, { ...inProgress, isSallyports: false }), 'final', 'final', 'final'],
  ['409 outcome unknown', response(409, unknown), 'final', 'final', 'final'],
  ['409 of the target', response(409), 'final', 'final', 'final'],
  ['422', response(422, ours), 'final', 'final', 'final'],
  ['500', response(500), 'final', 'final', 'final'],
  ['500 of a Sallyport', response(500, ours), 'final', 'final', 'final'],
  ['200', response(200), 'final', 'final', 'final'],
  ['307', response(307), 'final', 'final', 'final'],
];

t.test('what was certainly not applied is sent again, what is in doubt only where a second time does no harm', (t) => {
  for (const [name, outcome, ...expected] of table) {
    const verdicts = [read, write, keyed].map((request) => {
      const verdict = judgeAttempt(outcome, request, limits, chance);
      return verdict.kind === 'retry' ? 'retry' : verdict.reason;
    });
    t.same(verdicts, expected, name);
  }
  t.end();
});

t.test('methods that change something are no reads, however often they may be repeated', (t) => {
  for (const method of ['PUT', 'DELETE', 'PATCH']) {
    t.match(judgeAttempt(noResponse, { ...write, method }, limits, chance), { kind: 'pass', reason: 'in_doubt' });
  }
  t.end();
});

t.test('of a handshake of a WebSocket the token alone is mended, once', (t) => {
  for (const [name, outcome] of table) {
    const verdict = judgeAttempt(outcome, handshake, limits, chance);
    if (name === '401') t.match(verdict, { kind: 'retry', needsNewToken: true, counts: false });
    else t.same(verdict, { kind: 'pass', reason: 'final' }, name);
  }
  t.match(judgeAttempt(response(401), { ...handshake, hasNewToken: true }, limits, chance), { kind: 'pass' });
  t.end();
});

t.test('what bounds it is named', (t) => {
  const pass = (reason: string): object => ({ kind: 'pass', reason });
  t.same(judgeAttempt(notSent, { ...keyed, attempts: 3 }, limits, chance), pass('attempts'));
  t.same(judgeAttempt(notSent, { ...keyed, elapsedMs: 10_000 }, limits, chance), pass('time'));
  t.same(judgeAttempt(notSent, keyed, limits, { ...chance, isInBudget: false }), pass('budget'));
  t.same(judgeAttempt(notSent, { ...keyed, isRepeatable: false }, limits, chance), pass('body_not_held'));
  t.same(judgeAttempt(response(429, { retryAfterMs: 60_000 }), keyed, limits, chance), pass('time'));
  t.end();
});

t.test('a write under way is waited for in time, not in attempts, and takes nothing of the budget', (t) => {
  const waiting = { ...keyed, attempts: 3 };
  const used = { random: 0, isInBudget: false };
  t.match(judgeAttempt(response(409, inProgress), waiting, limits, used), { kind: 'retry', counts: false });
  t.match(judgeAttempt(response(409, { ...inProgress, retryAfterMs: null }), waiting, limits, used), {
    kind: 'retry',
    afterMs: 1_000,
  });
  t.match(judgeAttempt(response(409, { ...inProgress, retryAfterMs: 0 }), waiting, limits, used), {
    kind: 'retry',
    afterMs: 100,
  });
  t.match(judgeAttempt(response(409, inProgress), { ...waiting, elapsedMs: 9_500 }, limits, used), { reason: 'time' });
  t.end();
});

t.test('a token that is not taken is had anew once, at once', (t) => {
  const verdict = judgeAttempt(response(401), { ...keyed, attempts: 3 }, limits, { random: 0.9, isInBudget: false });
  t.same(verdict, { kind: 'retry', afterMs: 0, needsNewToken: true, needsNonce: false, counts: false });
  t.same(judgeAttempt(response(401), { ...keyed, hasNewToken: true }, limits, chance), {
    kind: 'pass',
    reason: 'final',
  });
  t.end();
});

t.test('pauses grow, are spread by chance, and last at least as long as the response asks for', (t) => {
  const pause = (outcome: AttemptOutcome, attempts: number, random: number): number => {
    const verdict = judgeAttempt(outcome, { ...keyed, attempts }, { ...limits, attempts: 99 }, { ...chance, random });
    return verdict.kind === 'retry' ? verdict.afterMs : NaN;
  };
  t.same(
    [1, 2, 3, 4, 20].map((attempts) => pause(notSent, attempts, 0.5)),
    [25, 50, 100, 200, 1_000],
  );
  t.equal(pause(notSent, 1, 0), 0);
  t.equal(pause(response(503, { ...ours, retryAfterMs: 1_000 }), 1, 0.5), 1_025);
  t.equal(pause(response(502, { retryAfterMs: 5_000 }), 1, 0.5), 25, 'of what is in doubt it says nothing');
  t.end();
});

t.test('an attempt that may have been carried out is in doubt until somebody says what became of it', (t) => {
  for (const outcome of [noResponse, response(502, ours), response(504)]) {
    t.ok(leavesDoubt(outcome, 'POST'));
    t.notOk(leavesDoubt(outcome, 'GET'), 'a read does nothing');
  }
  for (const outcome of [notSent, response(503, ours), response(201)]) t.notOk(leavesDoubt(outcome, 'POST'));
  for (const status of [401, 425, 429, 503]) {
    t.notOk(settlesDoubt(response(status)), `${String(status)} tells of what it refuses alone`);
  }
  for (const status of [403, 500, 503]) {
    t.notOk(settlesDoubt(response(status, ours)), `${String(status)} of a Sallyport`);
  }
  for (const outcome of [notSent, noResponse]) t.notOk(settlesDoubt(outcome));
  for (const outcome of [response(201), response(400), response(409, unknown), response(422, ours), response(500)]) {
    t.ok(settlesDoubt(outcome), 'a result, or word of the key');
  }
  t.end();
});

t.test('a proof is made again for a nonce that it did not have, and says nothing of the token', (t) => {
  const asked = response(401, { nonce: 'n2' });
  const rows: readonly (readonly [string, AttemptOutcome, string | null | undefined, boolean])[] = [
    ['none was known', asked, null, true],
    ['another was known', asked, 'n1', true],
    ['it had this one', asked, 'n2', false],
    ['there was no proof, or a nonce was taken up before', asked, undefined, false],
    ['none is given', response(401), null, false],
    ['no response came', noResponse, null, false],
  ];
  for (const [name, outcome, provedNonce, expected] of rows) {
    const proof = provedNonce === undefined ? {} : { provedNonce };
    t.equal(asksForNonce(outcome, proof), expected, name);
    const verdict = judgeAttempt(outcome, { ...keyed, ...proof, attempts: 3, hasNewToken: true }, limits, chance);
    const again = { kind: 'retry', afterMs: 0, needsNewToken: false, needsNonce: true, counts: false };
    if (expected) t.same(verdict, again, name);
    else t.not(verdict.kind === 'retry' && verdict.needsNonce, true, name);
  }
  t.match(judgeAttempt(asked, { ...handshake, provedNonce: null }, limits, chance), {
    kind: 'retry',
    needsNonce: true,
  });
  const tooLarge = { ...write, isRepeatable: false, provedNonce: null };
  t.same(judgeAttempt(asked, tooLarge, limits, chance), { kind: 'pass', reason: 'body_not_held' });
  t.end();
});
