/** What `sallyport doctor` learns by asking real services. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import type { Finding } from '../../../../src/cli/commands/doctor/finding.js';
import { run } from '../../../../src/cli/program.js';
import { djangoOnGunicorn } from '../../../chaos/receivers/django.js';
import { startJwksServer } from '../../../support/jwks-server.js';
import { rsaKey } from '../../../support/keys.js';
import { listen } from '../../../support/listening.js';
import { startPython } from '../../../support/python.js';
import type { Scope } from '../../../support/scope.js';
import { tempDir } from '../../../support/temp-dir.js';
import { baseConfig, type ConfigTree } from '../../../support/proxy-process.js';
import { captureIo } from '../../captured-io.js';

interface Found {
  readonly of: (subject: string) => Finding | undefined;
  readonly code: number | null;
}

async function findings(t: Scope, port: number, config: ConfigTree = {}): Promise<Found> {
  const cwd = tempDir(t);
  const jwks = await startJwksServer(t, { keys: [rsaKey()] });
  const { upstream, ...more } = config;
  const places = {
    issuers: { core: { jwks_url: jwks.url } },
    upstream: { url: `http://127.0.0.1:${String(port)}`, ...(upstream ?? {}) },
  };
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig({ ...more, ...places }));
  const io = captureIo({ cwd });
  await run(['doctor', '--json'], io);
  const { findings: all } = JSON.parse(io.out()) as { findings: readonly Finding[] };
  return { of: (subject) => all.find((finding) => finding.subject === subject), code: io.code() };
}

t.test('a service that sends a body after HEAD', async (t) => {
  const ledger = join(tempDir(t), 'ledger');
  writeFileSync(ledger, '');
  const port = await djangoOnGunicorn.start(t, { LEDGER: ledger });
  const safe = await findings(t, port);
  t.match(safe.of('receiver heads'), {
    level: 'ok',
    what: 'sends a body after HEAD, which upstream.reuse: safe keeps from other callers',
  });
  t.equal(safe.code, 0);
  const always = await findings(t, port, { upstream: { reuse: 'always' } });
  t.match(always.of('receiver heads'), { level: 'problem', fix: 'set upstream.reuse: safe' });
  t.equal(always.code, 1);
});

t.test('a service that takes an unread body for a request', async (t) => {
  const { unread } = await startPython(t, tempDir(t));
  for (const [config, level] of [
    [{}, 'ok'],
    [{ upstream: { reuse: 'never' } }, 'ok'],
    [{ upstream: { reuse: 'always' } }, 'problem'],
    [{ receiver: { reads_bodies: true } }, 'problem'],
  ] as const) {
    t.match(
      (await findings(t, unread, config)).of('receiver bodies'),
      { level, what: /^takes what it leaves unread of a body for a request/ },
      JSON.stringify(config),
    );
  }
});

t.test(
  'a service that keeps to HTTP is asked without credential or identity, at a path that it does not have',
  async (t) => {
    const asked: string[] = [];
    const server = createServer((req, res) => {
      asked.push(`${req.method ?? ''} ${req.url ?? ''} ${Object.keys(req.headers).sort().join(' ')}`);
      res.statusCode = 404;
      req.resume().on('end', () => res.end('none'));
    });
    const found = await findings(t, (await listen(t, server)).port, { upstream: { reuse: 'always' } });
    t.match(found.of('receiver heads'), { level: 'ok', what: 'answers to HEAD have no body' });
    t.match(found.of('receiver bodies'), {
      level: 'ok',
      what: 'what it leaves unread of a body is not taken for a request',
    });
    t.equal(found.code, 0);
    t.match(asked.sort(), [
      /^HEAD \/sallyport-doctor-[0-9a-f-]{36} host user-agent$/,
      /^POST \/sallyport-doctor-[0-9a-f-]{36} content-length content-type host user-agent$/,
    ]);
    t.equal(asked.length, 2);
  },
);

t.test('a service that does not answer', async (t) => {
  const { port } = await listen(
    t,
    createServer(() => undefined),
  );
  const found = await findings(t, port);
  for (const subject of ['receiver heads', 'receiver bodies']) {
    t.match(found.of(subject), { level: 'warning', what: /^no answer to (HEAD|POST) within 3 s/ });
  }
});
