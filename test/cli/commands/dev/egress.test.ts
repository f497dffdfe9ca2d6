/** `dev --egress` as a process: a caller without a token and without a key, in front of two sidecars. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
import { validateConfig } from '../../../../src/config/load/validate-config.js';
import { refuse } from '../../../../src/lib/result.js';
import { run } from '../../../../src/cli/program.js';
import { curl } from '../../../support/curl.js';
import { startUpstreamServer } from '../../../support/upstream-server.js';
import { sh } from '../../../support/sh.js';
import { tempDir } from '../../../support/temp-dir.js';
import { captureIo } from '../../captured-io.js';
import { startCommand, type StartedCommand } from '../../started-command.js';

const execute = promisify(execFile);

interface Shown {
  readonly proxy: string;
  readonly examples: readonly { readonly command: string }[];
  readonly egress: {
    readonly url: string;
    readonly config: string;
    readonly examples: readonly { readonly command: string; readonly expect: number }[];
  };
}

async function start(t: Test, args: readonly string[]): Promise<{ dev: StartedCommand; shown: Shown }> {
  const dev = startCommand(t, ['dev', '--json', '--egress', '--port', '0', '--egress-port', '0', ...args]);
  const [line] = await dev.says(/^\{.*\}$/m);
  return { dev, shown: JSON.parse(line) as Shown };
}

async function paste(command: string): Promise<string> {
  return (await execute(sh, ['-c', command])).stdout;
}

/** What the demo service says that it received. */
function received(answer: string): { readonly path: string; readonly headers: Readonly<Record<string, string>> } {
  return JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as ReturnType<typeof received>;
}

const subjects = {
  core: 'checkout',
  oauth: 'checkout',
  kubernetes: 'shop/checkout',
  spiffe: 'spiffe://dev.example/checkout',
} as const;

for (const [profile, subject] of Object.entries(subjects)) {
  t.test(`${profile}: a caller without a token is answered, and its write has a key`, async (t) => {
    const { dev, shown } = await start(t, ['--profile', profile]);
    const [read = '', write = ''] = shown.egress.examples.map(({ command }) => command);
    t.ok(read.startsWith(`${curl} `) && write.startsWith(`${curl} `));
    t.notMatch(`${read}${write}`, /Authorization|Idempotency-Key|@/, 'the commands have neither a token nor a key');
    const answers = [await paste(read), await paste(write)];
    for (const answer of answers) {
      t.match(answer, /^HTTP\/1\.1 200 [^]*^X-Sallyport-Attempts: 1\r$/m);
      t.equal(received(answer).headers['x-auth-subject'], subject);
    }
    const key = /^X-Sallyport-Idempotency-Key: (\S+)\r$/m.exec(answers[1] ?? '')?.[1];
    t.equal(received(answers[1] ?? '').headers['idempotency-key'], key);
    t.equal(received(answers[1] ?? '').path, '/orders');
    t.notMatch(dev.stdout().replace(/"token":"[^"]*"/, '') + dev.stderr(), /eyJ/, 'no token is on the screen');
    const { config } = validateConfig(shown.egress.config, {
      file: 'egress.yaml',
      folder: '/',
      env: {},
      readFile: () => refuse('is not read here'),
    });
    t.match(config?.egress, { targets: [{ prefix: '/service', missingKey: 'generate' }] }, 'the config is one');
    const files = [...shown.egress.config.matchAll(/(?:curl_config|secret_file|file): (\S+)/g)].map(
      ([, file = '']) => file,
    );
    t.ok(files.length > 0 && files.every(existsSync));
    dev.signal('SIGINT');
    t.same(await dev.exited, { code: 0, signal: null });
    t.notOk(files.some(existsSync), 'its secrets go with it');
    t.notOk(existsSync(dirname(files[0] ?? '')));
  });
}

t.test('for people it prints both configs, the address and lines to paste', async (t) => {
  const dev = startCommand(t, ['dev', '--egress', '--port', '0', '--egress-port', '0']);
  await dev.says(/Ctrl-C/);
  const out = dev.stdout();
  const address = /^egress {4}(http:\/\/127\.0\.0\.1:\d+\/service)$/m.exec(out)?.[1] ?? 'none';
  const lines = out.slice(out.indexOf('# A caller without a token')).split('\n');
  const commands = lines.filter((line) => line.startsWith(`${curl} `));
  t.equal(commands.length, 2);
  for (const command of commands) {
    t.ok(command.includes(`${address}/`));
    t.match(await paste(command), /^HTTP\/1\.1 200 /);
  }
  const printed = out.slice(out.indexOf('# The calling side’s:'), out.indexOf('\negress    '));
  t.match(parse(printed), { egress: { targets: [{ name: 'service' }] } });
});

t.test('a service of yours: no key is made where no route keeps one', async (t) => {
  const receiver = await startUpstreamServer(t);
  const { shown } = await start(t, ['--upstream', receiver.url]);
  t.equal(shown.egress.examples.length, 1, 'only what is answered is shown');
  t.match(await paste(shown.egress.examples[0]?.command ?? ''), /^HTTP\/1\.1 200 /);
  await fetch(`${shown.egress.url}/thing`, { method: 'POST', body: 'x' });
  t.equal(receiver.requests.at(-1)?.target, '/thing');
  t.notMatch(receiver.requests.at(-1)?.rawHeaders.join('\n'), /idempotency-key/i);
});

t.test('the routes of a config: its subject calls, and a write of another subject is not shown', async (t) => {
  const file = join(tempDir(t), 'sallyport.yaml');
  writeFileSync(
    file,
    `routes:
  - { name: read, methods: [GET], path: /a, subjects: [reporting], permissions: [a:read] }
  - { name: write, methods: [POST], path: /b, subjects: [checkout], permissions: [], idempotency: required }
`,
  );
  const { shown } = await start(t, ['--config', file]);
  t.equal(shown.egress.examples.length, 1);
  const answer = await paste(shown.egress.examples[0]?.command ?? '');
  t.equal(received(answer).headers['x-auth-subject'], 'reporting');
  t.equal((await fetch(`${shown.egress.url}/b`, { method: 'POST', body: 'x' })).status, 403);
  t.match(readFileSync(file, 'utf8'), /routes/, 'it is only read');
});

t.test('what cannot be started says why', async (t) => {
  const taken = await startUpstreamServer(t);
  const cases = [
    {
      name: 'its port is in use',
      args: ['--port', '0', '--egress-port', String(taken.port)],
      code: 3,
      says: /choose another port with --egress-port; --egress-port 0 takes a free one\n$/,
    },
    { name: 'beside --grpc', args: ['--grpc'], code: 2, says: /not with --grpc/ },
    { name: 'no such port', args: ['--egress-port', '65536'], code: 2, says: /65535/ },
  ];
  for (const { name, args, code, says } of cases) {
    const io = captureIo();
    await run(['dev', '--egress', ...args], io);
    t.equal(io.code(), code, name);
    t.match(io.err(), says, name);
    t.equal(io.out(), '', name);
  }
});
