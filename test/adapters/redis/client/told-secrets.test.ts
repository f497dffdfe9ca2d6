/** A server that repeats what it was told: no secret is in what is told of it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startFakeRedis } from '../../../support/fake-redis.js';
import { openStore, redisSettings } from '../redis-store.js';

const password = 'S3cret-of-Redis';

for (const [name, refuse] of [
  ['the command', (words: readonly string[]) => `-ERR you sent ${words.join(' ')}\r\n`],
  ['a user and its password', (words: readonly string[]) => `-WRONGPASS ${words.slice(1).join(' ')} is disabled\r\n`],
] as const) {
  t.test(`a server that repeats ${name}`, async (t) => {
    const asked: string[] = [];
    const { port } = await startFakeRedis(t, (words) => {
      asked.push(words.join(' '));
      return refuse(words);
    });
    const passwordFile = join(t.testdir({}), 'password');
    writeFileSync(passwordFile, password, { mode: 0o600 });
    const { store, log, problem } = openStore(t, redisSettings(port, { passwordFile }));
    await problem(/you sent|WRONGPASS/);
    t.match(asked.join('\n'), password, 'it was told');
    t.notMatch([store.state().problem, ...log.lines].join('\n'), password);
  });
}
