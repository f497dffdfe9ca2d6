import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { commandNames, run } from '../src/cli/program.js';
import { inspectConfig } from '../src/config/inspect.js';
import { refuse } from '../src/decision/result.js';
import { captureIo } from './cli/captured-io.js';
import { offeredOptions } from './cli/whole-program.js';
import { projectDir } from './support/project-dir.js';
import { tempDir } from './support/temp-dir.js';

function read(path: string): string {
  return readFileSync(join(projectDir, path), 'utf8');
}

const readme = read('README.md');

interface Package {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(read('package.json')) as Package;

/** The text between one heading of level 2 and the next. */
function section(heading: string): string {
  return readme.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
}

/** Fenced blocks of a language. */
function blocks(text: string, language: string): readonly string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(([, content = '']) => content);
}

function codeSpans(text: string): readonly string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, content = '']) => content);
}

const configs = blocks(readme, 'yaml').filter((block) => /^routes:/m.test(block));

t.test('the commands that are listed are commands, with options that they have', async (t) => {
  const rows = section('Commands').split('\n').filter((line) => line.startsWith('| `sallyport '));
  const named = rows.map((row) => /^\| `sallyport ([a-z]+)/.exec(row)?.[1]);
  t.not(rows.length, 0);
  t.same(named.filter((name) => !commandNames.includes(name ?? '')), [], 'docs/cli.md has all of them');
  for (const row of rows) {
    const [usage = ''] = codeSpans(row);
    const name = usage.split(' ')[1] ?? '';
    const offered = await offeredOptions(name);
    t.same((usage.match(/--[a-z-]+/g) ?? []).filter((option) => !offered.includes(option)), [], `options of ${name}`);
  }
});

t.test('the configs shown pass check --strict', async (t) => {
  t.ok(configs.length > 0);
  for (const text of configs) {
    const file = join(tempDir(t), 'sallyport.yaml');
    writeFileSync(file, text);
    const io = captureIo();
    await run(['check', '--strict', file], io);
    t.equal(io.code(), 0, io.out());
    t.equal(io.out(), '');
  }
});

t.test('the two lines, and the scripts named, exist', async (t) => {
  t.ok(readme.includes('npm ci && npx sallyport dev'));
  const [, line = ''] = /^(npm ci && npm test .*?) +#/m.exec(readme) ?? [];
  t.equal(line, 'npm ci && npm test -- --install');
  t.ok(read('.ci/run').endsWith(`\n${line}\n`), 'the one who checks runs it too');
  for (const [, script = ''] of readme.matchAll(/\bnpm run ([a-z]+)/g)) t.ok(manifest.scripts[script], script);
});

t.test('the dependencies listed are those there are', async (t) => {
  const [table = '', development = ''] = section('Dependencies').split('\nFor development:');
  const rows = table.split('\n').filter((line) => line.startsWith('| `')).map((line) => line.split('|')[1] ?? '');
  t.same(rows.flatMap(codeSpans).sort(), Object.keys(manifest.dependencies).sort());
  t.same([...codeSpans(development)].sort(), Object.keys(manifest.devDependencies).sort());
});

t.test('links lead somewhere', async (t) => {
  const docs = readdirSync(join(projectDir, 'docs')).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`);
  const pages = ['README.md', 'CHANGELOG.md', 'SECURITY.md', ...docs];
  for (const page of pages) {
    for (const [, link = ''] of read(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (link.startsWith('https:')) continue;
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : join(dirname(page), path);
      t.ok(existsSync(join(projectDir, target)), `${page}: ${link}`);
      if (anchor !== undefined) t.ok(anchorsOf(read(target)).includes(anchor), `${page}: ${link}`);
    }
  }
});

/** What a heading is called in a link. */
function anchorsOf(text: string): readonly string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) => title.toLowerCase().replace(/[^a-z0-9 -]/g, '').replaceAll(' ', '-'));
}

t.test('the defaults named are those of the config', async (t) => {
  const { config } = inspectConfig(configs[0] ?? '', { file: 'README.md', env: {}, readFile: () => refuse('is not read here') });
  if (config === null) throw new Error('the config of the README has an error');
  const { listen, upstream, issuers: [issuer], shutdown, routes: [route] } = config;
  if (issuer === undefined || route === undefined) throw new Error('the config of the README has no issuer or no route');
  const { rules, keys } = issuer;
  const kib = (bytes: number): string => (bytes >= 1024 * 1024 ? `${bytes / 1024 / 1024} MiB` : `${bytes / 1024} KiB`);
  const s = (ms: number): string => (ms >= 3_600_000 ? `${ms / 3_600_000} h` : ms >= 600_000 ? `${ms / 60_000} min` : `${ms / 1000} s`);
  const reserving = inspectConfig(`${configs[0] ?? ''}store: { redis: { url: "redis://127.0.0.1" } }\n`.replace('idempotency: none', 'idempotency: required'), {
    file: 'README.md', env: {}, readFile: () => refuse('is not read here'),
  }).config;
  const reservation = reserving?.routes.find((candidate) => candidate.reservation !== null)?.reservation ?? null;
  if (reserving?.store?.kind !== 'redis' || reservation === null) throw new Error('the config of the README has no route that could reserve');
  const expected = [
    ['header section, target', `${kib(listen.maxHeaderBytes)}, ${kib(listen.maxTargetBytes)}`],
    ['time for the header section; pause within a body', `${s(listen.headerTimeoutMs)}; ${s(listen.bodyIdleTimeoutMs)}`],
    ['body of a request, by route', kib(route.maxBodyBytes)],
    ['requests in flight', String(listen.maxInFlight)],
    ['WebSocket connections; silence on one', `${listen.maxWebSockets}; ${listen.webSocketIdleTimeoutMs / 60_000} min`],
    [
      'connecting to the service; its response head; pause within its answer',
      `${s(upstream.connectTimeoutMs)}; ${s(route.responseTimeoutMs)}; ${s(upstream.idleTimeoutMs)}`,
    ],
    ['connections to the service', String(upstream.maxConnections)],
    ['clock skew; longest token life', `${rules.clockSkewS} s; ${rules.maxLifetimeS / 3600} h`],
    ['memory for verified tokens that come again', `${(config.tokenCacheBytes ?? 0) / 1024 ** 2} MiB`],
    ['key ids accepted', `\`${rules.keyIds.accept.join(' ')}\`: dynamic keys only`],
    [
      'keys: lifetime from `Cache-Control`, within; served while the issuer is away; refetch for an unknown `kid`',
      `${s(keys.minAgeMs)} to ${s(keys.maxAgeMs)}; ${s(keys.maxStaleMs)} more; once per ${s(keys.cooldownMs)}`,
    ],
    ['keys: time for a fetch, size of the answer', `${s(keys.timeoutMs)}, ${kib(keys.maxBytes)}`],
    [
      'a key and its result; a result that is kept; a reserved request',
      `${s(reservation.retentionMs)}; ${kib(reservation.maxStoredResponseBytes)}; ${kib(reservation.maxBodyBytes)}`,
    ],
    ['statuses that free a key', [...reservation.releaseOn].join(' ')],
    ['Redis: a reservation; a settlement', `${reserving.store.reserveTimeoutMs} ms; ${s(reserving.store.settleTimeoutMs)}`],
    ['shutdown: wait for load balancers; for requests in flight', `${s(shutdown.delayMs)}; ${s(shutdown.graceMs)}`],
  ];
  const rows = section('Defaults and fixed limits').split('\n| limit | default |')[1]?.split('\n\n')[0]?.split('\n').slice(2) ?? [];
  t.same(rows.map((row) => row.split('|').slice(1, 3).map((cell) => cell.trim())), expected);
});
