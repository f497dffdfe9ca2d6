/**
 * docs/systemd.md and its unit: systemd takes it as it stands, and `serve` runs under the restrictions of it that need
 * no root.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse, stringify } from 'yaml';
import { validateConfig } from '../../src/config/load/validate-config.js';
import { accept, refuse } from '../../src/lib/result.js';
import { certificates } from '../support/certificates.js';
import { projectDir } from '../support/project-dir.js';
import { request } from '../support/raw-client.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import type { Scope } from '../support/scope.js';
import { startServe, type ServeProcess } from '../support/serve-process.js';
import { allowedCalls, analyze, restrictedBy, settingsOf } from '../support/systemd.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { blockThatBegins, fencedBlocks } from './fenced-blocks.js';

t.setTimeout(120_000);

const page = 'docs/systemd.md';
const folder = join(projectDir, 'docs/examples/systemd');
const text = readFileSync(join(projectDir, page), 'utf8');
const unit = readFileSync(join(folder, 'sallyport.service'), 'utf8');
/** With the programs of this machine. */
const unitHere = unit.replace(
  '/usr/bin/node /opt/sallyport/main.js',
  `${process.execPath} ${join(projectDir, 'dist/main.js')}`,
);
const dropIns = fencedBlocks(page)
  .filter(({ language }) => language === 'ini')
  .map((block) => block.text);

t.test('systemd takes the unit, and the unit with each drop-in of the page', async (t) => {
  t.same(analyze(t, 'verify', 'sallyport.service', unitHere), { code: 0, output: '' });
  t.equal(dropIns.length, 2);
  for (const dropIn of dropIns) {
    t.same(analyze(t, 'verify', 'sallyport.service', `${unitHere}\n${dropIn}`), { code: 0, output: '' });
  }
  t.match(
    analyze(t, 'verify', 'sallyport.service', unitHere.replace('NoNewPrivileges', 'NoNewPrivilege')).output,
    /Unknown key/,
    'a misspelt line is found',
  );
});

t.test('systemd-analyze finds no more exposure than the page says', async (t) => {
  const { output } = analyze(t, 'security', 'sallyport.service', unitHere);
  const [, level = ''] = /Overall exposure level for sallyport\.service: ([\d.]+)/.exec(output) ?? [];
  const [, documented = ''] = /`systemd-analyze security sallyport` says ([\d.]+)/.exec(text) ?? [];
  t.ok(Number(level) > 0 && Number(level) <= Number(documented), `${level}; the page says ${documented}`);
  for (const [key] of text.matchAll(
    /`(?:Restrict|Protect|Private|SystemCall|NoNew|Capability|Lock|Proc)[A-Za-z]+=`/g,
  )) {
    t.ok(settingsOf(unit, key.slice(1, -2)).length > 0, `${key} is a line of the unit`);
  }
});

t.test(
  'a stop has the time that the config takes, and there are as many files and as much memory as docs/performance.md asks for',
  async (t) => {
    const config = validateConfig(shownConfig(), {
      file: 'sallyport.yaml',
      folder: '/',
      env: { CREDENTIALS_DIRECTORY: '/run' },
      readFile: () => refuse('none'),
    });
    t.same(config.problems, [], 'the config of the page');
    const { delayMs = 0, graceMs = 0 } = config.config?.shutdown ?? {};
    t.ok(delayMs > 0 && Number(settingsOf(unit, 'TimeoutStopSec')[0]) * 1000 > delayMs + graceMs);
    const capacity = readFileSync(join(projectDir, 'docs/performance.md'), 'utf8');
    t.match(capacity, `| open files | ${settingsOf(unit, 'LimitNOFILE')[0] ?? ''} |`);
    t.match(capacity, `\`${settingsOf(unit, 'MemoryMax')[0] ?? ''}i\``, 'what the chart gives it, too');
  },
);

t.test('the user of the unit is the one that sysusers makes', async (t) => {
  const [, user] = /^u (\S+) - "[^"]+" - -$/m.exec(readFileSync(join(folder, 'sallyport.conf'), 'utf8')) ?? [];
  t.same([settingsOf(unit, 'User'), settingsOf(unit, 'Group')], [[user], [user]]);
  t.match(text, `-o ${user ?? ''} tls.key`, 'and the one that may read the key');
});

function shownConfig(): string {
  return blockThatBegins(page, '# /etc/sallyport/sallyport.yaml').text;
}

/**
 * What `LoadCredential=` and the commands of the page would leave, in a folder; and the config of the page with that in
 * it.
 */
async function machine(t: Scope): Promise<{ readonly config: string; readonly env: Readonly<Record<string, string>> }> {
  const dir = tempDir(t);
  const { certFile, keyFile } = certificates(t).server;
  for (const name of ['etc', 'credentials']) mkdirSync(join(dir, name));
  cpSync(certFile, join(dir, 'etc/tls.crt'));
  cpSync(keyFile, join(dir, 'credentials/tls.key'));
  writeFileSync(join(dir, 'credentials/address'), `${(await startUpstreamServer(t)).url}\n`);
  const { listen } = parse(shownConfig()) as { readonly listen: { readonly tls: object } };
  const config = join(dir, 'etc/sallyport.yaml');
  writeFileSync(
    config,
    stringify({
      listen: {
        ...listen,
        host: '127.0.0.1',
        port: 0,
        tls: { cert_file: join(dir, 'etc/tls.crt'), key_file: '${env:CREDENTIALS_DIRECTORY}/tls.key' },
      },
      admin: { port: 0 },
      upstream: { url: `\${file:${join(dir, 'credentials/address')}}` },
      shutdown: { delay: '0s' },
      routes: [{ name: 'home', methods: ['GET'], path: '/', access: 'public' }],
    }),
  );
  return { config, env: { CREDENTIALS_DIRECTORY: join(dir, 'credentials') } };
}

async function startRestricted(t: Scope, calls?: readonly string[]): Promise<ServeProcess> {
  const { config, env } = await machine(t);
  return startServe(t, config, { env, under: restrictedBy(unit, calls) });
}

t.test(
  'serve runs under the system calls, sockets and rights of the unit, with secrets of LoadCredential=: start, TLS, a request, reload, stop',
  async (t) => {
    const serve = await startRestricted(t);
    const port = await serve.port('proxy');
    const status = readFileSync(`/proc/${String(serve.pid)}/status`, 'utf8');
    t.match(status, /^NoNewPrivs:\t1$/m);
    t.match(status, /^Seccomp:\t2$/m, 'a filter is in force');
    const answer = await request(
      port,
      { path: '/', headers: { Host: 'orders' } },
      { tls: { rejectUnauthorized: false } },
    );
    t.equal(answer.status, 200);
    t.same(settingsOf(unit, 'ExecReload'), ['/bin/kill -HUP $MAINPID']);
    serve.signal('SIGHUP');
    await until('the config was read again', () =>
      serve.logs().find(({ msg }) => String(msg).startsWith('the config was reloaded')),
    );
    t.same(await serve.stop(), { code: 0, signal: null });
  },
);

t.test('the restrictions are in force: with fewer system calls it cannot listen', async (t) => {
  const serve = await startRestricted(
    t,
    allowedCalls(unit).filter((name) => name !== 'listen'),
  );
  t.not((await serve.exited).code, 0);
  t.match(serve.output(), 'EPERM');
});

t.test('check finds the secrets by the variable, as the page has it', async (t) => {
  const line = blockThatBegins(page, 'sudo CREDENTIALS_DIRECTORY=').text;
  t.match(
    line,
    /CREDENTIALS_DIRECTORY=\/etc\/sallyport\/secrets node \/opt\/sallyport\/main\.js check \/etc\/sallyport\/sallyport\.yaml/,
  );
  const readFile = (): ReturnType<typeof accept<string>> => accept('secret');
  const problems = (env: Readonly<Record<string, string>>): number =>
    validateConfig(shownConfig(), { file: 'sallyport.yaml', folder: '/', env, readFile }).problems.filter(
      ({ severity }) => severity === 'error',
    ).length;
  t.same([problems({}), problems({ CREDENTIALS_DIRECTORY: '/etc/sallyport/secrets' })], [1, 0]);
});
