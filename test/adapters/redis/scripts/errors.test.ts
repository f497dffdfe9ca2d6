import t from 'tap';
import {
  DatabaseRefused,
  DeadlinePassed,
  failureOf,
  isRecordRefusal,
  isServerRefusal,
  reasonOf,
  replyCode,
  ScriptMissing,
  WaitFailed,
} from '../../../../src/adapters/redis/scripts/errors.js';

function error(message: string, more: { readonly name?: string; readonly code?: string } = {}): Error {
  return Object.assign(new Error(message), more);
}

const reply = (message: string): Error => error(message, { name: 'ReplyError' });

const failures: readonly { name: string; cause: unknown; expected: object }[] = [
  {
    name: 'silence',
    cause: new DeadlinePassed(),
    expected: { kind: 'timeout', reason: 'no answer within the deadline', mayHaveRun: true },
  },
  {
    name: 'a lost script, told of when time is over',
    cause: new ScriptMissing(),
    expected: { kind: 'timeout', reason: 'no answer within the deadline', mayHaveRun: false },
  },
  {
    name: 'the script ran, WAIT did not',
    cause: new WaitFailed(reply('NOPERM no')),
    expected: { kind: 'refused', reason: 'NOPERM no', mayHaveRun: true },
  },
  {
    name: 'a refusal',
    cause: reply('OOM command not allowed'),
    expected: { kind: 'refused', reason: 'OOM command not allowed', mayHaveRun: false },
  },
  {
    name: 'a database that the server does not let us into',
    cause: new DatabaseRefused(3, reply('ERR SELECT is not allowed in cluster mode')),
    expected: {
      kind: 'refused',
      reason: /^the server does not let us into database 3; .* \(ERR SELECT is not/,
      mayHaveRun: false,
    },
  },
  {
    name: 'no connection',
    cause: error("Stream isn't writeable and enableOfflineQueue options is false"),
    expected: { kind: 'unreachable', mayHaveRun: false },
  },
  {
    name: 'a lost connection',
    cause: error('Reached the max retries per request limit', { name: 'MaxRetriesPerRequestError' }),
    expected: { kind: 'unreachable', reason: 'the connection was lost', mayHaveRun: true },
  },
  {
    name: 'a pipeline cut in two',
    cause: error('Command aborted', { name: 'AbortError' }),
    expected: { kind: 'unreachable', reason: 'the connection was lost', mayHaveRun: true },
  },
  {
    name: 'a reset',
    cause: error('read ECONNRESET', { code: 'ECONNRESET' }),
    expected: { kind: 'unreachable', reason: 'read ECONNRESET', mayHaveRun: true },
  },
  { name: 'something else', cause: 'what', expected: { kind: 'unreachable', reason: 'unknown', mayHaveRun: true } },
];

t.test('how a command ended, and whether it may have run', (t) => {
  for (const { name, cause, expected } of failures) t.match(failureOf(cause), expected, name);
  t.equal(new DeadlinePassed().name, 'DeadlinePassed');
  t.equal(new WaitFailed(reply('NOPERM no')).name, 'WaitFailed', 'not the name of what the server answered');
  t.end();
});

t.test('reasons are short, and say nothing of what was sent', (t) => {
  t.equal(
    reasonOf(reply("ERR unknown command 'AUTH', with args beginning with: 'secret' ")),
    "ERR unknown command 'AUTH'",
  );
  t.equal(
    reasonOf(reply('ERR unknown command `AUTH`, with args beginning with: `secret`, \n')),
    'ERR unknown command `AUTH`',
  );
  t.equal(reasonOf(reply(`OOM too much script: ${'0a'.repeat(20)}, on @user_script:31.`)), 'OOM too much');
  t.equal(
    reasonOf(error('certificate has expired', { code: 'CERT_HAS_EXPIRED' })),
    'CERT_HAS_EXPIRED: certificate has expired',
  );
  t.equal(reasonOf(error('x'.repeat(300))).length, 200);
  t.end();
});

t.test('what is about the server, and what about one record', (t) => {
  for (const message of [
    'OOM x',
    'READONLY x',
    'MISCONF x',
    'NOREPLICAS x',
    'NOPERM x',
    'NOAUTH x',
    'LOADING x',
    'BUSY x',
    'CLUSTERDOWN x',
    'MASTERDOWN x',
    "ERR The user executing the script can't run this command",
    'ERR ACL failure in script: no',
  ]) {
    t.equal(isServerRefusal(reply(message)), true, message);
  }
  for (const message of ['WRONGTYPE x', 'ERR x', 'MOVED 1 a:1', 'ASK 1 a:1', 'TRYAGAIN x', 'no code']) {
    t.equal(isServerRefusal(reply(message)), false, message);
  }
  const ofRecords = [
    ['WRONGTYPE x', true],
    ['ERR x', true],
    ['OOM x', false],
    ['MOVED 1 a:1', false],
    ['ASK 1 a:1', false],
    ['TRYAGAIN x', false],
  ] as const;
  for (const [message, expected] of ofRecords) {
    t.equal(isRecordRefusal(reply(message)), expected, message);
  }
  t.equal(isRecordRefusal(error('ERR x')), false);
  t.equal(isRecordRefusal(new ScriptMissing()), false);
  t.equal(isServerRefusal(error('OOM x')), false, "not the server's words");
  t.equal(isServerRefusal(reply('ERR x: ERR ACL failure in script: no')), false, 'a word of it quoted');
  t.equal(replyCode(reply('no code')), 'ERR');
  t.equal(replyCode(reply('no CODE')), 'ERR', 'the code stands first');
  t.equal(replyCode(null), null);
  t.end();
});
