import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { smallProject } from './small-project.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';

t.setTimeout(120_000);

const files = {
  'test/support/redis-server.ts': 'export type Port = number;\nexport const port: Port = 6379;\n',
  'test/world.ts': 'import {\n  port,\n} from "./support/redis-server.js";\nexport { port };\n'.replaceAll('"', '\''),
  'test/store/through-another.test.ts': 'import t from \'tap\';\nimport { port } from \'../world.js\';\nt.equal(port, 6379);\n',
  'test/store/later.test.ts': 'import t from \'tap\';\nt.equal((await import(\'../support/redis-server.js\')).port, 6379);\n',
  'test/types-only.test.ts': 'import t from \'tap\';\nimport type { Port } from \'./support/redis-server.js\';\nconst port: Port = 1;\nt.equal(port, 1);\n',
};

/** A PATH with nothing but these programs, which are JavaScript. */
function pathWith(t: Scope, programs: Readonly<Record<string, string>>): { readonly PATH: string } {
  const path = tempDir(t);
  for (const [name, script] of Object.entries(programs)) writeFileSync(join(path, name), `#!${process.execPath}\n${script}\n`, { mode: 0o755 });
  return { PATH: path };
}

const { run, runner, dir } = smallProject(t, 'project', files);

t.test('what needs a program that is not here is not run and named, at the start and in the end; the rest is', (t) => {
  const { code, said } = run([runner, 'test'], pathWith(t, {}));
  t.equal(code, 0);
  t.match(said, /^missing: redis-server: 2 test files are not run; Debian has it as redis-server\nnpm test -- --install gets what is missing\n/m);
  t.match(said, /^ok .* test\/types-only\.test\.ts$/m);
  t.notMatch(said, /^(ok|FAILED) .* test\/store/m);
  t.match(said, new RegExp([
    'NOT RUN: 2 of 3 test files', '  for want of redis-server, 2: test/store/\\{later,through-another\\}\\.test\\.ts',
    '.* s in all, .*', '1 passed, 0 failed', '$',
  ].join('\\n')));
  t.end();
});

t.test('a program that is there is used', (t) => {
  t.match(run([runner, 'test'], pathWith(t, { 'redis-server': '' })), { code: 0, said: /\n3 passed, 0 failed\n$/ });
  t.end();
});

t.test('--install fails where it cannot install, with what to type or to install', (t) => {
  t.match(run([runner, '--install', 'test'], pathWith(t, {})), {
    code: 1, said: /by apt-get: redis-server\nFAILED .* apt-get install\nThere is no apt-get here\. .*: redis-server\nmissing: /,
  });
  const aptGet = 'process.exit(process.argv[2] === "--version" ? 0 : 100)';
  t.match(run([runner, '--install', 'test'], pathWith(t, { 'apt-get': aptGet })), {
    code: 1, said: /^.*sudo apt-get update && sudo apt-get install -y --no-install-recommends redis-server\nmissing: redis-server: [^]*\n1 passed, 1 failed\n$/m,
  });
  t.end();
});

t.test('--install says what it installs, installs it, and runs what needs it', (t) => {
  const log = join(dir, 'calls');
  const aptGet = `const { appendFileSync, copyFileSync, chmodSync } = require('node:fs');
    appendFileSync(${JSON.stringify(log)}, process.argv.slice(2).join(' ') + '\\n');
    if (process.argv.includes('install')) copyFileSync(__filename, __dirname + '/redis-server');`;
  const sudo = 'process.exitCode = require(\'node:child_process\').spawnSync(process.argv.at(process.argv.indexOf("apt-get")), '
    + 'process.argv.slice(process.argv.indexOf("apt-get") + 1)).status;';
  const { code, said } = run([runner, '--install', 'test'], pathWith(t, { 'apt-get': aptGet, sudo }));
  t.equal(code, 0);
  t.match(said, /^to be installed on this machine, by apt-get: redis-server\nok .* apt-get install\n/m);
  t.match(said, /\n3 passed, 0 failed\n$/);
  t.match(readFileSync(log, 'utf8'), /^update -qq\n-qq install -y --no-install-recommends redis-server$/m);
  t.end();
});
