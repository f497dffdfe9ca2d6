import { appendFileSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { verify } from 'node:crypto';
import t from 'tap';
import { startUpstreamServer } from '../support/upstream-server.js';
import { tempDir } from '../support/temp-dir.js';
import { versionOf } from './child.js';
import { runLoad } from './load.js';
import { writePlan } from './request-plan.js';
import { mintTokenFile, openTokens } from './token-file.js';

const nowS = Math.floor(Date.now() / 1000);

t.test('tokens are signed once, and a run that was ended goes on where it was', async (t) => {
  const dir = tempDir(t);
  const progress: number[] = [];
  const onProgress = (made: number): void => void progress.push(made);
  const { tokens, key } = await mintTokenFile({ dir, count: 3, nowS, onProgress });
  appendFileSync(tokens.path, 'half of a tok');
  const before = readFileSync(tokens.path, 'utf8').slice(0, 3 * (tokens.tokenBytes + 1));
  const more = await mintTokenFile({ dir, count: 5, nowS: nowS + 3600, onProgress });
  t.same(progress, [3, 5]);
  t.ok(more.key.publicKey.equals(key.publicKey));
  const lines = readFileSync(tokens.path, 'utf8').trim().split('\n');
  t.equal(lines.slice(0, 3).join('\n'), before.trim());
  t.equal(new Set(lines).size, 5);
  for (const line of lines) {
    const [header = '', payload = '', signature = ''] = line.split('.');
    t.ok(verify('sha256', Buffer.from(`${header}.${payload}`), key.publicKey, Buffer.from(signature, 'base64url')));
  }
  const opened = openTokens(more.tokens);
  t.teardown(opened.close);
  t.same([opened.at(4), opened.at(0)], [lines[4], lines[0]]);
});

t.test('tokens that end soon are thrown away', async (t) => {
  const dir = tempDir(t);
  const old = await mintTokenFile({ dir, count: 1, nowS });
  const fresh = await mintTokenFile({ dir, count: 1, nowS: nowS + 80_000 });
  t.not(fresh.tokens.path, old.tokens.path);
  t.equal(readdirSync(dir).length, 2);
  t.equal(statSync(dir).mode & 0o077, 0, 'nobody else reads the key');
});

for (const wrk of [false, versionOf('wrk', '-v') !== null]) {
  t.test(`a load takes tokens of the file, at a rate; wrk ${wrk ? 'is' : 'is not'} there`, async (t) => {
    const receiver = await startUpstreamServer(t);
    const { tokens } = await mintTokenFile({ dir: tempDir(t), count: 40, nowS });
    const opened = openTokens(tokens);
    t.teardown(opened.close);
    const plan = {
      method: 'GET',
      paths: ['/orders'],
      tokens: [],
      bodyBytes: 0,
      tokenFile: tokens,
      perSecond: 30,
    } as const;
    const run = async (tokensFrom?: number): Promise<number> => {
      receiver.requests.length = 0;
      const files = writePlan(tempDir(t), tokensFrom === undefined ? plan : { ...plan, tokensFrom });
      const { requests, refused, broken } = await runLoad({
        port: receiver.port,
        plan: files,
        seconds: 1,
        connections: 2,
        wrk,
      });
      t.same([refused, broken], [0, 0]);
      return requests;
    };
    const known = new Set(Array.from({ length: 40 }, (_, index) => `Bearer ${opened.at(index)}`));
    const sent = (): readonly string[] => receiver.requests.flatMap(({ field }) => field('authorization'));
    const count = await run();
    t.ok(count > 0 && count <= 40, `${String(count)} requests in a second`);
    t.same(
      sent().filter((value) => !known.has(value)),
      [],
    );
    await run(38);
    t.ok(new Set(sent()).size > Math.min(sent().length, 40) - 2, 'each another');
  });
}
