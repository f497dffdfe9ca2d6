/** `dev --grpc`: what it prints works when it is pasted. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import t from 'tap';
import { echoMessage } from '../../../../src/cli/commands/dev/grpc.js';
import { run } from '../../../../src/cli/program.js';
import { sh } from '../../../support/sh.js';
import { captureIo } from '../../captured-io.js';
import { startCommand } from '../../started-command.js';

const execute = promisify(execFile);

t.test('every printed curl line ends as it says', async (t) => {
  const dev = startCommand(t, ['dev', '--grpc', '--port', '0']);
  await dev.says(/Ctrl-C/);
  const lines = dev.stdout().split('\n');
  const examples = lines.flatMap((line, at) => (line.startsWith('curl ') ? [{ line, above: lines[at - 1] }] : []));
  t.same(
    examples.map(({ above }) => above),
    ['# expect grpc-status 0', '# expect grpc-status 16', '# expect grpc-status 7'],
  );
  for (const { line, above } of examples) {
    const { stdout } = await execute(sh, ['-c', line], { encoding: 'latin1' });
    t.match(stdout, /^HTTP\/2 200/, line);
    t.equal(`# expect grpc-status ${String(/grpc-status: ?(\d+)\r?$/im.exec(stdout)?.[1])}`, above);
    t.equal(stdout.includes(Buffer.from(echoMessage('hello')).toString('latin1')), above?.endsWith(' 0'));
  }
  t.match(dev.stdout(), /^FIELD="\$\(cat \S+\)" grpcurl .* 127\.0\.0\.1:\d+ demo\.v1\.Echo\/Say$/m);
  t.notMatch(dev.stdout(), /eyJ/, 'no token is on the screen');
  const file = /@(\S+message\.bin)/.exec(dev.stdout())?.[1] ?? '';
  t.ok(existsSync(file));
  dev.signal('SIGINT');
  t.equal((await dev.exited).code, 0);
  t.notOk(existsSync(file), 'what was written is gone');
});

t.test('it has a service of its own: not with another one', async (t) => {
  const io = captureIo();
  await run(['dev', '--grpc', '--upstream', 'http://127.0.0.1:3000'], io);
  t.equal(io.code(), 2);
  t.match(io.err(), /--grpc/);
});
