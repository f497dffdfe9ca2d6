/** `dev --bound` as a process: TLS, and what a thief of a token is told. Its lines are pasted into a shell. */
import { execFile } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { decodeJwt } from 'jose';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
import { run } from '../../../../src/cli/program.js';
import { blockThatBegins } from '../../../docs/fenced-blocks.js';
import '../../../support/curl.js';
import '../../../support/openssl.js';
import { startUpstreamServer } from '../../../support/upstream-server.js';
import { sh } from '../../../support/sh.js';
import { tempDir } from '../../../support/temp-dir.js';
import { until } from '../../../support/until.js';
import { captureIo } from '../../captured-io.js';
import { startCommand, type StartedCommand } from '../../started-command.js';

t.setTimeout(120_000);

const execute = promisify(execFile);

interface Example {
  readonly command: string;
  readonly expect: number;
  readonly then?: number;
  readonly because?: string;
}

interface Shown {
  readonly proxy: string;
  readonly core?: string;
  readonly examples: readonly Example[];
  readonly bound?: { readonly examples: readonly Example[] };
}

async function start(t: Test, args: readonly string[] = []): Promise<{ dev: StartedCommand; shown: Shown }> {
  const dev = startCommand(t, ['dev', '--json', '--bound', '--port', '0', ...args]);
  const [line] = await dev.says(/^\{.*\}$/m);
  return { dev, shown: JSON.parse(line) as Shown };
}

/** What a line answers, by the real curl. */
async function paste(command: string): Promise<string> {
  return (await execute(sh, ['-c', command])).stdout;
}

const statusesOf = (answers: string): readonly number[] =>
  [...answers.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));

/** A 401 without what is of this one alone. */
const plain = (answer: string): string =>
  answer.replace(/^(?:X-Request-Id|Date): .*$/gim, '').replace(/"urn:[^"]*"/, '');

const subjects = {
  core: 'checkout',
  oauth: 'checkout',
  kubernetes: 'shop/checkout',
  spiffe: 'spiffe://dev.example/checkout',
} as const;

for (const [profile, subject] of Object.entries(subjects)) {
  t.test(`${profile}: bound tokens count for who proves what they are bound to, as each line says`, async (t) => {
    const { dev, shown } = await start(t, ['--profile', profile]);
    const bound = shown.bound?.examples ?? [];
    t.same(
      bound.map(({ expect, then = null }) => [expect, then]),
      [
        [200, null],
        [200, 401],
        [401, null],
        [200, null],
        [401, null],
      ],
    );
    for (const { command, expect } of shown.examples) {
      for (const status of statusesOf(await paste(command))) t.equal(status, expect, command);
    }
    const refusals = [];
    for (const { command, expect, then } of bound) {
      const answer = await paste(command);
      t.same(statusesOf(answer), [expect, ...(then === undefined ? [] : [then])], command);
      if (expect === 200) t.ok(answer.includes(`"x-auth-subject":${JSON.stringify(subject)}`), command);
      if (expect === 401) refusals.push(plain(answer));
    }
    t.equal(new Set(refusals).size, 1, 'a thief is told the same, whatever is missing');
    const reasons = await until('the log has why', () => {
      const found = [...dev.stderr().matchAll(/ denied ((?:proof|certificate)\w+)$/gm)].map(([, reason]) => reason);
      return found.length < 3 ? null : found;
    });
    t.same(reasons, ['proof_replayed', 'proof_missing', 'certificate_missing']);
    t.equal((await paste(bound[0]?.command ?? '')).slice(0, 12), 'HTTP/1.1 200', 'each proof is new: it passes again');
    const output = dev.stdout().replace(/"token":"[^"]*"/, '') + dev.stderr();
    t.notMatch(output, /eyJ|PRIVATE/, 'neither a token nor a key is on the screen');
  });
}

t.test('for people the lines say what they show; their files are closed to others and go when it ends', async (t) => {
  const dev = startCommand(t, ['dev', '--bound', '--port', '0']);
  await dev.says(/Ctrl-C/);
  const out = dev.stdout();
  t.match(out, /^proxy {5}https:\/\/127\.0\.0\.1:\d+$/m);
  t.match(out, /^# expect 200, then 401: one proof, sent twice\n.* prove .* \| curl /m);
  const files = [...new Set(out.match(/\/\S+\/sallyport-dev-\w+\/[\w.-]+/g))];
  t.ok(files.length >= 8);
  for (const file of files) t.equal(statSync(file).mode & 0o777, 0o600, file);
  const config = parse(out.slice(out.indexOf('issuers:'), out.indexOf('\nproxy '))) as {
    readonly listen: { readonly port: number };
  };
  t.match(config.listen, {
    tls: { client_auth: 'request' },
    dpop: { origins: [`https://127.0.0.1:${String(config.listen.port)}`] },
  });
  t.notMatch(dev.stderr(), /warn/);
  dev.signal('SIGINT');
  t.same(await dev.exited, { code: 0, signal: null });
  t.throws(() => statSync(dirname(files[0] ?? '')), /ENOENT/);
});

t.test(
  'the way of docs/bound-tokens.md: a key of one’s own, a token from the emulator, a replay refused',
  async (t) => {
    const steps = blockThatBegins('docs/bound-tokens.md', 'openssl genpkey').text;
    const { shown } = await start(t);
    const command = shown.bound?.examples[0]?.command ?? '';
    const [, program = ''] = /^(.*?) prove /.exec(command) ?? [];
    const ca = /--cacert (\S+)/.exec(command)?.[1] ?? '';
    const folder = tempDir(t);
    const script = steps
      .replaceAll(/^sallyport (?=mint|prove)/gm, `${program} `)
      .replaceAll('http://127.0.0.1:3567', shown.core ?? '')
      .replaceAll('https://127.0.0.1:8080', shown.proxy)
      .replaceAll(/(?<=--cacert )\S+/g, ca);
    const answer = (await execute(sh, ['-ec', script], { cwd: folder })).stdout;
    t.same(statusesOf(answer), [200, 401], 'the first time, and the second');
    t.match(answer, /"x-auth-subject":"checkout"/);
    t.match(decodeJwt(readFileSync(join(folder, 'token'), 'utf8').trim()), { cnf: { jkt: /^[\w-]{43}$/ } });
  },
);

t.test('routes of a config, and a service of yours; where nothing asks for a token nothing is bound', async (t) => {
  const receiver = await startUpstreamServer(t);
  const file = join(tempDir(t), 'sallyport.yaml');
  writeFileSync(
    file,
    `listen: { host: 0.0.0.0, port: 1 }
routes:
  - { name: write, methods: [POST], path: "/it's/{id}", subjects: [reporting], permissions: [], idempotency: { mode: none, because: test } }
`,
  );
  const { shown } = await start(t, ['--config', file, '--upstream', receiver.url]);
  const answers = await paste(shown.bound?.examples[1]?.command ?? '');
  t.same(statusesOf(answers), [200, 401]);
  t.same(
    receiver.requests.map(({ method, target }) => `${method} ${target}`),
    ["POST /it's/1"],
  );
  writeFileSync(file, 'routes: [{ name: a, methods: [GET], path: /a, access: public }]\n');
  const { shown: open } = await start(t, ['--config', file]);
  t.equal(open.bound, undefined);
  t.same(statusesOf(await paste(open.examples[0]?.command ?? '')), [200]);
});

t.test('what does not go together is said', async (t) => {
  for (const other of ['--grpc', '--egress']) {
    const io = captureIo();
    await run(['dev', '--bound', other], io);
    t.equal(io.code(), 2);
    t.match(io.err(), /^error: --bound: .* not with --grpc and --egress\n/);
  }
});
