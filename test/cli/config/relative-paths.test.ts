import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { certificates } from '../../support/certificates.js';
import { rsaKey } from '../../support/keys.js';
import { request } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { startServe } from '../../support/serve-process.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { baseConfig, merge, type ConfigTree } from '../../support/proxy-process.js';
import { captureIo } from '../captured-io.js';

/** A folder with a config that names its files by relative paths, and these files. */
function shopFolder(t: Scope, config: ConfigTree = {}) {
  const root = tempDir(t);
  const folder = join(root, 'shop');
  mkdirSync(join(folder, 'tls'), { recursive: true });
  const c = certificates(t);
  const install = (name: 'server' | 'renewed'): void => {
    copyFileSync(c[name].certFile, join(folder, 'tls/tls.crt'));
    copyFileSync(c[name].keyFile, join(folder, 'tls/tls.key'));
  };
  install('server');
  writeFileSync(join(folder, 'keys.json'), JSON.stringify({ keys: [rsaKey().jwk] }));
  writeFileSync(join(folder, 'audience'), 'orders\n');
  const text = baseConfig(
    merge(
      {
        listen: { tls: { cert_file: 'tls/tls.crt', key_file: './tls/tls.key' } },
        issuers: { core: { jwks_url: null, jwks_file: 'keys.json', audience: '${file:audience}' } },
        shutdown: { delay: '0s', grace: '1s' },
      },
      config,
    ),
  );
  writeFileSync(join(folder, 'sallyport.yaml'), text);
  return { root, folder, text, install, ca: c.ca.cert };
}

t.test(
  'serve takes relative paths from the folder of the config, whatever the working folder, and takes up what changes there',
  async (t) => {
    const { root, install, ca } = shopFolder(t);
    for (const [config, cwd, next] of [
      ['shop/sallyport.yaml', root, 'renewed'],
      ['../sallyport.yaml', join(root, 'shop/tls'), 'server'],
    ] as const) {
      const serve = startServe(t, config, { cwd });
      const port = await serve.port('proxy');
      const status = async (): Promise<number> => (await request(port, { path: '/orders' }, { tls: { ca } })).status;
      t.equal(await status(), 401, `${config} from ${cwd}`);
      install(next);
      await until('the new certificate is in use', () =>
        serve.logs().some(({ msg }) => msg === 'the certificates were reloaded'),
      );
      t.equal(await status(), 401);
      await serve.stop();
    }
  },
);

t.test('doctor and check find the same files; what is not there is told with its absolute path', async (t) => {
  const { root, folder } = shopFolder(t);
  const doctor = captureIo({ cwd: root });
  await run(['doctor', 'shop/sallyport.yaml', '--json'], doctor);
  t.match(doctor.out(), /"subject":"certificate names"/);
  t.match(doctor.out(), /"subject":"keys core","what":"accepted: d-1;/);
  const check = captureIo({ cwd: root });
  await run(['check', 'shop/sallyport.yaml'], check);
  t.equal(check.code(), 0, check.out());
  writeFileSync(join(folder, 'other.yaml'), baseConfig({ upstream: { url: '${file:nothing}' } }));
  const placeholder = captureIo({ cwd: root });
  await run(['check', 'shop/other.yaml'], placeholder);
  t.match(placeholder.out(), `\${file:nothing} cannot be read: ${folder}/nothing does not exist`);
  writeFileSync(
    join(folder, 'other.yaml'),
    baseConfig({ listen: { tls: { cert_file: 'none.crt', key_file: 'none.key' } } }),
  );
  const serve = startServe(t, 'shop/other.yaml', { cwd: root });
  t.match(await serve.exited, { code: 2 });
  t.match(serve.output(), `error: ${folder}/none.crt: does not exist`);
});

t.test('a config from standard input starts from the working folder', async (t) => {
  const { folder, root, text } = shopFolder(t);
  const inFolder = captureIo({ cwd: folder, stdin: text });
  await run(['doctor', '-', '--json'], inFolder);
  t.match(inFolder.out(), /"subject":"certificate names"/);
  const elsewhere = captureIo({ cwd: root, stdin: text });
  await run(['check', '-'], elsewhere);
  t.match(elsewhere.out(), `\${file:audience} cannot be read: ${root}/audience does not exist`);
});

t.test('diff takes a relative path for the same file in both configs', async (t) => {
  const { root, folder, text } = shopFolder(t);
  writeFileSync(join(root, 'old.yaml'), text);
  const same = captureIo({ cwd: root });
  await run(['diff', 'old.yaml', join(folder, 'sallyport.yaml')], same);
  t.equal(same.code(), 0, same.out() + same.err());
  t.match(same.out(), /^no change in effect$/m);
});
