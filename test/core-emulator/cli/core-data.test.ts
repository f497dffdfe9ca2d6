import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { tempDir } from '../../support/temp-dir.js';
import { captureIo } from '../../cli/captured-io.js';
import { startCommand, type StartedCommand } from '../../cli/started-command.js';

interface Running {
  readonly process: StartedCommand;
  readonly url: string;
}

async function start(t: Parameters<typeof tempDir>[0], path: string): Promise<Running> {
  const process = startCommand(t, ['core', '--port', '0', '--data', path]);
  const [, url = ''] = await process.says(/^core {2}(http:\/\/\S+)$/m);
  return { process, url };
}

function signInUp(url: string, id: string): Promise<string> {
  const body = JSON.stringify({
    thirdPartyId: 'google',
    thirdPartyUserId: id,
    email: { id: `${id}@example.com`, isVerified: true },
  });
  return fetch(`${url}/recipe/signinup`, { method: 'POST', body, headers: { 'cdi-version': '2.16' } }).then(
    async (response) => ((await response.json()) as { user: { id: string } }).user.id,
  );
}

t.test('whatever was answered survives kill -9, in the middle of writing', async (t) => {
  const path = join(tempDir(t), 'core.data');
  const answered = new Map<string, string>();
  for (let life = 0; life < 3; life += 1) {
    const { process, url } = await start(t, path);
    const writer = async (worker: number): Promise<void> => {
      for (let count = 0; ; count += 1) {
        const id = `u-${String(life)}-${String(worker)}-${String(count)}`;
        answered.set(id, await signInUp(url, id));
        if (answered.size === 150 * (life + 1)) process.signal('SIGKILL');
      }
    };
    // Each ends with the connection that the kill cuts.
    await Promise.allSettled(Array.from({ length: 8 }, (_, worker) => writer(worker)));
    t.match(await process.exited, { signal: 'SIGKILL' });
  }
  t.ok(answered.size >= 450, String(answered.size));
  const { process, url } = await start(t, path);
  for (const [id, user] of answered) t.equal(await signInUp(url, id), user, id);
  process.signal('SIGTERM');
  t.match(await process.exited, { code: 0 });
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.match(readFileSync(path, 'utf8'), /"u-0-/);
});

t.test('a data file that another process uses is refused with 3, one that cannot be used with 2', async (t) => {
  const path = join(tempDir(t), 'core.data');
  const { process } = await start(t, path);
  const cases = [
    { path, code: 3, says: /core\.data is in use by another process/ },
    { path: join(path, 'below'), code: 2, says: /cannot be the data file \(ENOTDIR\)/ },
    { path: join(tempDir(t), 'none', 'data'), code: 2, says: /cannot be the data file \(ENOENT\)/ },
    { path: join(import.meta.dirname, 'core-data.test.js'), code: 2, says: /open to others|is no data file/ },
  ];
  for (const { path: file, code, says } of cases) {
    const io = captureIo();
    await run(['core', '--port', '0', '--data', file], io);
    t.equal(io.code(), code, String(says));
    t.match(io.err(), says);
  }
  t.ok(process.isRunning());
});
