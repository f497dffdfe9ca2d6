import t from 'tap';
import { accept, refuse, type Result } from '../../src/lib/result.js';
import type { CoreReply, CoreTrouble } from '../../src/user-import/core/requests.js';
import { beginFlow, type Flow } from '../../src/user-import/import-user.js';
import { countFailure, createHealth, isRowAtFault, noFailures, pauseAfter } from '../../src/user-import/retry.js';
import { judge } from '../../src/user-import/core/errors.js';

const rules = { dialect: 'seed', cdiVersion: '2.16', thirdPartyVersion: '2.16', overwrite: false } as const;
const flow: Flow = beginFlow(
  { kind: 'password', email: 'a@b.de', passwordHash: 'x', algorithm: 'bcrypt' },
  null,
  rules,
);
const scrypt: Flow = beginFlow(
  { kind: 'password', email: 'a@b.de', passwordHash: 'x', algorithm: 'hosted_scrypt' },
  null,
  rules,
);

function reply(status: number, over: Partial<CoreReply> = {}): Result<CoreReply, CoreTrouble> {
  return accept({ status, json: null, text: 'said', retryAfterMs: null, ...over });
}

function trouble(kind: CoreTrouble['kind'], mayHaveRun: boolean): Result<CoreReply, CoreTrouble> {
  return refuse({ kind, reason: 'why', mayHaveRun });
}

t.test('which answers end a row, which are tried again, which end the run', async (t) => {
  const cases = [
    { name: '200', answer: reply(200, { json: { status: 'OK' } }), verdict: { kind: 'reply' } },
    { name: '200 that is no JSON', answer: reply(200), verdict: { kind: 'retry', mayHaveRun: true } },
    { name: '400', answer: reply(400), verdict: { kind: 'reply' } },
    { name: '401', answer: reply(401), verdict: { kind: 'stop', why: /api-key/ } },
    { name: '403', answer: reply(403), verdict: { kind: 'stop', why: /api-key/ } },
    { name: '404', answer: reply(404), verdict: { kind: 'stop', why: /path/ } },
    { name: '405', answer: reply(405), verdict: { kind: 'stop' } },
    { name: '408', answer: reply(408), verdict: { kind: 'retry', mayHaveRun: true } },
    {
      name: '429',
      answer: reply(429, { retryAfterMs: 3_000 }),
      verdict: { kind: 'retry', mayHaveRun: false, isCoreReached: false, retryAfterMs: 3_000 },
    },
    { name: '500', answer: reply(500), verdict: { kind: 'retry', mayHaveRun: true, isCoreReached: true } },
    { name: '503', answer: reply(503), verdict: { kind: 'retry', mayHaveRun: true } },
    { name: 'refused address', answer: trouble('refused_address', false), verdict: { kind: 'stop', why: 'why' } },
    {
      name: 'out of reach',
      answer: trouble('unreachable', false),
      verdict: { kind: 'retry', mayHaveRun: false, isCoreReached: false },
    },
    { name: 'cut', answer: trouble('broken', true), verdict: { kind: 'retry', mayHaveRun: true, isCoreReached: true } },
    {
      name: 'late',
      answer: trouble('timeout', true),
      verdict: { kind: 'retry', mayHaveRun: true, isCoreReached: true },
    },
  ];
  for (const { name, answer, verdict } of cases) {
    t.match(judge(answer, { flow, hostedScryptWorks: false }), verdict, name);
  }
});

t.test('the first 500 for a hosted scrypt hash names the signer key', async (t) => {
  t.match(judge(reply(500), { flow: scrypt, hostedScryptWorks: false }), {
    kind: 'stop',
    why: /hosted_password_hashing_signer_key/,
  });
  t.match(
    judge(reply(500), { flow: scrypt, hostedScryptWorks: true }),
    { kind: 'retry' },
    'a Core that took one has its key',
  );
  t.match(judge(reply(503), { flow: scrypt, hostedScryptWorks: false }), { kind: 'retry' });
  t.match(judge(reply(500), { flow: { ...scrypt, stage: 'look_up' }, hostedScryptWorks: false }), { kind: 'retry' });
});

t.test('pauses grow, are spread and have an end', async (t) => {
  t.same(
    [1, 2, 3, 6, 7, 100].map((failures) => pauseAfter(failures, null, 1)),
    [100, 200, 400, 3_200, 5_000, 5_000],
  );
  t.same(
    [1, 7].map((failures) => pauseAfter(failures, null, 0)),
    [50, 2_500],
  );
  t.equal(pauseAfter(1, 2_000, 0), 2_000, 'as asked');
  t.equal(pauseAfter(1, 3_600_000, 0), 60_000, 'not for ever');
});

t.test('a pace, a pause for all, and an end of hope', async (t) => {
  const health = createHealth({ callsPerSecond: 10, giveUpAfterMs: 1_000 }, 0);
  t.same(
    [health.nextCallAtMs(0), health.nextCallAtMs(0), health.nextCallAtMs(500), health.nextCallAtMs(500)],
    [0, 100, 500, 600],
  );
  health.pause(2_000);
  health.pause(1_000);
  t.equal(health.nextCallAtMs(700), 2_000);
  t.equal(health.isHopeless(99_999), false, 'nothing has failed');
  health.failed(5_000);
  health.failed(5_500);
  t.same([health.isHopeless(6_000), health.isHopeless(6_001)], [false, true]);
  health.succeeded(7_000);
  t.equal(health.isHopeless(99_999), false);
  t.equal(health.successes(), 1);
  // Begun before the last success, and failed after it.
  health.failed(6_500);
  t.same([health.isHopeless(8_000), health.isHopeless(8_001)], [false, true]);
  const free = createHealth({ callsPerSecond: null, giveUpAfterMs: 1 }, 0);
  t.same([free.nextCallAtMs(3), free.nextCallAtMs(3)], [3, 3]);
});

t.test('a row is at fault when it fails while others do not', async (t) => {
  let failures = noFailures;
  for (let i = 0; i < 12; i += 1) failures = countFailure(failures, true, 100 + i);
  t.same(failures, { count: 12, reached: 12, successesBefore: 100 });
  t.equal(isRowAtFault(failures, 115, 16), false);
  t.equal(isRowAtFault(failures, 116, 16), true);
  t.equal(isRowAtFault({ ...failures, reached: 11 }, 1_000, 16), false);
  let unreachable = noFailures;
  for (let i = 0; i < 50; i += 1) unreachable = countFailure(unreachable, false, i);
  t.equal(isRowAtFault(unreachable, 1_000, 16), false, 'nobody was reached');
});
