import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { listen } from '../../support/listening.js';
import { projectDir } from '../../support/project-dir.js';
import { connectRaw } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { sh } from '../../support/sh.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { baseConfig, startProxyProcess, type ConfigTree } from '../../support/proxy-process.js';

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs the program to its end. */
async function sallyport(t: Scope, args: readonly string[], input: 'inherit' | 'ignore' = 'ignore'): Promise<Ended> {
  const child = spawn(process.execPath, [join(projectDir, 'dist/main.js'), ...args], {
    stdio: [input, 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (err += chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out, err };
}

function configFile(t: Scope, config: ConfigTree): string {
  const file = join(tempDir(t), 'sallyport.yaml');
  writeFileSync(file, baseConfig(config));
  return file;
}

t.test('SIGTERM ends it with 0, silent connections or not, and SIGHUP on the way is harmless', async (t) => {
  const proxy = await startProxyProcess(t, { config: { shutdown: { delay: '200ms', grace: '20s' } } });
  const silent = await connectRaw(proxy.port);
  t.equal((await proxy.request({ path: '/orders', headers: proxy.authorization() })).status, 200);
  proxy.process.signal('SIGTERM');
  await until('not ready', async () => (await proxy.admin('/readyz')).status === 503).catch(() => undefined);
  proxy.process.signal('SIGHUP');
  t.match(await proxy.process.exited, { code: 0, signal: null });
  await silent.closed;
  t.same(
    proxy
      .logs()
      .slice(-3)
      .map(({ msg }) => msg),
    ['shutting down', 'draining', 'stopped'],
    'nothing is lost of the log',
  );
  t.same(
    proxy.process
      .output()
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('{')),
    [],
    'and all of it is JSON',
  );
});

t.test('SIGHUP reads the config again', async (t) => {
  const proxy = await startProxyProcess(t);
  proxy.process.signal('SIGHUP');
  await until('reloaded', () =>
    proxy.logs().some(({ msg }) => msg === 'the config was reloaded: nothing in it is different'),
  );
  t.equal(await proxy.metric('sallyport_config_reloads_total{result="ok"}'), 1);
});

t.test('a second SIGTERM or SIGINT ends the process without waiting for its requests', async (t) => {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const proxy = await startProxyProcess(t, { config: { shutdown: { delay: '10m', grace: '10m' } } });
    proxy.process.signal('SIGTERM');
    await until('the first one is heard', () => proxy.logs().some(({ msg }) => msg === 'shutting down'));
    proxy.process.signal(signal);
    t.match(await proxy.process.exited, { code, signal: null }, signal);
  }
});

t.test('exit codes of what does not start', async (t) => {
  const { port } = await listen(t, createServer());
  const rows: readonly { name: string; config: ConfigTree; code: number; err: RegExp }[] = [
    { name: 'a bad config', config: { listen: { port: 'x' } }, code: 1, err: /sallyport\.yaml:\d+:\d+: error: / },
    {
      name: 'a certificate that is not there',
      config: { listen: { tls: { cert_file: '/none', key_file: '/none' } } },
      code: 2,
      err: /^error: \/none: does not exist\n$/,
    },
    {
      name: 'the port in use',
      config: { listen: { port } },
      code: 3,
      err: /proxy listener cannot listen on 127\.0\.0\.1:\d+: the port is in use/,
    },
  ];
  await Promise.all(
    rows.map(async ({ name, config, code, err }) => {
      const ended = await sallyport(t, ['serve', '--config', configFile(t, config)]);
      t.equal(ended.code, code, `${name}: ${ended.err}`);
      t.match(ended.err, err, name);
      t.notMatch(ended.err, /^ +at /m, `${name}: no stack`);
      const lines = ended.out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>);
      const { problems, ...last } = lines.at(-1) ?? {};
      t.match(last, { level: 'fatal', msg: 'the proxy does not start' }, `${name}: so the log ends`);
      t.ok(
        Array.isArray(problems) &&
          problems.length > 0 &&
          problems.every((problem) => ended.err.includes(String(problem))),
        `${name}: and says why`,
      );
      t.equal(lines.filter(({ msg }) => msg === 'stopped').length, 0, `${name}: and none that it stopped well`);
    }),
  );
});

t.test('the program as it is installed', async (t) => {
  const help = await sallyport(t, ['--help']);
  t.equal(help.code, 0);
  t.match(help.out, /serve/);
  t.equal(help.err, '');
  const unknown = await sallyport(t, ['nonsense']);
  t.equal(unknown.code, 2);
  const piped = spawn(sh, [
    '-c',
    `"${process.execPath}" "${join(projectDir, 'dist/main.js')}" --help | true; echo done`,
  ]);
  let err = '';
  piped.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  await once(piped, 'close');
  t.equal(err, '', 'a reader that leaves is no error');
});
