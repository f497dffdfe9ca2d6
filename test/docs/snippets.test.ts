/** Every fenced block of README.md, CONTRIBUTING.md and docs/*.md is run, checked, or in a list that says why not. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse, stringify } from 'yaml';
import { readAssertionKeys } from '../../src/adapters/assertion-signer.js';
import { commandNames } from '../../src/cli/program.js';
import { validateConfig } from '../../src/config/load/validate-config.js';
import { accept } from '../../src/lib/result.js';
import { openStore, redisSettings } from '../adapters/redis/redis-store.js';
import { offeredOptions } from '../cli/whole-program.js';
import '../support/openssl.js';
import { projectDir } from '../support/project-dir.js';
import { startRedis } from '../support/redis-server.js';
import { sh } from '../support/sh.js';
import { tempDir } from '../support/temp-dir.js';
import { blockThatBegins, fencedBlocks, pages, type FencedBlock } from './fenced-blocks.js';
import { snippetTable, type SnippetRow } from './snippet-table.js';

type Tree = Readonly<Record<string, unknown>>;

function read(path: string): string {
  return readFileSync(join(projectDir, path), 'utf8');
}

/** The rows that say how a block is shown. */
function rowsOf({ page, text }: FencedBlock): readonly SnippetRow[] {
  return snippetTable.filter((row) => row.page === page && text.startsWith(row.begins));
}

const blocks = pages.flatMap(fencedBlocks);

t.test('every block has one row of the table, and every row its block', async (t) => {
  t.ok(blocks.length > 60, `${String(blocks.length)} blocks`);
  const free = blocks
    .filter((block) => rowsOf(block).length !== 1)
    .map(({ page, line, text }) => `${page}:${String(line)} ${text.split('\n')[0] ?? ''}`);
  t.same(free, [], 'new blocks need a row in test/docs/snippet-table.ts');
  t.same(
    snippetTable.filter((row) => blocks.filter((block) => rowsOf(block).includes(row)).length !== 1),
    [],
  );
});

t.test('tests that are named are there, and read the page', async (t) => {
  for (const { page, begins, shown } of snippetTable) {
    if ('test' in shown) {
      t.ok(
        existsSync(join(projectDir, shown.test)) && read(shown.test).includes(page),
        `${page} ${begins}: ${shown.test}`,
      );
    }
    const reasons = 'sample' in shown ? [shown.sample] : 'commands' in shown ? Object.values(shown.commands) : [];
    for (const [path] of reasons.join(' ').matchAll(/\b(?:test|docs)\/[\w./-]*[\w]/g)) {
      t.ok(existsSync(join(projectDir, path)), `${begins}: ${path}`);
    }
  }
});

/** Good for whatever a config asks a file for. */
const secret = 'a-key-of-more-than-20-characters';

const whole: Tree = {
  listen: { host: '127.0.0.1', port: 8080 },
  upstream: { url: 'http://127.0.0.1:3000' },
  store: { redis: { url: 'redis://127.0.0.1' } },
  issuers: {
    core: { issuer: 'https://api.example.com', audience: 'orders', source: 'microservice', token_type: 'service' },
  },
  sessions: { core_url: 'http://127.0.0.1:3567', api_key: secret, api_domain: 'https://api.example.com' },
};

/** What a shown route leaves out. */
function wholeRoute(route: Tree): Tree {
  const methods = 'idempotency' in route ? ['POST'] : ['GET'];
  const accept =
    'origins' in route ? { accept: ['service', 'session'], session: { claims: { 'st-role.v': 'support' } } } : {};
  const path = typeof route['name'] === 'string' ? `/${route['name']}` : '/shown';
  const place = 'grpc' in route ? {} : { methods, path };
  const callers = route['access'] === 'public' ? {} : { subjects: ['checkout'], permissions: ['orders:read'] };
  return { name: 'shown', ...place, ...callers, ...accept, ...route };
}

t.test('configs in part are right where they are put into a whole one', async (t) => {
  for (const block of blocks) {
    const [shown] = rowsOf(block).map((row) => row.shown);
    if (shown === undefined || !('config' in shown)) continue;
    const tree = parse(block.text) as Tree;
    const routes = shown.config === 'route' ? [tree] : ((tree['routes'] ?? [{}]) as readonly Tree[]);
    const text = stringify({ ...whole, ...(shown.config === 'keys' ? tree : {}), routes: routes.map(wholeRoute) });
    const { problems } = validateConfig(text, {
      file: 'sallyport.yaml',
      folder: '/',
      env: {},
      readFile: () => accept(secret),
    });
    t.same(
      problems.filter(({ severity, message }) => severity === 'error' || message.includes('idempotency')),
      [],
      `${block.page}:${String(block.line)}`,
    );
  }
});

/**
 * Commands of a block: one a line, those in `$ …` lines where there are any, without comments and what is fed to them.
 */
function commandsOf({ text }: FencedBlock): readonly string[] {
  const lines = text.replaceAll('\\\n', ' ').split('\n');
  const prompted = lines.filter((line) => line.startsWith('$ ')).map((line) => line.slice(2));
  return (prompted.length > 0 ? prompted : lines)
    .map((line) => line.replace(/(?:^|\s)#.*$/, '').trim())
    .filter((line) => line !== '')
    .flatMap((line) => line.split(/ && | \| /))
    .map((line) => line.replace(/^(?:[A-Z_]+=\S+ )+/, ''));
}

t.test(
  'commands are commands of the program, with options that it has; others are named with who knows them',
  async (t) => {
    const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Tree };
    for (const block of blocks) {
      const [shown] = rowsOf(block).map((row) => row.shown);
      if (shown === undefined || !('commands' in shown)) continue;
      const at = `${block.page}:${String(block.line)}`;
      const used = new Set<string>();
      for (const command of commandsOf(block)) {
        const words = command.replace(/^npx (?=sallyport)/, '').split(/\s+/);
        const [program = '', name = ''] = words;
        const options = words.filter((word) => word.startsWith('--')).map((word) => word.split('=')[0] ?? '');
        if (program === 'sallyport') {
          t.ok(commandNames.includes(name), `${at}: ${command}`);
          const offered = await offeredOptions(name);
          t.same(
            options.filter((option) => !offered.includes(option)),
            [],
            `${at}: ${command}`,
          );
        } else if (program === 'npm' && name === 'run') {
          t.ok(words[2] !== undefined && words[2] in scripts, `${at}: ${command}`);
        } else if (program === 'npm') t.match(name, /^(?:ci|test)$/, `${at}: ${command}`);
        else if (program === 'npx') t.ok(existsSync(join(projectDir, words.at(-1) ?? '')), `${at}: ${command}`);
        else used.add(program);
      }
      t.same([...used].sort(), Object.keys(shown.commands).sort(), `${at}: programs that are not ours`);
    }
  },
);

t.test('docs/assertion.md: the command that makes a key makes one that only its owner reads', async (t) => {
  const cwd = tempDir(t);
  const { status, stderr } = spawnSync(sh, ['-c', blockThatBegins('docs/assertion.md', 'openssl genpkey').text], {
    cwd,
    encoding: 'utf8',
  });
  t.equal(status, 0, stderr);
  t.equal(statSync(join(cwd, 'assertion.pem')).mode & 0o777, 0o600);
  t.match(readAssertionKeys(readFileSync(join(cwd, 'assertion.pem'), 'utf8')), { ok: true });
});

t.test('docs/storage.md: a server with the settings to start from is fit', async (t) => {
  const file = join(tempDir(t), 'redis.conf');
  writeFileSync(file, blockThatBegins('docs/storage.md', 'maxmemory').text);
  const server = await startRedis(t, [], {
    instead: (dir, port) => [file, '--port', String(port), '--bind', '127.0.0.1', '--dir', dir],
  });
  const { up } = openStore(t, redisSettings(server.port));
  await up();
  t.same(await server.client.config('GET', 'maxmemory'), ['maxmemory', String(2 * 1024 ** 3)]);
});
