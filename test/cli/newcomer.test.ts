import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../src/cli/program.js';
import { projectDir } from '../support/project-dir.js';
import type { Scope } from '../support/scope.js';
import { sh } from '../support/sh.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { captureIo } from './captured-io.js';

const read = (path: string): string => readFileSync(join(projectDir, path), 'utf8');

/** The first block of a language after a heading. */
function block(page: string, heading: string, language: string): string {
  const after = page.slice(page.indexOf(`\n${heading}\n`));
  return new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(after)?.[1] ?? '';
}

interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Runs a line of a page in a shell, with this build of the command. */
async function shell(t: Scope, line: string, cwd: string, env: Readonly<Record<string, string>>): Promise<Ended> {
  const command = line.replaceAll(
    /(?:npx |^)sallyport(?= )/g,
    `'${process.execPath}' '${join(projectDir, 'dist/main.js')}'`,
  );
  return new Promise((resolve) => {
    const child = execFile(sh, ['-c', command], { cwd, env: { ...process.env, ...env } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}` });
    });
    t.teardown(() => {
      child.kill('SIGKILL');
    });
  });
}

t.test('from a 403 in the log to a request that is let through, by the commands of docs/policy-tests.md', async (t) => {
  const proxy = await startProxyProcess(t);
  const cwd = join(proxy.configFile, '..');
  const token = proxy.token({ sub: 'billing', permissions: ['orders:read'] });
  const ask = async (): Promise<number> =>
    (
      await proxy.request({
        path: '/orders',
        headers: { Authorization: `Bearer ${token}`, 'X-Request-Id': 'newcomer' },
      })
    ).status;

  t.equal(await ask(), 403);
  t.match(await proxy.logOf('newcomer'), {
    reason: 'subject_not_approved',
    subject: 'billing',
    route: 'list-orders',
    method: 'GET',
    path: '/orders',
  });

  writeFileSync(join(cwd, 'token'), token);
  writeFileSync(
    join(cwd, 'edit.sh'),
    '#!/bin/sh\nsed -i.bak "0,/- reporting/s//- reporting\\n      - billing/" "$1"\n',
    { mode: 0o755 },
  );
  writeFileSync(
    join(cwd, 'orders.test.yaml'),
    [
      'config: next.yaml',
      'cases:',
      '  - name: billing reads orders',
      '    request: { method: GET, path: /orders }',
      '    claims: { sub: billing, permissions: [orders:read] }',
      '    expect: { status: 200 }',
      '',
    ].join('\n'),
  );
  const lines = block(read('docs/policy-tests.md'), '## From a 403 to the edit that lets it through', 'sh')
    .trimEnd()
    .split('\n');
  const expected = [
    { does: /^sallyport explain /, code: 1, says: /denied: 403 subject_not_approved \(route list-orders\)/ },
    { does: /^cp .*EDITOR/, code: 0, says: /^$/ },
    { does: /^sallyport check /, code: 0, says: /next\.yaml: ok/ },
    { does: /^sallyport test /, code: 0, says: /ok {3}billing reads orders\n1 case, 0 failed/ },
    {
      does: /^sallyport diff /,
      code: 0,
      says: /GET \/orders \(list-orders\)\n! {3}gains: billing with orders:read\naccess widens/,
    },
    { does: /^mv /, code: 0, says: /^$/ },
  ];
  t.equal(lines.length, expected.length);
  for (const [index, { does, code, says }] of expected.entries()) {
    const line = lines[index] ?? '';
    t.match(line, does);
    const ended = await shell(t, line, cwd, { EDITOR: './edit.sh' });
    t.equal(ended.code, code, `${line}\n${ended.output}`);
    t.match(ended.output, says, line);
    t.notOk(ended.output.includes(token), 'the token is not printed');
  }
  await until('the proxy has the new policy', async () => (await ask()) === 200);
  t.same(await proxy.exposures(), []);
});

t.test('the policy tests that are shown hold for the config of the README', async (t) => {
  const cwd = tempDir(t);
  const config = /```yaml\n(listen:[^]*?)```/.exec(read('README.md'))?.[1] ?? '';
  writeFileSync(join(cwd, 'sallyport.yaml'), config);
  writeFileSync(join(cwd, 'policy.test.yaml'), block(read('docs/policy-tests.md'), '## test', 'yaml'));
  const io = captureIo({ cwd });
  await run(['test', 'policy.test.yaml'], io);
  t.equal(io.code(), 0, io.out() + io.err());
  t.match(io.out(), /\n4 cases, 0 failed\n/);
});
