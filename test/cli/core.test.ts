import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../src/cli/program.js';
import { startReceiver } from '../support/receiver.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { captureIo, type CapturedIo } from './captured-io.js';
import { startCommand } from './started-command.js';

const call = JSON.stringify({ algorithm: 'RS256', jwksDomain: 'https://api.example.com', payload: {}, validity: 300, useStaticSigningKey: false });

function keysFile(t: Parameters<typeof tempDir>[0], content: string, mode = 0o600): string {
  const path = join(tempDir(t), 'api-keys');
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

t.test('contract 1: the Core emulator runs until a signal, and ends with 0', async (t) => {
  const core = startCommand(t, ['core', '--port', '0']);
  const [, url = ''] = await core.says(/^core {2}(http:\/\/127\.0\.0\.1:\d+)$/m);
  t.equal((await fetch(`${url}/hello`)).status, 200);
  t.equal((await fetch(`${url}/recipe/jwt`, { method: 'POST', body: call })).status, 200);
  core.signal('SIGINT');
  t.same(await core.exited, { code: 0, signal: null });
});

/** Runs the command in this process until the look at it is over, then ends it as SIGTERM does. */
async function runCore(args: readonly string[], look: (url: string) => Promise<void>): Promise<CapturedIo> {
  const io = captureIo();
  const over = run(['core', '--port', '0', ...args], io);
  await look(await until('the emulator says where it is', () => /^core {2}(\S+)$/m.exec(io.out())?.[1]));
  io.signal('SIGTERM');
  await over;
  return io;
}

t.test('keys from a file are asked for, one a line or between commas', async (t) => {
  const file = keysFile(t, 'first-key-of-twenty-characters\nother-key-of-twenty-characters,third-key-of-twenty-characters\n');
  const io = await runCore(['--api-keys-file', file, '--host', '0.0.0.0'], async (url) => {
    const mint = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(`${url.replace('0.0.0.0', '127.0.0.1')}/recipe/jwt`, { method: 'POST', body: call, headers })).status;
    t.equal(await mint({}), 401);
    t.equal(await mint({ 'api-key': 'third-key-of-twenty-characters' }), 200);
  });
  t.notMatch(io.out() + io.err(), 'of-twenty-characters', 'no key is printed');
  t.notMatch(io.err(), /can mint any token/, 'nothing to warn of');
});

t.test('an address that others reach is warned of where no key is asked for', async (t) => {
  t.match((await runCore(['--host', '0.0.0.0'], async () => undefined)).err(), /can mint any token/);
});

t.test('contract 1: what cannot be started says why, with its exit code', async (t) => {
  const taken = await startReceiver(t);
  const cases = [
    { name: 'port in use', args: ['--port', String(taken.port)], code: 3, says: /in use[^]*--port/ },
    { name: 'address of another machine', args: ['--host', '192.0.2.1', '--port', '0'], code: 3, says: /192\.0\.2\.1/ },
    { name: 'port too large', args: ['--port', '65536'], code: 2, says: /65535/ },
    { name: 'port no number', args: ['--port', '1e3'], code: 2, says: /whole number/ },
    { name: 'no duration', args: ['--rotate-every', '10'], code: 2, says: /duration/ },
    { name: 'duration too short', args: ['--rotate-every', '999ms'], code: 2, says: /1s/ },
    { name: 'an option of later', args: ['--data', 'x'], code: 2, says: /unknown option/ },
    { name: 'no such file', args: ['--api-keys-file', '/nonexistent/keys'], code: 2, says: /does not exist/ },
    { name: 'a file that others may read', args: ['--api-keys-file', keysFile(t, 'first-key-of-twenty-characters', 0o640)], code: 2, says: /0640.*chmod 600/ },
    { name: 'a file without keys', args: ['--api-keys-file', keysFile(t, ' \n')], code: 2, says: /no key/ },
    { name: 'a key of 19 characters', args: ['--api-keys-file', keysFile(t, 'a'.repeat(19))], code: 2, says: /20 or more/ },
  ];
  for (const { name, args, code, says } of cases) {
    const io = captureIo();
    await run(['core', ...args], io);
    t.equal(io.code(), code, name);
    t.match(io.err(), says, name);
    t.equal(io.out(), '', name);
  }
});
