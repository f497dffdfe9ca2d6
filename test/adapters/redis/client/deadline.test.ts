import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import t from 'tap';
import { withDeadline } from '../../../../src/adapters/redis/client/connection.js';
import { DeadlinePassed } from '../../../../src/adapters/redis/scripts/errors.js';
import type { Scope } from '../../../support/scope.js';

/** Two ends of a connection. */
async function pair(t: Scope): Promise<{ readonly near: Socket; readonly far: Socket }> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const near = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [far] = await accepted;
  t.teardown(() => {
    near.destroy();
    far.destroy();
    server.close();
  });
  return { near, far };
}

/** Keeps the event loop from reading, as a program does that is being compiled. */
function keepBusy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

t.test('an answer that had arrived by the deadline counts, although the process had no time to read it', async (t) => {
  for (let round = 0; round < 5; round += 1) {
    const { near, far } = await pair(t);
    const answer = once(near, 'data') as Promise<[Buffer]>;
    const outcome = withDeadline(answer, 5);
    // The system takes it at once.
    far.write('answer');
    keepBusy(20);
    t.equal(String((await outcome)[0]), 'answer');
  }
});

t.test('without an answer it ends by the deadline', async (t) => {
  await t.rejects(withDeadline(new Promise(() => undefined), 5), DeadlinePassed);
});

t.test('what the work ended with is told, good or bad', async (t) => {
  t.equal(await withDeadline(Promise.resolve(1), 1_000), 1);
  await t.rejects(withDeadline(Promise.reject(new Error('refused')), 1_000), { message: 'refused' });
});
