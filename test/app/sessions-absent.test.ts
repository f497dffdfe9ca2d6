/** An installation without the optional peer dependency `supertokens-node`. */
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { baseConfig } from '../support/proxy-process.js';

const installed = join(tempDir(t), 'sallyport');
mkdirSync(join(installed, 'node_modules'), { recursive: true });
for (const part of ['dist', 'package.json']) cpSync(join(projectDir, part), join(installed, part), { recursive: true });
for (const name of readdirSync(join(projectDir, 'node_modules'))) {
  if (name !== 'supertokens-node' && !name.startsWith('.')) {
    symlinkSync(join(projectDir, 'node_modules', name), join(installed, 'node_modules', name));
  }
}

const sessions = { core_url: 'http://127.0.0.1:1', api_domain: 'https://api.example.com' };
const users = { name: 'users', methods: ['GET'], path: '/users', accept: ['session'], session: { claims: {} } };

interface Ended {
  readonly code: number;
  readonly output: string;
}

function sallyport(config: string, command: readonly string[]): Promise<Ended> {
  const file = join(tempDir(t), 'c.yaml');
  writeFileSync(file, config);
  return new Promise((resolve) => {
    execFile(process.execPath, [join(installed, 'dist/main.js'), ...command, file], (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output: `${stdout}${stderr}` });
    });
  });
}

t.test('a config that accepts sessions is refused at start with the line to install the SDK', async (t) => {
  const { code, output } = await sallyport(baseConfig({ sessions, routes: [users] }), ['serve', '--config']);
  t.equal(code, 1);
  t.match(
    output,
    /^error: sessions need the package supertokens-node, which is not installed: npm install supertokens-node@24$/m,
  );
});

t.test('the SDK is not looked for where no route accepts sessions', async (t) => {
  // An address of nobody ends it, later than where the SDK would be loaded.
  const { code, output } = await sallyport(baseConfig({ sessions, admin: { host: '203.0.113.1', port: 0 } }), [
    'serve',
    '--config',
  ]);
  t.equal(code, 3, output);
  t.notMatch(output, /supertokens/);
});
