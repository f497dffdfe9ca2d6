/** `@grpc/grpc-js` on both sides of a proxy. */
import { compressionAlgorithms, status } from '@grpc/grpc-js';
import t from 'tap';
import type { Scope } from '../support/scope.js';
import { until } from '../support/until.js';
import { startGrpcProxy } from './deployment.js';
import {
  allBytes,
  createCaller,
  outcomeOf,
  prefix,
  startNodeService,
  type Caller,
  type NodeService,
} from './service.js';
import type { Outcome } from './service.js';

t.setTimeout(120_000);

const metadata = { 'x-text': 'a text', 'x-data-bin': allBytes };

async function start(t: Scope): Promise<{ readonly service: NodeService; readonly caller: Caller }> {
  const service = await startNodeService(t);
  const proxy = await startGrpcProxy(t, service.port);
  const permissions = ['orders:write'];
  return { service, caller: createCaller(t, proxy.port, proxy.authorization({ permissions }).Authorization) };
}

/** What every method that echoes says of the metadata that it got. */
const echoed = {
  initial: ['a text'],
  initialBytes: [allBytes],
  trailing: ['a text'],
  trailingBytes: [allBytes],
  subject: ['checkout'],
};

function echoOf({ initial, status: { metadata: trailing } }: Outcome): object {
  return {
    initial: initial?.get('x-initial'),
    initialBytes: initial?.get('x-initial-bin'),
    trailing: trailing.get('x-trailing'),
    trailingBytes: trailing.get('x-trailing-bin'),
    subject: trailing.get('x-seen-subject'),
  };
}

t.test('calls of all four kinds pass, with metadata of text and of bytes before and behind the messages', async (t) => {
  const { caller } = await start(t);
  const unary = await caller.unary(`${prefix}Unary`, Buffer.from('order'), { metadata });
  t.same([unary.status.code, unary.messages.map(String)], [status.OK, ['order']]);
  t.same(echoOf(unary), echoed);

  const collected = await caller.collect(
    `${prefix}Collect`,
    ['1', '22', '333'].map((text) => Buffer.from(text)),
    {
      metadata,
    },
  );
  t.same([collected.status.code, collected.messages.map(String)], [status.OK, ['3:6']]);
  t.same(echoOf(collected), echoed);

  const split = await outcomeOf(caller.split(`${prefix}Split`, Buffer.from('3'), { metadata }));
  t.same([split.status.code, split.messages.map(String)], [status.OK, ['0', '1', '2']]);
  t.same(echoOf(split), echoed);

  const both = caller.both(`${prefix}Both`, { metadata });
  const ended = outcomeOf(both);
  // Each message is answered before the next one is sent: nothing waits for the end of a stream.
  let answers = 0;
  both.on('data', () => {
    answers += 1;
    if (answers < 3) both.write(Buffer.from(String(answers)));
    else both.end();
  });
  both.write(Buffer.from('0'));
  const { messages, ...rest } = await ended;
  t.same([rest.status.code, messages.map(String)], [status.OK, ['0', '1', '2']]);
  t.same(echoOf({ messages, ...rest }), echoed);
});

t.test('900 kB in one message and 20,000 small messages of one call pass, there and back', async (t) => {
  const { caller } = await start(t);
  const large = Buffer.alloc(900_000, allBytes);
  const unary = await caller.unary(`${prefix}Unary`, large);
  t.ok(unary.messages[0]?.equals(large));
  const many = Array.from({ length: 20_000 }, (_, number) => Buffer.from(String(number)));
  const bytes = many.reduce((sum, { length }) => sum + length, 0);
  const collected = await caller.collect(`${prefix}Collect`, many);
  t.same(collected.messages.map(String), [`20000:${String(bytes)}`]);
  const split = await outcomeOf(caller.split(`${prefix}Split`, Buffer.from('20000')));
  t.equal(split.status.code, status.OK);
  t.ok(Buffer.concat(split.messages).equals(Buffer.concat(many)));
  const both = caller.both(`${prefix}Both`);
  const ended = outcomeOf(both);
  for (const message of many) both.write(message);
  both.end();
  const back = await ended;
  t.equal(back.status.code, status.OK);
  t.equal(back.messages.length, 20_000);
  t.ok(Buffer.concat(back.messages).equals(Buffer.concat(many)));
});

t.test('a failure of the service is told with its message, its details and its metadata', async (t) => {
  const { caller } = await start(t);
  const { status: failed } = await caller.unary(`${prefix}Fail`, allBytes);
  t.equal(failed.code, status.FAILED_PRECONDITION);
  t.equal(failed.details, 'half ä and 100%');
  t.same(failed.metadata.get('grpc-status-details-bin'), [allBytes]);
  t.same(failed.metadata.get('x-trailing'), ['of a failure']);
});

t.test('messages of a caller that compresses are passed as they are, and count as they were sent', async (t) => {
  const service = await startNodeService(t);
  const proxy = await startGrpcProxy(t, service.port);
  const authorization = proxy.authorization({ permissions: ['orders:write'] }).Authorization ?? '';
  const zipping = createCaller(t, proxy.port, authorization, {
    'grpc.default_compression_algorithm': compressionAlgorithms.gzip,
  });
  const plain = createCaller(t, proxy.port, authorization);
  const large = Buffer.alloc(900_000);
  const zipped = await zipping.unary('/shop.v1.Small/Unary', large);
  t.equal(zipped.status.code, status.OK);
  t.ok(zipped.messages[0]?.equals(large));
  const { status: refused } = await plain.unary('/shop.v1.Small/Unary', large);
  t.equal(refused.code, status.RESOURCE_EXHAUSTED, 'it is larger than max_body where it is not compressed');
});

t.test('a deadline is told to the service, and ends the call there as well', async (t) => {
  const { service, caller } = await start(t);
  const within = (ms: number): { readonly call: { readonly deadline: number } } => ({
    call: { deadline: Date.now() + ms },
  });
  const none = await caller.unary(`${prefix}Remaining`);
  t.same(none.messages.map(String), ['none']);
  const some = await caller.unary(`${prefix}Remaining`, Buffer.alloc(0), within(30_000));
  const left = Number(String(some.messages[0]));
  t.ok(left > 10_000 && left <= 30_000, String(left));
  const late = await caller.unary(`${prefix}Wait`, Buffer.alloc(0), within(300));
  t.equal(late.status.code, status.DEADLINE_EXCEEDED);
  await until('the service has noticed', () => service.cancelled() === 1);
});

t.test('a caller that does not keep to its own deadline is told by the proxy, streams included', async (t) => {
  const { service, caller } = await start(t);
  const timeout = { metadata: { 'grpc-timeout': '400m' } };
  const unary = await caller.unary(`${prefix}Wait`, Buffer.alloc(0), timeout);
  t.equal(unary.status.code, status.DEADLINE_EXCEEDED);
  const ticks = await outcomeOf(caller.split(`${prefix}Ticks`, Buffer.alloc(0), timeout));
  t.equal(ticks.status.code, status.DEADLINE_EXCEEDED);
  t.ok(ticks.messages.length > 0, 'it had begun');
  await until('the service has noticed', () => service.cancelled() === 2);
});

t.test('what one side cancels ends at the other', async (t) => {
  const { service, caller } = await start(t);
  const ticks = caller.split(`${prefix}Ticks`);
  const ended = outcomeOf(ticks);
  await new Promise((resolve) => ticks.once('data', resolve));
  ticks.cancel();
  t.equal((await ended).status.code, status.CANCELLED);
  await until('the service has noticed the end of a stream back', () => service.cancelled() === 1);
  const both = caller.both(`${prefix}Hold`);
  const bothEnded = outcomeOf(both);
  both.write(Buffer.from('1'));
  await new Promise((resolve) => both.once('data', resolve));
  both.cancel();
  await bothEnded;
  await until('and of one both ways', () => service.cancelled() === 2);

  const waits = caller.unary(`${prefix}Wait`);
  const more = caller.split(`${prefix}Ticks`);
  const moreEnded = outcomeOf(more);
  await new Promise((resolve) => more.once('data', resolve));
  service.kill();
  t.match((await waits).status, { code: status.UNKNOWN }, 'it may have acted: never UNAVAILABLE');
  t.match((await moreEnded).status, { code: status.UNKNOWN }, 'nor where messages came before');
});
