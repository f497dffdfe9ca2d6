/** The commands of docs/compromise.md, as they stand there, against a real Redis. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../src/cli/program.js';
import { tokenDigest } from '../../src/decision/revocation/match.js';
import { captureIo, type CapturedIo } from '../cli/captured-io.js';
import { rsaKey } from '../support/keys.js';
import { projectDir } from '../support/project-dir.js';
import { startRedis } from '../support/redis-server.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { baseConfig } from '../support/proxy-process.js';

const page = readFileSync(join(projectDir, 'docs/compromise.md'), 'utf8');
const commands = [...page.matchAll(/^ *(sallyport revoke --config sallyport\.yaml .*)$/gm)].map(
  ([, line = '']) => line,
);

/** Arguments as a shell splits them; what comes after `<` is read from that file. */
function wordsOf(line: string): { readonly words: readonly string[]; readonly input: string | null } {
  const [command = '', input = null] = line.split(' < ');
  return {
    words: [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '').slice(1),
    input,
  };
}

t.test('every command of the runbook does what it says', async (t) => {
  const redis = await startRedis(t);
  const cwd = tempDir(t);
  writeFileSync(
    join(cwd, 'sallyport.yaml'),
    baseConfig({ store: { redis: { url: `redis://127.0.0.1:${String(redis.port)}` } } }),
  );
  const token = mintToken({ key: rsaKey() });
  const files: Readonly<Record<string, string>> = { 'leaked.txt': token };
  const ask = async (words: readonly string[], input: string | null = null): Promise<CapturedIo> => {
    const io = captureIo({ cwd, stdin: input === null ? '' : (files[input] ?? '') });
    await run(words, io);
    return io;
  };
  let id = '';
  for (const line of commands) {
    const { words, input } = wordsOf(line);
    const io = await ask(
      words.map((word) => (word === 'ID' ? id : word)),
      input,
    );
    t.equal(io.code(), 0, `${line}\n${io.err()}`);
    id = /^id +(\S+)$/m.exec(io.out())?.[1] ?? id;
    t.notMatch(io.err(), /may end before|lies ahead/, 'what is shown leaves nothing to think of');
  }
  const list = JSON.parse((await ask(['revoke', '--config', 'sallyport.yaml', '--list', '--json'])).out()) as {
    readonly revocations: readonly { readonly kind: string; readonly value: string }[];
    readonly undone: readonly unknown[];
  };
  t.same(
    list.revocations.map(({ kind }) => kind).sort(),
    ['issued_before', 'key_id', 'token', 'token_id'],
    'the last one, of the subject, was undone',
  );
  t.equal(list.revocations.find(({ kind }) => kind === 'token')?.value, tokenDigest(token));
  t.equal(list.undone.length, 1);
  t.equal(commands.length, 7);
});
