import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../../src/cli/program.js';
import { certificates } from '../../../support/certificates.js';
import { keySet, startJwksServer } from '../../../support/jwks-server.js';
import { rsaKey } from '../../../support/keys.js';
import { listen } from '../../../support/listening.js';
import { openssl } from '../../../support/openssl.js';
import { startUpstreamServer } from '../../../support/upstream-server.js';
import type { Scope } from '../../../support/scope.js';
import { makeFifo } from '../../../support/sh.js';
import { tempDir } from '../../../support/temp-dir.js';
import { baseConfig, type ConfigTree } from '../../../support/proxy-process.js';
import { captureIo, type CapturedIo } from '../../captured-io.js';

interface Finding {
  readonly out_of_reach: boolean;
  readonly level: string;
  readonly subject: string;
  readonly what: string;
  readonly fix: string;
}

const routes = [
  { name: 'orders', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: ['orders:read'] },
];

async function doctor(
  t: Scope,
  config: ConfigTree,
  options: { mode?: number; args?: readonly string[] } = {},
): Promise<CapturedIo> {
  const cwd = tempDir(t);
  const file = join(cwd, 'sallyport.yaml');
  writeFileSync(file, baseConfig({ routes, ...config }));
  chmodSync(file, options.mode ?? 0o644);
  const io = captureIo({ cwd });
  await run(['doctor', '--config', 'sallyport.yaml', ...(options.args ?? [])], io);
  return io;
}

/** What the doctor says of one subject, and the exit code. */
async function findings(
  t: Scope,
  config: ConfigTree,
  mode = 0o644,
): Promise<{ of: (subject: string) => Finding | undefined; code: number | null }> {
  const io = await doctor(t, config, { mode, args: ['--json'] });
  const { findings: all } = JSON.parse(io.out()) as { findings: readonly Finding[] };
  return { of: (subject) => all.find((finding) => finding.subject === subject), code: io.code() };
}

/** A deployment in which all is well. */
async function sound(t: Scope): Promise<{ config: ConfigTree; jwksUrl: string }> {
  const jwks = await startJwksServer(t, { keys: [rsaKey('d-1'), { ...rsaKey('d-1').jwk, kid: 's-1' }] });
  const receiver = await startUpstreamServer(t);
  return { config: { issuers: { core: { jwks_url: jwks.url } }, upstream: { url: receiver.url } }, jwksUrl: jwks.url };
}

t.test('doctor exits 0 where nothing is wrong', async (t) => {
  const { config } = await sound(t);
  const io = await doctor(t, config);
  t.equal(io.code(), 0, io.out());
  t.match(io.out(), /^ok: keys core: accepted: d-1; not accepted: s-1$/m);
  t.match(io.out(), /^ok: clock core: agrees with the Core within clock_skew$/m);
  t.match(io.out(), /^ok: receiver: answers at http:\/\/127\.0\.0\.1:\d+$/m);
  t.match(io.out(), /^ok: receiver past us: bound to loopback$/m);
  t.match(io.out(), /^ok: config file: others may not change it$/m);
  for (const line of io.out().trimEnd().split('\n')) t.match(line, /^(ok|warning): [^:]+: ./);
});

t.test('what is wrong with the keys of an issuer is found, with its fix', async (t) => {
  const { config, jwksUrl } = await sound(t);
  const none = await findings(t, {
    ...config,
    issuers: { core: { ...(config['issuers'] as { core: object }).core, key_ids: { accept: ['x-*'] } } },
  });
  t.match(none.of('keys core'), { level: 'problem', what: /no key counts/, fix: /key_ids\.accept/ });
  t.equal(none.code, 1);
  const accepting = await findings(t, {
    ...config,
    issuers: { core: { jwks_url: jwksUrl, key_ids: { accept: ['d-*', 's-*'] } } },
  });
  t.match(accepting.of('keys core'), {
    level: 'warning',
    what: /static keys count \(s-1\): they are never replaced, so that whoever has one signs/,
    fix: /"d-\*"/,
  });
  t.match(
    accepting.of('config'),
    { level: 'warning', what: /lets the Core’s static keys in: they are never replaced/ },
    'the config is warned of as well',
  );
  const bare = await startJwksServer(t, { keys: [] });
  const withdrawn = await findings(t, { ...config, issuers: { core: { jwks_url: bare.url } } });
  t.match(withdrawn.of('keys core'), {
    level: 'problem',
    what: /lists no key that can be used: the issuer has withdrawn them all/,
  });
  t.equal(withdrawn.code, 1, 'it was reached');
  const dead = await startJwksServer(t);
  await dead.close();
  const away = await findings(t, { ...config, issuers: { core: { jwks_url: `${dead.url}?key=hunter2` } } });
  t.match(away.of('keys core'), {
    level: 'problem',
    what: /no keys from http:\/\/127\.0\.0\.1:\d+\/auth\/jwt\/jwks\.json: .*refused/,
    fix: /jwks_url/,
  });
  t.notMatch(JSON.stringify(away.of('keys core')), /hunter2/);
  t.equal(away.code, 3, 'out of reach');
  const hung = (await listen(t, createServer())).port;
  const slow = await findings(t, {
    ...config,
    issuers: { core: { jwks_url: `http://127.0.0.1:${String(hung)}/`, jwks: { timeout: '200ms' } } },
  });
  t.match(slow.of('keys core'), { level: 'problem', what: /no keys/ });
  const file = join(tempDir(t), 'keys.json');
  writeFileSync(file, keySet([rsaKey()]));
  const filed = await findings(t, { ...config, issuers: { core: { jwks_url: undefined, jwks_file: file } } });
  t.match(filed.of('keys core'), { level: 'ok', what: /accepted: d-1/ });
  t.equal(filed.of('clock core'), undefined);
  makeFifo(`${file}.fifo`);
  const fifo = await findings(t, { ...config, issuers: { core: { jwks_url: undefined, jwks_file: `${file}.fifo` } } });
  t.match(fifo.of('keys core'), { level: 'problem', what: /FIFO/ });
  t.equal(fifo.code, 1);
});

t.test('the clock against the Date of the Core', async (t) => {
  const { config } = await sound(t);
  const rows: readonly { name: string; offsetS: number | null; level: string; what: RegExp }[] = [
    { name: 'behind', offsetS: -60, level: 'problem', what: /behind this machine/ },
    { name: 'ahead', offsetS: 60, level: 'problem', what: /ahead of this machine/ },
    { name: 'within the skew', offsetS: 4, level: 'ok', what: /agrees/ },
    { name: 'no Date', offsetS: null, level: 'warning', what: /sends no Date/ },
  ];
  for (const { name, offsetS, level, what } of rows) {
    const jwks = await startJwksServer(t);
    jwks.behave((_req, res) => {
      res.sendDate = false;
      if (offsetS !== null) res.setHeader('date', new Date(Date.now() + offsetS * 1000).toUTCString());
      res.end(keySet([rsaKey()]));
    });
    const found = await findings(t, { ...config, issuers: { core: { jwks_url: jwks.url } } });
    t.match(found.of('clock core'), { level, what }, name);
    t.equal(found.code, level === 'problem' ? 1 : 0, name);
  }
});

t.test('doctor reaches the upstream, or says why not', async (t) => {
  const { config } = await sound(t);
  const c = certificates(t);
  const secure = await startUpstreamServer(t, { tls: { cert: c.server.cert, key: c.server.key } });
  const unix = await startUpstreamServer(t, { unix: join(tempDir(t), 'app.sock') });
  const gone = await startUpstreamServer(t);
  await gone.close();
  const silent = (await listen(t, createServer())).port;
  const rows: readonly { name: string; upstream: object; level: string; what: RegExp; code: number }[] = [
    { name: 'not there', upstream: { url: gone.url }, level: 'problem', what: /not reached at .*refused/, code: 3 },
    {
      name: 'TLS that verifies',
      upstream: { url: secure.url, ca_file: c.ca.certFile },
      level: 'ok',
      what: /answers/,
      code: 0,
    },
    {
      name: 'TLS of an unknown authority',
      upstream: { url: secure.url, ca_file: c.otherCa.certFile },
      level: 'problem',
      what: /authority|verif|self-signed/,
      code: 3,
    },
    {
      name: 'TLS for another name',
      upstream: { url: secure.url, ca_file: c.ca.certFile, server_name: 'other.example' },
      level: 'problem',
      what: /another host name/,
      code: 3,
    },
    {
      name: 'TLS to what speaks none',
      upstream: { url: `https://127.0.0.1:${String(silent)}`, connect_timeout: '200ms' },
      level: 'problem',
      what: /within 200 ms/,
      code: 3,
    },
    {
      name: 'no CA file',
      upstream: { url: secure.url, ca_file: '/none' },
      level: 'problem',
      what: /does not exist/,
      code: 3,
    },
    { name: 'a unix socket', upstream: { url: unix.url }, level: 'ok', what: /answers at \//, code: 0 },
    {
      name: 'no unix socket',
      upstream: { url: 'unix:/nonexistent.sock' },
      level: 'problem',
      what: /not reached/,
      code: 3,
    },
  ];
  for (const { name, upstream, level, what, code } of rows) {
    const found = await findings(t, { ...config, upstream });
    t.match(found.of('receiver'), { level, what }, name);
    t.equal(found.code, code, name);
  }
});

t.test('the upstream is not to be reached past us', async (t) => {
  const { config } = await sound(t);
  const own = Object.values(networkInterfaces())
    .flatMap((entries) => entries ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address;
  const everywhere = createServer();
  await new Promise<void>((resolve) => everywhere.listen(0, '0.0.0.0', resolve));
  t.teardown(() => everywhere.close());
  const address = everywhere.address();
  const port = String(typeof address === 'object' ? address?.port : '');
  const open = await findings(t, { ...config, upstream: { url: `http://127.0.0.1:${port}` } });
  const named = await findings(t, { ...config, upstream: { url: `http://${own ?? '127.0.0.1'}:${port}` } });
  if (own === undefined) {
    t.match(open.of('receiver past us'), { level: 'ok' }, 'this machine has no other address');
  } else {
    t.match(open.of('receiver past us'), {
      level: 'problem',
      what: new RegExp(`answers at .*${own}`),
      fix: /bind it to 127\.0\.0\.1/,
    });
    t.match(named.of('receiver past us'), { level: 'warning', fix: /bind it to 127\.0\.0\.1/ });
  }
  const elsewhere = await findings(t, { ...config, upstream: { url: 'http://192.0.2.1:1', connect_timeout: '100ms' } });
  t.match(elsewhere.of('receiver past us'), { level: 'warning', what: /another machine/, fix: /network policy/ });
  const path = join(tempDir(t), 'app.sock');
  const unix = await startUpstreamServer(t, { unix: path });
  chmodSync(path, 0o777);
  t.match((await findings(t, { ...config, upstream: { url: unix.url } })).of('receiver past us'), {
    level: 'warning',
    fix: /chmod o-w/,
  });
  chmodSync(path, 0o770);
  t.match((await findings(t, { ...config, upstream: { url: unix.url } })).of('receiver past us'), { level: 'ok' });
});

t.test('certificates and file modes', async (t) => {
  const { config } = await sound(t);
  const c = certificates(t);
  let made = 0;
  const renew = (days: number, ...more: readonly string[]): object => {
    made += 1;
    const cert = join(c.dir, `${String(made)}.crt`);
    openssl(
      c.dir,
      'req',
      '-x509',
      '-key',
      c.server.keyFile,
      '-subj',
      '/CN=x',
      '-out',
      cert,
      '-days',
      String(days),
      ...more,
    );
    return { cert_file: cert, key_file: c.server.keyFile };
  };
  const local = ['-addext', 'subjectAltName=IP:127.0.0.1'];
  const rows: readonly { name: string; tls: object; subject: string; level: string; what: RegExp }[] = [
    {
      name: 'long enough',
      tls: renew(15, ...local),
      subject: 'certificate',
      level: 'ok',
      what: /^valid until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
    },
    {
      name: 'within 14 days',
      tls: renew(13, ...local),
      subject: 'certificate',
      level: 'warning',
      what: /^expires on \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, in 1[23] days$/,
    },
    { name: 'the names', tls: renew(20, ...local), subject: 'certificate names', level: 'ok', what: /127\.0\.0\.1/ },
    {
      name: 'other names',
      tls: renew(20, '-addext', 'subjectAltName=DNS:other.example'),
      subject: 'certificate names',
      level: 'warning',
      what: /other\.example/,
    },
    { name: 'no names', tls: renew(20), subject: 'certificate names', level: 'problem', what: /no subjectAltName/ },
    {
      name: 'no file',
      tls: { cert_file: '/none', key_file: '/none' },
      subject: 'certificate',
      level: 'problem',
      what: /does not exist/,
    },
    {
      name: 'no pair',
      tls: { cert_file: c.client.certFile, key_file: c.server.keyFile },
      subject: 'certificate',
      level: 'problem',
      what: /is not the key/,
    },
  ];
  for (const { name, tls, subject, level, what } of rows) {
    t.match((await findings(t, { ...config, listen: { tls } })).of(subject), { level, what }, name);
  }
  for (const [mode, level, what] of [
    [0o600, 'ok', /others may not/],
    [0o660, 'warning', /its group may change/],
    [0o604, 'warning', /every user/],
  ] as const) {
    chmodSync(c.server.keyFile, mode);
    t.match(
      (await findings(t, { ...config, listen: { tls: renew(20, ...local) } })).of('private key'),
      { level, what },
      mode.toString(8),
    );
  }
  const open = await findings(t, config, 0o666);
  t.match(open.of('config file'), { level: 'problem', fix: /chmod o-w/ });
  t.equal(open.code, 1);
});

t.test('what is doubtful about the config is said as well', async (t) => {
  const { config } = await sound(t);
  const found = await findings(t, {
    ...config,
    log: { level: 'debug' },
    receiver: {},
    admin: { host: '0.0.0.0', port: 0 },
  });
  t.match(found.of('config'), {
    level: 'warning',
    what: /^sallyport\.yaml:\d+:\d+: the operators’ listener can be reached/,
    fix: /^change line \d+; allowed: ./,
    out_of_reach: false,
  });
  t.equal(found.code, 0);
});

t.test('a problem here outweighs what is out of reach', async (t) => {
  const { config } = await sound(t);
  t.equal((await findings(t, { ...config, upstream: { url: 'unix:/nonexistent.sock' } }, 0o666)).code, 1);
});

t.test('a bad config is said to be bad, with exit code 1', async (t) => {
  const io = await doctor(t, { listen: { port: 'x' } });
  t.equal(io.code(), 1);
  t.match(io.err(), /^sallyport\.yaml:\d+:\d+: error: /);
});

t.test('targets and tokens of the calling side are tried, without asking a target anything', async (t) => {
  const target = await startUpstreamServer(t);
  const closing = createServer();
  const { port: closed, close } = await listen(t, closing);
  await close();
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, 'a.b.c', { mode: 0o600 });
  const cwd = tempDir(t);
  const allow = [{ methods: ['GET'], path: '/**' }];
  const config = {
    admin: { port: 0 },
    egress: {
      listen: { port: 0 },
      tokens: { own: { file: tokenFile }, gone: { file: join(cwd, 'nothing') } },
      targets: [
        { name: 'orders', prefix: '/orders', url: target.url, token: 'own', allow },
        { name: 'bills', prefix: '/bills', url: `http://127.0.0.1:${String(closed)}`, token: 'gone', allow },
      ],
    },
  };
  writeFileSync(join(cwd, 'sallyport.yaml'), JSON.stringify(config));
  const io = captureIo({ cwd });
  await run(['doctor', '--config', 'sallyport.yaml'], io);
  t.match(io.out(), /^ok: target orders: answers at http:\/\/127\.0\.0\.1:\d+$/m);
  t.match(io.out(), /^problem: target bills: not reached at http:\/\/127\.0\.0\.1:\d+: .*; fix: start it/m);
  t.match(io.out(), /^ok: token own: is given$/m);
  t.match(io.out(), /^problem: token gone: .*; fix: correct its source in egress\.tokens/m);
  t.notMatch(io.out(), /receiver/, 'there is no other side');
  t.notMatch(io.out(), /a\.b\.c/);
  t.equal(target.requests.length, 0);
  t.equal(io.code(), 1);
});
