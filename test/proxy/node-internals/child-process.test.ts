/** Holds Node to what is used of its child processes: the title begins with the symbol that is gone where it fails. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { onHandleLost } from '../../../src/proxy/node-internals/child-process.js';
import { listen } from '../../support/listening.js';
import { limitDescriptors } from '../../support/prlimit.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';

const takesAll = `const held = [];
process.on('message', (message, handle) => {
  if (handle !== undefined) held.push(handle);
  process.send(held.length);
});`;

t.test('internalMessage: a process without a file descriptor refuses a handle until it is given up', async (t) => {
  const program = join(tempDir(t), 'taker.cjs');
  writeFileSync(program, takesAll);
  const child = fork(program);
  t.teardown(() => child.kill('SIGKILL'));
  const taken: unknown[] = [];
  let lost = 0;
  child.on('message', (count) => taken.push(count));
  onHandleLost(child, () => {
    lost += 1;
  });
  const server = createServer();
  const { port } = await listen(t, server);
  const give = async (): Promise<void> => {
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const client = connect(port, '127.0.0.1').on('error', () => undefined);
    t.teardown(() => client.destroy());
    const [socket] = await accepted;
    child.send('a connection', socket, { keepOpen: true });
  };
  await give();
  await until('it took one', () => taken.length === 1);
  t.equal(lost, 0);
  limitDescriptors(child.pid ?? 0, 0);
  for (let given = 1; lost === 0 && given < 20; given += 1) {
    await give();
    await until('it took one, or did not', () => taken.length > given || lost > 0);
  }
  t.equal(lost, 1, 'once for one handle');
  const before = taken.length;
  limitDescriptors(child.pid ?? 0, 1_000);
  await give();
  await until('it takes them again', () => taken.length === before + 1);
  t.equal(lost, 1);
});
