/** Connections whose stream ids are used up (RFC 9113 §5.1.1), with one of Node's servers at the other end. */
import { connect as connectHttp2, createServer, type ClientHttp2Session } from 'node:http2';
import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { listen } from '../../../support/listening.js';
import { until } from '../../../support/until.js';
import { startUpstream, uncaughtErrors, type UpstreamHarness } from '../upstream-harness.js';
import { setNextId, startFrameUpstream } from './frame-upstream.js';

/** The largest one (RFC 9113 §5.1.1). */
const lastId = 2 ** 31 - 1;

/** Has the first connection that sends a request have ids for so many. */
async function leaveIds(t: Test, count: number): Promise<void> {
  const { url } = await startFrameUpstream(t, () => undefined);
  const session = connectHttp2(url).on('error', () => undefined);
  const sessions = Object.getPrototypeOf(session) as ClientHttp2Session;
  session.destroy();
  const request = Reflect.get(sessions, 'request') as (this: unknown, ...given: unknown[]) => unknown;
  let isSet = false;
  t.intercept(sessions, 'request', {
    value(this: ClientHttp2Session, ...given: unknown[]) {
      if (!isSet) setNextId(this, lastId - 2 * (count - 1));
      isSet = true;
      return Reflect.apply(request, this, given);
    },
  });
}

interface Served extends UpstreamHarness {
  /** Connections that came. */
  readonly connections: () => number;
  /** Requests that came. */
  readonly asked: () => number;
  /** Answers those that wait for it, at the path /held. */
  readonly answerHeld: () => void;
}

/** An upstream that answers with the number of the connection and with the body it got. */
async function serve(t: Test, maxConnections: number): Promise<Served> {
  let connections = 0;
  let asked = 0;
  const held: (() => void)[] = [];
  const server = createServer().on('session', (session) => {
    connections += 1;
    const number = connections;
    session.on('stream', (stream, { ':path': path }) => {
      asked += 1;
      let body = '';
      const answer = (): void => {
        stream.respond({ ':status': 200 });
        stream.end(`${body} by ${String(number)}`);
      };
      stream.setEncoding('utf8').on('data', (text: string) => (body += text));
      stream.on('end', path === '/held' ? () => held.push(answer) : answer).on('error', () => undefined);
    });
  });
  const { port } = await listen(t, server);
  const harness = startUpstream(t, `http://127.0.0.1:${String(port)}`, { http2: true, maxConnections });
  return {
    ...harness,
    connections: () => connections,
    asked: () => asked,
    answerHeld: () => held.splice(0).forEach((answer) => answer()),
  };
}

const bodies = {
  'no body': () => null,
  'a body': () => Buffer.from('abc'),
  'a body of several pieces': () => Buffer.alloc(200_000, 'a'),
  'a streamed body': () => Readable.from([Buffer.from('abc')]),
};

for (const [name, bodyOf] of Object.entries(bodies)) {
  t.test(`a request with ${name} for which no id is left goes out on another connection`, async (t) => {
    const uncaught = uncaughtErrors(t);
    await leaveIds(t, 2);
    const { ask, upstream, connections, asked } = await serve(t, 1);
    const answers: string[] = [];
    for (let number = 1; number <= 4; number += 1) {
      answers.push(await ask({ method: 'POST', body: bodyOf(), responseTimeoutMs: 2_000 }));
    }
    const body = name === 'no body' ? '' : name.includes('several') ? 'a'.repeat(200_000) : 'abc';
    t.same(
      answers,
      [1, 1, 2, 2].map((connection) => `200 ${body} by ${String(connection)}`),
    );
    t.equal(asked(), 4);
    t.equal(connections(), 2);
    await until('the one that is used up is closed', () => upstream.connections() === 1);
    t.same(upstream.counts(), { active: 0, waiting: 0 });
    t.same(uncaught, []);
  });
}

t.test('requests under way on such a connection go on, and it is closed behind them', async (t) => {
  await leaveIds(t, 1);
  const { ask, send, upstream, asked, answerHeld } = await serve(t, 4);
  const first = send({ target: '/held' });
  await until('it came', () => asked() === 1);
  t.equal(await ask({ responseTimeoutMs: 2_000 }), '200  by 2');
  t.equal(upstream.connections(), 2);
  answerHeld();
  await until('it ended', () => first.ends() > 0);
  t.equal(first.body().toString(), ' by 1');
  await until('it is closed', () => upstream.connections() === 1);
});

t.test('of those that wait for a connection, each finds another one', async (t) => {
  const uncaught = uncaughtErrors(t);
  await leaveIds(t, 2);
  const { ask, upstream, asked } = await serve(t, 1);
  const answers = await Promise.all(Array.from({ length: 6 }, () => ask({ responseTimeoutMs: 2_000 })));
  t.same(answers.toSorted(), [
    ...Array.from({ length: 2 }, () => '200  by 1'),
    ...Array.from({ length: 4 }, () => '200  by 2'),
  ]);
  t.equal(asked(), 6);
  t.same(upstream.counts(), { active: 0, waiting: 0 });
  t.same(uncaught, []);
});

t.test('a request that waits for another connection counts as not sent', async (t) => {
  await leaveIds(t, 1);
  const { send, answerHeld, asked } = await serve(t, 1);
  const first = send({ target: '/held' });
  await until('it came', () => asked() === 1);
  const second = send({ method: 'POST', body: Buffer.from('abc'), target: '/held' });
  t.equal(second.call.mayBeSent(), false, 'nothing went out');
  await until('it came there', () => asked() === 2);
  t.equal(second.call.mayBeSent(), true);
  answerHeld();
  await until('both ended', () => first.ends() + second.ends() === 2);
});
