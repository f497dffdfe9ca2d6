/** Holds a snippet of docs/assertion.md to assertions that were received, and to all that are not right. */
import { spawnSync } from 'node:child_process';
import { createHmac, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readAssertionKeys, signAssertion, type AssertionKey } from '../../../src/adapters/assertion-signer.js';
import { assertionClaims, type AssertionRules } from '../../../src/decision/token/assertion.js';
import { principal } from '../../decision/samples.js';
import { projectDir } from '../../support/project-dir.js';
import { tempDir } from '../../support/temp-dir.js';
import { startProxyProcess } from '../../support/proxy-process.js';

export interface Snippet {
  /** As the block of the page calls it. */
  readonly language: string;
  /**
   * What the snippet is written to, with a program after it that reads a file of assertions and says of each what
   * holds.
   */
  readonly file: string;
  readonly driver: string;
  /** Each is run in the folder of the file; the last one is given the file of assertions. */
  readonly commands: readonly (readonly [string, ...string[]])[];
}

const docs = readFileSync(join(projectDir, 'docs/assertion.md'), 'utf8');
const keyFile = join(tempDir(t), 'assertion.pem');

function newPem(): string {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .privateKey.export({ format: 'pem', type: 'pkcs8' })
    .toString();
}

function keyOf(pem: string): AssertionKey {
  const keys = readAssertionKeys(pem);
  if (!keys.ok || keys.value[0] === undefined) throw new Error('no key');
  return keys.value[0];
}

const pem = newPem();
writeFileSync(keyFile, pem, { mode: 0o600 });
const proxy = await startProxyProcess(t, {
  config: { identity: { assertion: { key_file: keyFile, audience: 'orders' } } },
});
const target = '/orders?from=%2F&q="x"';
await proxy.request({ path: target, headers: proxy.authorization({ permissions: ['orders:read', 'a]b'] }) });
const [received] = proxy.receiver.requests[0]?.field('x-auth-assertion') ?? [];
if (received === undefined) throw new Error('no assertion was received');

const rules: AssertionRules = { issuer: 'sallyport', audience: 'orders', ttlS: 30, header: 'X-Auth-Assertion' };
const [key, stranger] = [keyOf(pem), keyOf(newPem())];
const nowMs = Date.now();
const claims = (change: Partial<AssertionRules> = {}, atMs = nowMs): ReturnType<typeof assertionClaims> =>
  assertionClaims(
    { principal: principal({ subject: 'a"b\\c' }), method: 'GET', target },
    { ...rules, ...change },
    atMs,
    'id',
  );
const signed = (over: ReturnType<typeof claims>, by = key): string => signAssertion(by, over);
const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
const [header = '', payload = '', signature = ''] = received.split('.');
const publicPem = createPublicKey(key.privateKey).export({ format: 'pem', type: 'spki' });
const hmacInput = `${encode({ alg: 'HS256', typ: 'JWT', kid: key.keyId })}.${payload}`;

interface Case {
  readonly name: string;
  readonly assertion: string;
  readonly method?: string;
  readonly target?: string;
  readonly holds?: true;
}

const cases: readonly Case[] = [
  { name: 'as it was received', assertion: received, holds: true },
  { name: 'signed here', assertion: signed(claims()), holds: true },
  { name: 'replayed to another path', assertion: received, target: '/orders/1?from=%2F&q="x"' },
  { name: 'replayed with another query', assertion: received, target: '/orders?from=%2F&q="y"' },
  { name: 'replayed without the query', assertion: received, target: '/orders' },
  { name: 'replayed with the query spelt otherwise', assertion: received, target: '/orders?from=%2f&q="x"' },
  { name: 'replayed with another method', assertion: received, method: 'DELETE' },
  { name: 'expired', assertion: signed(claims({}, nowMs - 3_600_000)) },
  { name: 'for another audience', assertion: signed(claims({ audience: 'billing' })) },
  { name: 'of another issuer', assertion: signed(claims({ issuer: 'somebody' })) },
  { name: 'forged with another key', assertion: signed(claims(), stranger) },
  { name: 'forged under the name of the key', assertion: signed(claims(), { ...stranger, keyId: key.keyId }) },
  { name: 'with other claims', assertion: `${header}.${encode({ ...claims(), sub: 'admin' })}.${signature}` },
  { name: 'without a signature', assertion: `${header}.${payload}.` },
  { name: 'alg none', assertion: `${encode({ alg: 'none', kid: key.keyId })}.${payload}.` },
  {
    name: 'HS256 with the public key',
    assertion: `${hmacInput}.${createHmac('sha256', publicPem).update(hmacInput).digest('base64url')}`,
  },
  { name: 'nothing', assertion: 'x' },
];

function textOf(language: string): string {
  const code = new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'm').exec(docs)?.[1];
  if (code === undefined) throw new Error(`docs/assertion.md has no ${language}`);
  return code.replace('http://127.0.0.1:9901/', `http://127.0.0.1:${String(proxy.adminPort)}/`);
}

/** In a folder from which packages of this project are found. */
function folder(t: Test): string {
  const dir = mkdtempSync(join(projectDir, '.build', 'snippets-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

export function checkSnippet(t: Test, { language, file, driver, commands }: Snippet): void {
  const cwd = folder(t);
  writeFileSync(join(cwd, file), textOf(language) + driver);
  writeFileSync(
    join(cwd, 'cases'),
    cases.map(({ assertion, method = 'GET', target: at = target }) => [assertion, method, at].join('\t')).join('\n'),
  );
  const runs = commands.map(([command, ...args], index) =>
    spawnSync(command, index === commands.length - 1 ? [...args, 'cases'] : args, { cwd, encoding: 'utf8' }),
  );
  for (const { status, stderr } of runs) t.equal(status, 0, stderr === '' ? 'it runs' : stderr);
  const lines = runs.at(-1)?.stdout.trim().split('\n') ?? [];
  t.equal(lines.length, cases.length);
  for (const [index, { name, holds }] of cases.entries()) {
    t.equal(lines[index], holds === true ? `holds ${index === 0 ? 'checkout' : 'a"b\\c'}` : 'refused', name);
  }
}
