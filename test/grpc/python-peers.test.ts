/** gRPC's C core, in Python, on either side of a proxy, and on both. */
import { gunzipSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import t from 'tap';
import { frameMessage } from '../../src/decision/grpc/messages.js';
import { callFromPython, startPythonGrpcServer } from '../support/grpcio.js';
import { ask, connectHttp2 } from '../support/http2-client.js';
import { until } from '../support/until.js';
import { startGrpcProxy } from './deployment.js';
import { allBytes, createCaller, outcomeOf, prefix, startNodeService } from './service.js';

t.setTimeout(180_000);

const permissions = ['orders:write'];

const steps = [
  'unary',
  'large',
  'collect',
  'split',
  'both',
  'fail',
  'deadline',
  'remaining',
  'cancel',
  'stranger',
  'gzip',
];

const echoed = {
  initial: 'a text',
  initialIsWhole: true,
  trailing: 'a text',
  trailingIsWhole: true,
  subject: 'checkout',
};

for (const kind of ['Node.js', 'Python'] as const) {
  t.test(`a client in Python and a service on ${kind} have calls of all kinds through the proxy`, async (t) => {
    const service = kind === 'Node.js' ? (await startNodeService(t)).port : await startPythonGrpcServer(t);
    const proxy = await startGrpcProxy(t, service);
    const authorization = proxy.authorization({ permissions }).Authorization ?? '';
    const address = `127.0.0.1:${String(proxy.port)}`;
    const { remaining, ...told } = await callFromPython({ address, authorization, steps });
    t.same(told, {
      unary: { ...echoed, answer: 'order' },
      large: true,
      collect: { ...echoed, answer: '20000:200000' },
      split: { ...echoed, answer: true },
      both: { ...echoed, answer: ['1', '2', '3'] },
      fail: {
        code: 'FAILED_PRECONDITION',
        details: 'half ä and 100%',
        bytes: allBytes.toString('hex'),
        trailing: 'of a failure',
      },
      deadline: { code: 'DEADLINE_EXCEEDED', details: 'Deadline Exceeded', bytes: null, trailing: null },
      cancel: 'tick',
      stranger: { code: 'UNAUTHENTICATED', details: 'Unauthorized', bytes: null, trailing: null },
      gzip: { zipped: true, plain: 'RESOURCE_EXHAUSTED' },
    });
    // The C core rounds it up.
    t.ok(Number(remaining) > 10_000 && Number(remaining) < 31_000, `${String(remaining)} ms are left`);
    // Its call at the deadline, and the one that it cancelled.
    const caller = createCaller(t, proxy.port, authorization);
    await until('the service has noticed', async () => {
      const { messages } = await caller.unary(`${prefix}Cancelled`);
      return String(messages[0]) === '2';
    });
  });
}

t.test('a client on Node.js has calls of a service in Python, which may break one off', async (t) => {
  const proxy = await startGrpcProxy(t, await startPythonGrpcServer(t));
  const caller = createCaller(t, proxy.port, proxy.authorization({ permissions }).Authorization);
  const metadata = { 'x-text': 'a text', 'x-data-bin': allBytes };
  const both = caller.both(`${prefix}Both`, { metadata });
  const ended = outcomeOf(both);
  for (let number = 0; number < 1_000; number += 1) both.write(Buffer.from(String(number)));
  both.end();
  const { messages, initial, status: end } = await ended;
  t.same([end.code, messages.length, String(messages.at(-1))], [status.OK, 1_000, '999']);
  t.same([initial?.get('x-initial-bin'), end.metadata.get('x-trailing-bin')], [[allBytes], [allBytes]]);
  const left = await outcomeOf(caller.split(`${prefix}Leave`));
  t.same(left.messages.map(String), ['first']);
  t.not(left.status.code, status.OK, 'what the service broke off is no success');
  t.not(left.status.code, status.UNAVAILABLE, 'nor may it be repeated');
});

t.test('what a service compresses is passed as it is, and so is what it says of that', async (t) => {
  const proxy = await startGrpcProxy(t, await startPythonGrpcServer(t, 'gzip'));
  const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
  const message = Buffer.alloc(100_000, 'a');
  const answer = await ask(
    session,
    {
      ':method': 'POST',
      ':path': `${prefix}Unary`,
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-accept-encoding': 'identity, gzip',
      authorization: proxy.authorization({ permissions }).Authorization,
    },
    Buffer.from(frameMessage(message)),
  );
  t.equal(answer.trailers?.['grpc-status'], '0');
  t.equal(answer.headers['grpc-encoding'], 'gzip');
  t.match(String(answer.headers['grpc-accept-encoding']), /gzip/);
  t.equal(answer.body[0], 1, 'the flag of a compressed message');
  t.ok(answer.body.length < 10_000);
  t.ok(gunzipSync(answer.body.subarray(5)).equals(message));
});
