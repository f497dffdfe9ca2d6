/**
 * `sallyport/fastify` out of the tarball, in an empty project beside the oldest Fastify that the package takes: that
 * copy is the one of the application, from modules of both kinds, and to the compiler.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { runNpm } from '../support/npm-registry.js';
import { projectDir } from '../support/project-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { typeFaults } from '../support/type-faults.js';

t.setTimeout(580_000);

/** The dependencies come from the registry that this machine has, which has them in its cache. */
const cached = { npm_config_cache: join(homedir(), '.npm'), npm_config_ignore_scripts: 'true' };
const { version, peerDependencies } = JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8')) as {
  readonly version: string;
  readonly peerDependencies: Readonly<Record<string, string>>;
};
const oldest = peerDependencies['fastify']?.replace('^', '') ?? '';

const body = `
const config = { issuers: { core: { issuer: 'https://a.example', jwks_url: 'http://127.0.0.1:1/', audience: 'a', source: 's', token_type: 'service' } }, store: { memory: {} } };
const app = fastify();
app.register(sallyport, { config });
app.after(() => {
  app.get('/open', { config: { sallyport: { access: 'public' } } }, (request) => request.principal?.subject ?? 'nobody');
  app.post('/closed', { config: { sallyport: { subjects: ['a'], permissions: [], idempotency: 'required' } } }, () => 'no');
});
app.ready().then(async () => {
  const statuses = [await app.inject('/open'), await app.inject({ method: 'POST', url: '/closed' })];
  console.log(app.version, statuses.map(({ statusCode }) => statusCode).join());
  await app.close();
});
`;

const programs = {
  'a.mts': `import { fastify } from 'fastify';\nimport sallyport from 'sallyport/fastify';\n${body}`,
  'b.mts': `import { fastify } from 'fastify';\nimport { sallyport, type RoutePolicy } from 'sallyport/fastify';\nexport type Policy = RoutePolicy;\n${body}`,
  'c.mjs': `import { fastify } from 'fastify';\nimport sallyport from 'sallyport/fastify';\n${body}`,
  'd.cjs': `const { fastify } = require('fastify');\nconst sallyport = require('sallyport/fastify');\n${body}`,
};

t.test('an application has its own Fastify, and the plugin the same', async (t) => {
  const dir = tempDir(t);
  writeFileSync(join(dir, 'package.json'), '{ "name": "mine", "version": "1.0.0", "private": true }');
  const packed = await runNpm(t, projectDir, null, ['npm', 'pack', '--silent', '--pack-destination', dir], cached);
  t.equal(packed.code, 0, 'it packs');
  const tarball = `./sallyport-${version}.tgz`;
  const names = [`fastify@${oldest}`, tarball, '@types/node'];
  const installed = await runNpm(t, dir, null, ['npm', 'install', '--save-exact', ...names], cached);
  t.equal(installed.code, 0, installed.output);
  t.notOk(existsSync(join(dir, 'node_modules/sallyport/node_modules/fastify')), 'no second copy');
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(dir, name), text);
  for (const name of ['c.mjs', 'd.cjs']) {
    const { stdout, stderr } = spawnSync(process.execPath, [name], { cwd: dir, encoding: 'utf8' });
    t.equal(stdout, `${oldest} 200,401\n`, `${name}: ${stderr}`);
  }
  t.same(typeFaults(['a.mts', 'b.mts'].map((name) => join(dir, name))), []);
  const { output } = await runNpm(t, dir, null, ['npx', '--no', '--', 'sallyport', '--version'], cached);
  t.match(output, `sallyport ${version} (`, 'and the command is there');
});
