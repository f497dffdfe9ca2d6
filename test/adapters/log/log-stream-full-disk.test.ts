import { closeSync, constants, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createLogStream } from '../../../src/adapters/log/log-stream.js';
import { fullDevice } from '../../support/linux.js';
import { tempDir } from '../../support/temp-dir.js';

t.test('a disk that has room again gets lines, and the count of those that were dropped', async (t) => {
  const path = join(tempDir(t), 'log');
  const descriptor = openSync(fullDevice, constants.O_WRONLY);
  const stream = createLogStream(descriptor);
  stream.write('lost\n');
  stream.flush();
  closeSync(descriptor);
  t.equal(
    openSync(path, constants.O_WRONLY | constants.O_CREAT),
    descriptor,
    'the same descriptor, and another file behind it',
  );
  t.teardown(() => {
    closeSync(descriptor);
  });
  stream.write('kept\n');
  stream.flush();
  t.match(readFileSync(path, 'utf8'), /^kept\n\{.*"lines":1,"msg":"log lines were dropped"\}\n$/);
});

t.test('a full disk is survived', async (t) => {
  const descriptor = openSync(fullDevice, constants.O_WRONLY);
  t.teardown(() => {
    closeSync(descriptor);
  });
  const stream = createLogStream(descriptor);
  for (let round = 0; round < 3; round += 1) {
    for (let i = 0; i < 100; i += 1) stream.write(`${'x'.repeat(1023)}\n`);
    await new Promise((resolve) => setImmediate(resolve));
    t.doesNotThrow(() => {
      stream.flush();
    });
  }
});
