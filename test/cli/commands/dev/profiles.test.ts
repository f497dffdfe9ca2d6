/** `dev --profile` as a process: what it prints is pasted into a shell. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
import { run } from '../../../../src/cli/program.js';
import { curl } from '../../../support/curl.js';
import { sh } from '../../../support/sh.js';
import { captureIo } from '../../captured-io.js';
import { startCommand, type StartedCommand } from '../../started-command.js';

const execute = promisify(execFile);

/** What a printed line answers, by the real curl. */
async function paste(command: string): Promise<string> {
  return (await execute(sh, ['-c', command])).stdout;
}

interface Printed {
  readonly dev: StartedCommand;
  readonly lines: readonly string[];
  readonly examples: readonly { readonly command: string; readonly above: string }[];
  readonly issuer: string;
}

async function start(t: Test, profile: string): Promise<Printed> {
  const dev = startCommand(t, ['dev', '--port', '0', '--profile', profile]);
  await dev.says(/Ctrl-C/);
  const lines = dev.stdout().split('\n');
  return {
    dev,
    lines,
    examples: lines.flatMap((line, index) =>
      line.startsWith(`${curl} `) ? [{ command: line, above: lines[index - 1] ?? '' }] : [],
    ),
    issuer: /^(?:core {2}|issuer) {4}(\S+)$/m.exec(dev.stdout())?.[1] ?? '',
  };
}

const statusesOf = (answers: string): readonly string[] =>
  [...answers.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) => status ?? '');

const expected = {
  core: { issuer: { source: 'sallyport-dev' }, subject: 'checkout', typ: 'JWT' },
  oauth: { issuer: { profile: 'oauth', audience: 'demo' }, subject: 'checkout', typ: 'at+jwt' },
  kubernetes: { issuer: { profile: 'kubernetes', audience: 'demo' }, subject: 'shop/checkout', typ: 'JWT' },
  spiffe: {
    issuer: { profile: 'spiffe', trust_domain: 'dev.example' },
    subject: 'spiffe://dev.example/checkout',
    typ: 'JWT',
  },
} as const;

for (const [profile, { issuer, subject, typ }] of Object.entries(expected)) {
  t.test(`${profile}: every printed line is answered as it says, by the config that is printed`, async (t) => {
    const { dev, lines, examples } = await start(t, profile);
    t.same(
      examples.slice(0, 4).map(({ above }) => above),
      ['# expect 200', '# expect 401', '# expect 403', '# expect 200'],
    );
    for (const { command, above } of examples.slice(0, 4)) {
      const answers = await paste(command);
      for (const status of statusesOf(answers)) t.equal(`# expect ${status}`, above, command);
      if (above === '# expect 200') t.ok(answers.includes(`"x-auth-subject":${JSON.stringify(subject)}`), command);
    }
    t.match(dev.stderr(), /^401 GET \/orders .*denied credential_missing$/m);
    t.match(dev.stderr(), /^403 GET \/orders .*denied subject_not_approved$/m);
    const config = parse(lines.slice(lines.indexOf('# The config in force:'), lines.indexOf('')).join('\n')) as {
      readonly listen: { readonly port: number };
      readonly issuers: Readonly<Record<string, object>>;
    };
    t.match(Object.values(config.issuers), [issuer]);
    t.match(dev.stdout(), new RegExp(`^proxy {5}http://127\\.0\\.0\\.1:${String(config.listen.port)}$`, 'm'));
    const file = /-H @(\S+)/.exec(examples[0]?.command ?? '')?.[1] ?? '';
    const token = readFileSync(file, 'utf8').trim().slice('Authorization: Bearer '.length);
    t.equal(decodeProtectedHeader(token).typ, typ);
    t.notMatch(dev.stdout() + dev.stderr(), /eyJ/, 'no token is on the screen');
    dev.signal('SIGINT');
    t.same(await dev.exited, { code: 0, signal: null });
  });
}

t.test('oauth: the printed line gets a token as a service does, which passes for what its scope grants', async (t) => {
  const { lines, examples, issuer } = await start(t, 'oauth');
  const line = lines[lines.indexOf('# A token of your own, as a service gets it:') + 1] ?? '';
  const answer = await paste(line);
  t.same(statusesOf(answer), ['200']);
  const { access_token: token, ...rest } = JSON.parse(answer.slice(answer.indexOf('{'))) as Record<string, string>;
  t.match(rest, { token_type: 'Bearer', expires_in: 7200, scope: 'orders:read' });
  t.match(decodeJwt(token ?? ''), { iss: issuer, aud: 'demo', sub: 'checkout', client_id: 'checkout' });
  const url = /http:\S+$/.exec(examples[1]?.command ?? '')?.[0] ?? '';
  const authorization = { authorization: `Bearer ${token ?? ''}` };
  t.equal((await fetch(url, { headers: authorization })).status, 200);
  const headers = { ...authorization, 'idempotency-key': 'a-key' };
  t.equal((await fetch(url, { method: 'POST', headers, body: '{}' })).status, 403, 'it was not asked for');
  for (const [changes, status, error] of [
    [['checkout:demo', 'checkout:wrong'], 401, 'invalid_client'],
    [['checkout:demo', 'other:demo'], 401, 'invalid_client'],
    [['scope=orders:read', 'scope=admin'], 400, 'invalid_scope'],
    [['client_credentials', 'password'], 400, 'unsupported_grant_type'],
  ] as const) {
    const refused = await paste(line.replace(changes[0], changes[1]));
    t.same(statusesOf(refused), [String(status)], changes[1]);
    t.ok(refused.includes(`{"error":"${error}"}`), changes[1]);
  }
  t.equal((await fetch(`${issuer}/token`)).status, 404);
  t.equal((await fetch(`${issuer}/bundle`)).status, 404);
});

t.test('what no issuer of the profile has is not there', async (t) => {
  const { issuer } = await start(t, 'spiffe');
  const bundle = (await (await fetch(`${issuer}/bundle`)).json()) as { readonly keys: readonly object[] };
  t.match(bundle.keys, [{ kty: 'EC', use: 'jwt-svid' }]);
  t.notOk(JSON.stringify(bundle).includes('"d"'), 'the private key stays where it is');
  t.equal((await fetch(`${issuer}/jwks`)).status, 404);
  t.equal((await fetch(`${issuer}/token`, { method: 'POST' })).status, 404);
});

t.test('a profile that is none, or beside a config, is refused', async (t) => {
  for (const [args, says] of [
    [['--profile', 'saml'], /'saml' is invalid\. Allowed choices are core, oauth, kubernetes, spiffe/],
    [['--profile', 'oauth', '--config', 'x.yaml'], /--profile: .*; allowed with a config: core/],
  ] as const) {
    const io = captureIo();
    await run(['dev', ...args], io);
    t.equal(io.code(), 2);
    t.match(io.err(), says);
  }
});
