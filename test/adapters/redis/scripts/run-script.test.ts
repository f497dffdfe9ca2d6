import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import t from 'tap';
import { runScript, type ScriptCall } from '../../../../src/adapters/redis/scripts/run-script.js';
import { echoingText, scripts, scriptText } from '../../../../src/adapters/redis/scripts/reservation.js';
import { WaitFailed } from '../../../../src/adapters/redis/scripts/errors.js';

type Sent = readonly unknown[];
interface ErrorWords {
  readonly message: string;
  readonly name?: string;
}
/** What one command ends with, as a pipeline says it. */
type Reply = readonly [Error | null, unknown];

interface Fake {
  readonly connection: Redis;
  /** Commands, those of a pipeline together; of a script without the name of the call. */
  readonly sent: (readonly Sent[])[];
  /** With what the connection was ended. */
  readonly ended: Error[];
}

/** A connection that answers each command, or all of a pipeline, with what stands next; scripts as they do. */
function fake(answers: readonly (readonly Reply[] | null)[], delayMs = 0): Fake {
  const sent: (readonly Sent[])[] = [];
  const ended: Error[] = [];
  const answer = async (commands: readonly Sent[]): Promise<readonly Reply[] | null> => {
    const replies = answers[sent.length] ?? null;
    sent.push(commands.map((command) => (isScript(command) ? command.slice(0, -1) : command)));
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    return (
      replies?.map(([error, value], index): Reply => {
        const command = commands[index] ?? [];
        return [error, isScript(command) && value === 'reply' ? [command.at(-1), value] : value];
      }) ?? null
    );
  };
  const connection = {
    stream: { destroy: (error: Error) => ended.push(error) },
    callBuffer: async (...command: Sent) => {
      const [error, value] = (await answer([command]))?.[0] ?? [new Error('nothing is left to answer'), null];
      if (error !== null) throw error;
      return value;
    },
    pipeline: () => {
      const commands: Sent[] = [];
      const add = (...command: Sent): void => void commands.push(command);
      return { call: add, callBuffer: add, exec: async () => answer(commands) };
    },
  };
  return { connection: connection as unknown as Redis, sent, ended };
}

function isScript([command]: Sent): boolean {
  return command === 'eval' || command === 'evalsha';
}

const call: ScriptCall = {
  script: scripts.mark,
  keys: ['k1', 'k2'],
  values: ['a', Buffer.from('b')],
  replicas: 0,
  deadlineMs: 1_000,
};
const rest = ['2', 'k1', 'k2', 'a', Buffer.from('b')];
const sha = (text: string): string => createHash('sha1').update(text).digest('hex');
const evalsha = ['evalsha', sha(echoingText(scripts.mark, 7)), ...rest];
const evaluated = ['eval', echoingText(scripts.mark, 7), ...rest];
const replyError = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' });
const ok: Reply = [null, 'reply'];

t.test(
  'a script goes to the server by its hash; who has to confirm it, and who is not its owner yet, is told in the same round trip',
  async (t) => {
    const cases: readonly {
      name: string;
      change: Partial<ScriptCall>;
      replies: readonly Reply[];
      sent: readonly Sent[];
      confirmed: number | null;
    }[] = [
      { name: 'alone', change: {}, replies: [ok], sent: [evalsha], confirmed: null },
      { name: 'not asking', change: { asking: false }, replies: [ok], sent: [evalsha], confirmed: null },
      { name: 'not with its text', change: { withText: false }, replies: [ok], sent: [evalsha], confirmed: null },
      { name: 'with its text', change: { withText: true }, replies: [ok], sent: [evaluated], confirmed: null },
      {
        name: 'with its text, and a replica',
        change: { withText: true, replicas: 1 },
        replies: [ok, [null, 1]],
        sent: [evaluated, ['wait', '1', '800']],
        confirmed: 1,
      },
      {
        name: 'a replica',
        change: { replicas: 1 },
        replies: [ok, [null, 1]],
        sent: [evalsha, ['wait', '1', '800']],
        confirmed: 1,
      },
      {
        name: 'none of two',
        change: { replicas: 2, deadlineMs: 999 },
        replies: [ok, [null, 0]],
        sent: [evalsha, ['wait', '2', '799']],
        confirmed: 0,
      },
      {
        name: 'in no time',
        change: { replicas: 1, deadlineMs: 1 },
        replies: [ok, [null, 1]],
        sent: [evalsha, ['wait', '1', '1']],
        confirmed: 1,
      },
      {
        name: 'asking',
        change: { asking: true },
        replies: [[null, 'OK'], ok],
        sent: [['asking'], evalsha],
        confirmed: null,
      },
      {
        name: 'asking, with a replica',
        change: { asking: true, replicas: 1 },
        replies: [[null, 'OK'], ok, [null, 1]],
        sent: [['asking'], evalsha, ['wait', '1', '800']],
        confirmed: 1,
      },
    ];
    for (const { name, change, replies, sent, confirmed } of cases) {
      const one = fake([replies]);
      t.same(
        await runScript(one.connection, { ...call, ...change }, 7),
        { reply: 'reply', confirmedReplicas: confirmed },
        name,
      );
      t.same(one.sent, [sent], name);
    }
  },
);

t.test('a server that lost its scripts is sent the text, once, and has the rest of the time', async (t) => {
  for (const version of [6, 7]) {
    const one = fake([[[replyError('NOSCRIPT No matching script'), null]], [ok]]);
    t.same(await runScript(one.connection, call, version), { reply: 'reply', confirmedReplicas: null });
    t.same(one.sent[1], [['eval', echoingText(scripts.mark, version), ...rest]]);
  }
  const slow = fake(
    [
      [
        [replyError('NOSCRIPT x'), null],
        [null, 0],
      ],
      [ok, [null, 1]],
    ],
    30,
  );
  const startedMs = performance.now();
  t.same(await runScript(slow.connection, { ...call, replicas: 1, deadlineMs: 60_000 }, 7), {
    reply: 'reply',
    confirmedReplicas: 1,
  });
  const [first, second] = slow.sent.map((commands) => Number(commands[1]?.[2]));
  t.equal(first, 48_000);
  const tookMs = performance.now() - startedMs;
  t.ok(
    (second ?? 0) < 48_000 - 20 && (second ?? 0) >= 48_000 - Math.ceil(0.8 * tookMs),
    `${String(second)} of 60 s, less ${String(tookMs)} ms`,
  );
  const twice = fake([[[replyError('NOSCRIPT x'), null]], [[replyError('NOSCRIPT y'), null]]]);
  await t.rejects(runScript(twice.connection, call, 7), { message: 'NOSCRIPT y' });
  t.equal(twice.sent.length, 2);
});

t.test('what a script ends with is what its caller hears; that only the wait failed is said apart', async (t) => {
  const lost = { message: 'the connection was lost' };
  const oom = replyError('OOM no');
  const cases: readonly {
    name: string;
    replies: readonly Reply[] | null;
    change?: Partial<ScriptCall>;
    expected: ErrorWords;
  }[] = [
    { name: 'an error', replies: [[oom, null]], change: { replicas: 0 }, expected: oom },
    {
      name: 'an error before a wait',
      replies: [
        [oom, null],
        [null, 0],
      ],
      expected: oom,
    },
    {
      name: 'an error while asking',
      replies: [
        [null, 'OK'],
        [oom, null],
      ],
      change: { asking: true, replicas: 0 },
      expected: oom,
    },
    { name: 'nothing', replies: null, expected: lost },
    { name: 'an empty list', replies: [], expected: lost },
    { name: 'nothing but the word that it asks', replies: [[null, 'OK']], change: { asking: true }, expected: lost },
    {
      name: 'a wait that is not allowed',
      replies: [ok, [replyError('NOPERM no'), null]],
      expected: { name: 'WaitFailed', message: 'NOPERM no' },
    },
  ];
  for (const { name, replies, change, expected } of cases) {
    const one = fake([replies]);
    await t.rejects(runScript(one.connection, { ...call, replicas: 1, ...change }, 7), expected, name);
    t.equal(one.sent.length, 1);
  }
  t.ok(new WaitFailed(oom) instanceof Error);
});

t.test('a reply to something else is nobody’s, and ends its connection', async (t) => {
  const others = { name: 'OthersReply', message: 'the server answers what was not asked' };
  for (const value of [['another', 'reply'], [], ['reply'], 1, null, 'OK', Buffer.from('reply')]) {
    for (const change of [{}, { replicas: 1 }, { asking: true }, { withText: true }]) {
      const asks = change.asking === true;
      const one = fake([[...(asks ? [[null, 'OK'] as const] : []), [null, value], [null, 1]]]);
      await t.rejects(runScript(one.connection, { ...call, ...change }, 7), others);
      t.match(one.ended, [others]);
    }
  }
  const first = fake([[ok]]);
  await runScript(first.connection, call, 7);
  t.same(first.ended, []);
});

t.test('a reply to WAIT that is no number of replicas is nobody’s, and ends its connection', async (t) => {
  const others = { name: 'OthersReply' };
  for (const value of [NaN, -1, 1.5, 'OK', '1', null, undefined, ['another', 'reply'], Buffer.from('1')]) {
    const one = fake([[ok, [null, value]]]);
    await t.rejects(runScript(one.connection, { ...call, replicas: 1 }, 7), others);
    t.match(one.ended, [others]);
  }
  const short = fake([[ok]]);
  await t.rejects(runScript(short.connection, { ...call, replicas: 1 }, 7), others, 'and so is none at all');
});

t.test('a server that says too late that it lost its scripts is sent nothing more', async (t) => {
  const late = fake([[[replyError('NOSCRIPT x'), null]], [ok]], 30);
  await t.rejects(runScript(late.connection, { ...call, deadlineMs: 20 }, 7), {
    name: 'ScriptMissing',
    message: 'no answer within the deadline',
  });
  t.equal(late.sent.length, 1);
});

t.test('what settles may run while a server of 7.0 or newer is out of memory, what reserves may not', (t) => {
  for (const script of Object.values(scripts)) {
    t.equal(scriptText(script, 6), script.body);
    const settles = ['complete', 'release', 'mark', 'resolve', 'show', 'keep'].includes(script.name);
    for (const version of [7, 8]) {
      t.equal(
        scriptText(script, version),
        settles ? `#!lua flags=allow-oom\n${script.body}` : script.body,
        script.name,
      );
    }
  }
  t.end();
});
