/** The keys of nonces while proxies run: they are replaced in their file, and nobody is turned away for it. */
import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { localFiles } from '../../../src/adapters/files/files.js';
import { openProofs, readNonceKeyFile } from '../../../src/app/keys/proofs.js';
import type { CompiledConfig } from '../../../src/config/types.js';
import { nonceLifetimeMs } from '../../../src/decision/binding/nonce.js';
import { collectingLog } from '../../adapters/store-commands.js';
import { manualTime } from '../../adapters/manual-time.js';
import { makeProof, proofKey } from '../../support/dpop.js';
import { replaceFile } from '../../support/replace-file.js';
import { request } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { startInProcessProxy, type InProcessProxy } from '../in-process-proxy.js';

const newKey = (): string => randomBytes(32).toString('base64');

/** Puts a file with these keys in the place of the old one, at once. */
function write(path: string, ...keys: readonly string[]): void {
  replaceFile(path, `${keys.join('\n')}\n`, 0o600);
}

t.test('a key that is gone is taken for as long as what it made lives', async (t) => {
  const path = join(tempDir(t), 'nonces');
  const [one, two] = [newKey(), newKey()];
  write(path, one);
  const { clock, advance } = manualTime();
  const log = collectingLog();
  const dpop: CompiledConfig['listen']['dpop'] = {
    origins: new Set(['https://a.example']),
    maxAgeMs: 60_000,
    clockSkewMs: 5_000,
    nonceKeyFile: path,
  };
  const read = await readNonceKeyFile(dpop, localFiles);
  if (!read.ok) throw new Error(read.error.messages.join());
  const unused = {} as Parameters<typeof openProofs>[1];
  const proofs = openProofs(dpop, unused, read.value, { files: localFiles, clock, log, watchIntervalMs: 10 });
  t.teardown(() => proofs?.close());
  const nonce = (): string => proofs?.nonce?.() ?? '';
  const isTaken = (text: string): boolean => proofs?.keeper.isNonce?.(text) ?? false;
  const reloads = (): number => log.lines.filter((line) => line.includes('the keys of nonces were reloaded')).length;

  const first = nonce();
  t.ok(isTaken(first));
  writeFileSync(path, 'nothing of use');
  await until('it says so', () => log.lines.some((line) => line.includes('the old ones stay in use')));
  t.notOk(
    log.lines.some((line) => line.includes('nothing of use')),
    'and not what it holds',
  );
  t.equal(nonce(), first);

  chmodSync(path, 0o644);
  writeFileSync(path, `${two}\n`);
  await until('the new key', () => reloads() === 1);
  t.ok(log.lines.some((line) => line.includes('every user of this machine may read')));
  const second = nonce();
  t.not(second, first);
  t.ok(isTaken(first) && isTaken(second));
  advance(4 * 60_000);
  t.ok(isTaken(first), 'it lives on');
  advance(nonceLifetimeMs - 4 * 60_000);
  t.notOk(isTaken(first));

  write(path, one);
  await until('the old key once more', () => reloads() === 2);
  const third = nonce();
  write(path, two);
  await until('and back', () => reloads() === 3);
  write(path, two, one);
  await until('both', () => reloads() === 4);
  advance(60_000);
  t.ok(isTaken(third), 'what comes back is no key that is gone');
});

const origin = 'https://orders.example';
const own = proofKey();

interface Asked {
  readonly status: number;
  readonly nonce: string | null;
}

async function ask(proxy: InProcessProxy, nonce: string | null): Promise<Asked> {
  const token = proxy.token({ cnf: { jkt: own.thumbprint } });
  const claims = nonce === null ? {} : { nonce };
  const headers = {
    Authorization: `DPoP ${token}`,
    DPoP: makeProof(own, { uri: `${origin}/orders`, token, claims }),
  };
  const answer = await request(proxy.port, { path: '/orders', headers });
  return { status: answer.status, nonce: answer.field('dpop-nonce') };
}

async function startTwo(t: Scope, path: string): Promise<readonly [InProcessProxy, InProcessProxy]> {
  const start = async (): Promise<InProcessProxy> =>
    startInProcessProxy(t, {
      config: {
        listen: { dpop: { origins: [origin], nonce_key_file: path } },
        store: { memory: {} },
      },
    });
  return [await start(), await start()];
}

t.test('two proxies take a new file up without a restart, and nonces of the old one on', async (t) => {
  const path = join(tempDir(t), 'nonces');
  const [one, two] = [newKey(), newKey()];
  write(path, one);
  const both = await startTwo(t, path);
  const [a, b] = both;
  const reloaded = async (times: number): Promise<unknown> =>
    until('both have read it', () =>
      both.every(({ logs }) => logs().filter(({ msg }) => msg === 'the keys of nonces were reloaded').length === times),
    );
  const old = (await ask(a, null)).nonce;
  t.equal((await ask(b, old)).status, 200, 'they share the key');

  write(path, one, two);
  await reloaded(1);
  write(path, two, one);
  await reloaded(2);
  write(path, two);
  await reloaded(3);
  for (const proxy of both) t.equal((await ask(proxy, old)).status, 200, 'a nonce of the key that is gone');
  const { nonce } = await ask(a, null);
  t.not(nonce, old);
  t.equal((await ask(b, nonce)).status, 200, 'and one of the new key');
  t.equal((await ask(b, String(nonce).toLowerCase())).status, 401, 'and no other');
});
