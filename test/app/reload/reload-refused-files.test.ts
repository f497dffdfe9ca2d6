/** A config that is refused for a file that it names is tried again when that file becomes another. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { replaceFile } from '../../support/replace-file.js';
import type { LogLine } from '../../support/serve-process.js';
import { until } from '../../support/until.js';
import { tempDir } from '../../support/temp-dir.js';
import { startInProcessProxy, type InProcessProxy } from '../in-process-proxy.js';

/** The only route, open to one subject. */
function only(subject: string): { routes: readonly object[] } {
  return { routes: [{ name: 'orders', methods: ['GET'], path: '/orders', subjects: [subject], permissions: [] }] };
}

const changedWords = 'a file that the config names has changed';

/** Long enough for some looks at the files. */
const someLooksMs = 300;

function failures({ app }: InProcessProxy): number {
  return app.status().counts.config_reloads.failed;
}

/** How often a change of this file was a reason to try again. */
function changesSeen(proxy: InProcessProxy, file: string): number {
  const isOf = ({ msg, file: changed }: LogLine): boolean => msg === changedWords && changed === file;
  return proxy.logs().filter(isOf).length;
}

t.test('a config that comes before the file of its placeholder is taken when the file is there', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  const file = join(dirname(proxy.configFile), 'secrets', 'subject');
  proxy.rewrite(only(`\${file:${file}}`));
  await until('it is refused', () => proxy.app.status().config.last_reload_error !== null);
  const error = proxy.app.status().config.last_reload_error;
  t.match(error?.problems.join(), /secrets\/subject/);
  await delay(someLooksMs);
  t.equal(failures(proxy), 1, 'no more often than that');
  mkdirSync(dirname(file));
  replaceFile(file, 'reporting');
  await until('the new policy', async () => (await proxy.request({ path: '/orders' })).status === 403);
  t.equal((await proxy.request({ path: '/orders' }, { sub: 'reporting' })).status, 200);
  await until('the error is gone', () => proxy.app.status().config.last_reload_error === null);
  replaceFile(file, 'checkout');
  await until('it is watched as ever', async () => (await proxy.request({ path: '/orders' })).status === 200);
  t.equal(failures(proxy), 1);
});

t.test('a file that is still wrong is no other failure, and one that is wrong in another way is', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  const file = join(dirname(proxy.configFile), 'ca.pem');
  const { ca } = certificates(t);
  const good = readFileSync(ca.certFile, 'utf8');
  proxy.rewrite({ ...only('reporting'), upstream: { url: 'https://127.0.0.1:9', ca_file: file } });
  await until('it is refused', () => failures(proxy) === 1);
  const first = proxy.app.status().config.last_reload_error;
  writeFileSync(file, 'nothing yet');
  await until('another failure', () => failures(proxy) === 2);
  const second = proxy.app.status().config.last_reload_error;
  t.not(second?.problems.join(), first?.problems.join());
  const told = (): number => proxy.logs().filter(({ level }) => level === 'error').length;
  const before = told();
  for (const text of ['nothing still', 'nothing at all']) {
    const changes = changesSeen(proxy, file);
    writeFileSync(file, text);
    await until('it is tried again', () => changesSeen(proxy, file) === changes + 1);
    await delay(someLooksMs);
  }
  t.same([failures(proxy), told(), proxy.app.status().config.last_reload_error], [2, before, second]);
  await proxy.app.reload();
  t.equal(failures(proxy), 3, 'whoever asks is answered');
  replaceFile(file, good);
  await until('it is taken', () => proxy.app.status().config.last_reload_error === null);
  t.equal((await proxy.request({ path: '/orders' })).status, 403);
});

t.test('an edit that fails with the same words is another failure, also where a changed file finds it', async (t) => {
  const reload = { least_age: '1s' };
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  const file = join(dirname(proxy.configFile), 'ca.pem');
  const edit = (subject: string): void => {
    proxy.rewrite({ ...only(subject), reload, upstream: { url: 'https://127.0.0.1:9', ca_file: file } });
  };
  proxy.rewrite({ ...only('checkout'), reload });
  await until('the config in force has changes wait', () => proxy.app.status().counts.config_reloads.ok === 1);
  writeFileSync(file, 'nothing yet');
  edit('reporting');
  await until('it is refused', () => failures(proxy) === 1);
  const first = proxy.app.status().config.last_reload_error?.problems;
  writeFileSync(file, 'nothing still');
  await delay(500);
  edit('invoicing');
  await until('the change of the file counts', () => changesSeen(proxy, file) === 1);
  await until('the edit is refused', () => failures(proxy) === 2);
  t.same(proxy.app.status().config.last_reload_error?.problems, first);
  t.equal(proxy.logs().filter(({ level }) => level === 'error').length, 2);
});

t.test('a file of the config in force that changes while an edit is refused is told of', async (t) => {
  const { ca, renewed } = certificates(t);
  const folder = tempDir(t);
  const [caFile, missing] = [join(folder, 'ca.pem'), join(folder, 'subject')];
  replaceFile(caFile, readFileSync(ca.certFile, 'utf8'));
  const upstream = { url: 'https://127.0.0.1:9', ca_file: caFile };
  const proxy = await startInProcessProxy(t, { config: { ...only('checkout'), upstream } });
  proxy.rewrite({ ...only(`\${file:${missing}}`), upstream });
  await until('it is refused', () => failures(proxy) === 1);
  const warnings = (): readonly LogLine[] =>
    proxy.logs().filter(({ msg }) => /^files of the config in/.test(String(msg)));
  replaceFile(caFile, renewed.cert);
  await until('it is told', () => warnings().length === 1);
  t.match(warnings(), [{ level: 'warn', files: [caFile] }]);
  t.equal(failures(proxy), 1);
  mkdirSync(missing);
  await until('the other one is another failure', () => failures(proxy) === 2);
  t.equal(warnings().length, 1, 'it is of no config in force');
});

t.test('files of a config that was given up are watched no more', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  const good = readFileSync(proxy.configFile, 'utf8');
  const file = join(dirname(proxy.configFile), 'subject');
  proxy.rewrite(only(`\${file:${file}}`));
  await until('it is refused', () => failures(proxy) === 1);
  replaceFile(proxy.configFile, good);
  await until('it is taken back', () => proxy.app.status().config.last_reload_error === null);
  const { ok } = proxy.app.status().counts.config_reloads;
  replaceFile(file, 'reporting');
  await delay(someLooksMs);
  t.equal(proxy.app.status().counts.config_reloads.ok, ok);
});

t.test('a file that may be too large for what it is named for is not read without end', async (t) => {
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  const file = join(dirname(proxy.configFile), 'subject');
  writeFileSync(file, 'x'.repeat(100_000));
  proxy.rewrite(only(`\${file:${file}}`));
  await until('it is refused', () => failures(proxy) === 1);
  await delay(someLooksMs);
  t.notOk(proxy.logs().some(({ msg }) => /has changed/.test(String(msg))));
  renameSync(file, `${file}.large`);
  replaceFile(file, 'reporting');
  await until('it is taken', () => proxy.app.status().config.last_reload_error === null);
});

t.test('a certificate and its key that are read halfway are read again', async (t) => {
  const { server, renewed } = certificates(t);
  const proxy = await startInProcessProxy(t, { config: only('checkout') });
  const folder = dirname(proxy.configFile);
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(certFile, server.cert);
  writeFileSync(keyFile, renewed.key, { mode: 0o600 });
  proxy.rewrite({
    ...only('reporting'),
    issuers: {
      idp: {
        issuer: 'https://idp.example.com',
        profile: 'oauth',
        audience: 'orders',
        jwks_url: proxy.jwks.url,
        claims: { subject: 'client_id' },
        introspection: {
          url: 'https://core.example.com/introspect',
          client_id: 'orders',
          client_auth: 'tls_client_auth',
          cert_file: certFile,
          key_file: keyFile,
        },
      },
    },
  });
  await until('it is refused', () => failures(proxy) === 1);
  t.match(proxy.app.status().config.last_reload_error?.problems.join(), /key\.pem/);
  rmSync(keyFile);
  writeFileSync(keyFile, server.key, { mode: 0o600 });
  await until('it is taken', () => proxy.app.status().config.last_reload_error === null);
});
