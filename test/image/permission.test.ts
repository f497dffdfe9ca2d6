/** The permission model that docs/image.md tells to use leaves `serve` all that it needs, and little else. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { env } from '../support/sh.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';

const page = readFileSync(join(projectDir, 'docs/image.md'), 'utf8');
const [, shown = ''] = /^NODE_OPTIONS="(.*)"$/m.exec(page) ?? [];

/**
 * The options shown, with the folders of this machine in the place of the image's. Before Node 24 the model had another
 * name.
 */
function optionsFor(app: readonly string[], config: string): string {
  const words = shown.split(' ').flatMap((word) => {
    if (word.endsWith('=/app')) return app.map((path) => `--allow-fs-read=${path}`);
    return [word.replace(/=\/etc\/sallyport$/, `=${config}`)];
  });
  const options = words.join(' ');
  return Number(process.versions.node.split('.')[0]) < 24
    ? options.replace('--permission', '--experimental-permission')
    : options;
}

/** Programs without what coverage puts into each child, which needs more than the model leaves. */
function bare(options: string, program: readonly string[]): readonly [string, readonly string[]] {
  return [env, ['-i', `PATH=${process.env['PATH'] ?? ''}`, `NODE_OPTIONS=${options}`, process.execPath, ...program]];
}

const app = ['dist', 'node_modules', 'package.json'].map((name) => join(projectDir, name));

t.test('serve decides, reloads and counts under the permission model', async (t) => {
  const dir = tempDir(t);
  t.match(shown, /^--permission /);
  // The proxy's config is in a folder of its own, whose name is known once it is there.
  const [command, args] = bare(optionsFor(app, dirname(dir)), [join(projectDir, 'dist/main.js')]);
  const main = join(dir, 'serve.mjs');
  writeFileSync(
    main,
    `
    import { spawn } from 'node:child_process';
    const child = spawn(${JSON.stringify(command)}, [...${JSON.stringify(args)}, ...process.argv.slice(2)], { stdio: 'inherit' });
    for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
    child.on('exit', (code) => process.exit(code ?? 1));`,
  );
  const proxy = await startProxyProcess(t, { main });
  t.equal((await proxy.request({ path: '/orders', headers: proxy.authorization() })).status, 200);
  t.equal((await proxy.request({ path: '/orders' })).status, 401);
  proxy.rewrite({
    routes: [{ name: 'list-orders', methods: ['GET'], path: '/orders', subjects: ['nobody'], permissions: [] }],
  });
  await until(
    'the reload',
    async () => (await proxy.request({ path: '/orders', headers: proxy.authorization() })).status === 403,
  );
  t.ok((await proxy.metric('process_resident_memory_bytes')) > 0);
});

t.test('what it has no need of is refused', (t) => {
  const dir = tempDir(t);
  const options = optionsFor(app, dir);
  const program = `
    const tries = [
      () => require('node:fs').writeFileSync('${dir}/x', 'y'), () => require('node:fs').readFileSync('/etc/passwd'),
      () => { const { error } = require('node:child_process').spawnSync('id'); if (error) throw error; },
      () => new (require('node:worker_threads').Worker)('1', { eval: true }),
    ];
    for (const one of tries) try { one(); console.log('done'); } catch (error) { console.log(error.code); }`;
  const tried = spawnSync(...bare(options, ['-e', program]), { encoding: 'utf8' });
  t.same(
    tried.stdout.trim().split('\n'),
    Array.from({ length: 4 }, () => 'ERR_ACCESS_DENIED'),
    tried.stderr,
  );
  const checked = spawnSync(...bare(options, [join(projectDir, 'dist/main.js'), 'check', '/etc/hostname']), {
    encoding: 'utf8',
  });
  t.equal(checked.status, 2, checked.stdout + checked.stderr);
  t.end();
});
