/** The path of docs/shadow.md from shadow to enforce, walked as it is written, with its own lines. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { stringify } from 'yaml';
import { startCommand } from '../cli/started-command.js';
import '../support/jq.js';
import { projectDir } from '../support/project-dir.js';
import type { RawResponse } from '../support/raw-client.js';
import { sh } from '../support/sh.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';

const page = readFileSync(join(projectDir, 'docs/shadow.md'), 'utf8');

/** What the line of the page prints of a request, and how often. */
interface Seen {
  readonly count: number;
  readonly method: string;
  readonly path: string;
  readonly route: string;
  readonly reason: string;
  readonly subject: string | null;
  readonly permissions: readonly string[] | null;
  readonly missing: readonly string[] | null;
}

interface Route extends ConfigTree {
  readonly name: string;
  readonly methods: readonly string[];
  readonly path: string;
  readonly access?: 'public';
  readonly subjects?: readonly string[];
  readonly permissions?: readonly string[];
}

const unreserved = { mode: 'none', because: 'its callers send no key yet' };

/** The block of the page in this language, its indentation taken off. */
function block(language: string): string {
  const [, indent = '', text = ''] = new RegExp(`^( *)\`\`\`${language}\\n([^]*?)^ *\`\`\``, 'm').exec(page) ?? [];
  return text.replace(new RegExp(`^${indent}`, 'gm'), '');
}

interface Ended {
  readonly code: number | null;
  readonly out: string;
}

/** Runs a command while the servers of this process answer. */
async function sallyport(...args: readonly string[]): Promise<Ended> {
  const command = startCommand(t, args);
  const { code } = await command.exited;
  return { code, out: command.stdout() };
}

/** Runs the line of the page over the log. */
function readLog(proxy: ProxyProcess): readonly Seen[] {
  const line = block('sh');
  const dir = tempDir(t);
  const log = proxy.process
    .output()
    .split('\n')
    .filter((text) => text.startsWith('{'))
    .join('\n');
  writeFileSync(join(dir, 'sallyport.log'), `${log}\n`);
  const printed = spawnSync(sh, ['-c', line], { cwd: dir, encoding: 'utf8' });
  const counted = countsOf(printed.stdout);
  t.same(counted, countsOf(filtered(line, log)), 'jq and this test read the line alike');
  return counted.map(
    ([count, [method, path, route, reason, subject, permissions, missing]]) =>
      ({ count, method, path, route, reason, subject, permissions, missing }) as Seen,
  );
}

/** What `jq … | sort | uniq -c | sort -rn` prints. */
function filtered(line: string, log: string): string {
  const names = [...(/\| \[(.*?)\]'/.exec(line)?.[1]?.matchAll(/\.(\w+)/g) ?? [])].map(([, name = '']) => name);
  const rows = log
    .split('\n')
    .map((text) => JSON.parse(text) as Record<string, unknown>)
    .filter(({ decision }) => decision === 'shadow')
    .map((fields) => JSON.stringify(names.map((name) => fields[name] ?? null)));
  return [...new Set(rows)].map((row) => `${String(rows.filter((other) => other === row).length)} ${row}`).join('\n');
}

function countsOf(text: string): readonly (readonly [number, readonly unknown[]])[] {
  const rows = [...text.matchAll(/^ *(\d+) (\[.*\])$/gm)].map(
    ([, count, row = '']) => [Number(count), JSON.parse(row) as unknown[]] as const,
  );
  return rows.sort((one, other) => JSON.stringify(one[1]).localeCompare(JSON.stringify(other[1])));
}

/** Writes the policy by the table of the page. What has to be done to a caller's token goes to `grants`. */
function write(
  routes: readonly Route[],
  seen: readonly Seen[],
  grants: Map<string, readonly string[]>,
): readonly Route[] {
  const written = [...routes];
  for (const { method, path, route, reason, subject, permissions, missing } of seen) {
    const at = written.findIndex(({ name, methods, path: known }) =>
      route === 'none' ? methods.includes(method) && known === path : name === route,
    );
    const found = written[at];
    if (route === 'none' && found === undefined) {
      const idempotency = method === 'POST' ? { idempotency: unreserved } : {};
      const caller =
        subject === null ? { access: 'public' as const } : { subjects: [subject], permissions: permissions ?? [] };
      written.push({
        name: `${method.toLowerCase()}${path.replaceAll('/', '-')}`,
        methods: [method],
        path,
        ...caller,
        ...idempotency,
      });
    } else if (found !== undefined && subject !== null && (reason === 'subject_not_approved' || route === 'none')) {
      written[at] = { ...found, subjects: [...(found.subjects ?? []), subject] };
    } else if (reason === 'permission_missing' && subject !== null) grants.set(subject, missing ?? []);
  }
  return written;
}

t.test(
  'shadow, read, check, enforce: the policy is written from what is seen, its callers get through, and strangers do not',
  async (t) => {
    const known: readonly Route[] = [
      { name: 'list-orders', methods: ['GET'], path: '/orders', subjects: ['reporting'], permissions: ['orders:read'] },
      {
        name: 'create-order',
        methods: ['POST'],
        path: '/orders',
        subjects: ['checkout'],
        permissions: ['orders:write'],
        idempotency: unreserved,
      },
    ];
    const proxy = await startProxyProcess(t, { config: { mode: 'shadow', routes: known } });
    const grants = new Map<string, readonly string[]>();
    const as = (sub: string, permissions: readonly string[]) =>
      proxy.authorization({ sub, permissions: [...permissions, ...(grants.get(sub) ?? [])] });
    const traffic = (): readonly {
      readonly name: string;
      readonly method?: string;
      readonly path: string;
      readonly headers: Record<string, string>;
    }[] => [
      { name: 'approved', path: '/orders', headers: as('reporting', ['orders:read']) },
      { name: 'not approved', path: '/orders', headers: as('checkout', ['orders:read', 'orders:write']) },
      { name: 'without the permission', method: 'POST', path: '/orders', headers: as('checkout', ['orders:read']) },
      { name: 'no route', path: '/invoices', headers: as('billing', ['invoices:read']) },
      { name: 'no route, another one', path: '/invoices', headers: as('reporting', ['invoices:read']) },
      { name: 'a monitor without a token', path: '/healthz', headers: {} },
      { name: 'the monitor again', path: '/healthz', headers: {} },
    ];
    const send = async (): Promise<RawResponse[]> =>
      Promise.all(traffic().map(async ({ name: _name, ...input }) => proxy.request(input)));
    const identities = (): readonly (readonly string[])[] =>
      proxy.receiver.requests.slice(-traffic().length).map((one) => one.field('x-auth-subject'));

    // 1. Shadow.
    const doctor = await sallyport('doctor', '--config', proxy.configFile);
    t.equal(doctor.code, 0, doctor.out);
    t.ok(
      (await send()).every(({ status }) => status === 200),
      'nobody is refused',
    );
    t.equal(
      identities().filter((subjects) => subjects.length > 0).length,
      1,
      'and only who is approved has an identity',
    );

    // 2. Read.
    const all = await until('all lines are written', () => {
      const lines = readLog(proxy);
      return lines.reduce((sum, { count }) => sum + count, 0) === 6 ? lines : null;
    });
    for (const { route, reason } of all) {
      const same = all
        .filter((other) => other.route === route && other.reason === reason)
        .reduce((sum, { count }) => sum + count, 0);
      t.equal(
        await proxy.metric(`sallyport_shadow_denials_total{route="${route}",reason="${reason}"}`),
        same,
        `${route} ${reason}`,
      );
      t.ok(
        page.includes(`\`${reason}\``) || (route === 'none' && page.includes('`route` is `none`')),
        `the page says what to write of ${reason}`,
      );
    }
    t.match(
      all.find(({ reason }) => reason === 'permission_missing'),
      { subject: 'checkout', permissions: ['orders:read'], missing: ['orders:write'] },
    );
    const routes = write(known, all, grants);
    t.same(routes.map(({ name }) => name).sort(), ['create-order', 'get-healthz', 'get-invoices', 'list-orders']);

    // 3. Check.
    const wished = join(dirname(proxy.configFile), 'wished.yaml');
    const place = { upstream: { url: proxy.receiver.url } };
    const check = async (config: ConfigTree): Promise<Ended> => {
      proxy.rewrite({ ...place, ...config });
      writeFileSync(wished, readFileSync(proxy.configFile));
      return sallyport('check', wished);
    };
    const inShadow = await check({ mode: 'shadow', routes });
    t.equal(inShadow.code, 0, inShadow.out);
    t.match(
      inShadow.out.split('\n').filter((line) => /: (?:error|warning): /.test(line)),
      [/warning: mode is shadow/],
    );
    await until('the reload', async () => (await proxy.metric('sallyport_config_reloads_total{result="ok"}')) === 1);
    const before = readLog(proxy);
    t.ok((await send()).every(({ status }) => status === 200));
    t.same(
      identities().flat().sort(),
      ['billing', 'checkout', 'checkout', 'reporting', 'reporting'],
      'all but the monitor have an identity now',
    );
    t.same(readLog(proxy), before, 'the counters are at a standstill');

    // 4. Enforce.
    const enforced = await check({ routes });
    t.same([enforced.code, enforced.out], [0, '']);
    await until('the reload', async () => (await proxy.metric('sallyport_config_reloads_total{result="ok"}')) === 2);
    t.ok(
      (await send()).every(({ status }) => status === 200),
      'every caller gets through',
    );
    const reached = proxy.receiver.requests.length;
    const stranger = as('stranger', ['orders:read', 'orders:write', 'invoices:read']);
    for (const path of ['/orders', '/invoices', '/elsewhere']) {
      t.equal((await proxy.request({ path, headers: stranger })).status, 403, `${path} for a stranger`);
      t.equal((await proxy.request({ path })).status, 401, `${path} for nobody`);
    }
    t.equal(proxy.receiver.requests.length, reached, 'nothing of theirs reached the receiver');
    t.same(await proxy.exposures(), []);
  },
);

t.test('the example of the page is a config, with its one route enforced', async (t) => {
  const example = block('yaml');
  t.match(example, /^mode: shadow[^]*^ {4}mode: enforce/m);
  const file = join(tempDir(t), 'example.yaml');
  const rest = stringify({
    listen: { host: '127.0.0.1', port: 8080 },
    admin: { host: '127.0.0.1', port: 9901 },
    upstream: { url: 'http://127.0.0.1:3000' },
    issuers: {
      core: { issuer: 'https://api.example.com', audience: 'orders', source: 'microservice', token_type: 'service' },
    },
  });
  writeFileSync(
    file,
    `${rest}${example}    methods: [GET]\n    path: /orders\n    subjects: [checkout]\n    permissions: [orders:read]\n`,
  );
  const checked = await sallyport('check', file);
  t.equal(checked.code, 0, checked.out);
});
