/** What `sallyport doctor` says of a service that is to be asked over HTTP/2. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer as createHttp1 } from 'node:http';
import { createSecureServer, createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import { createServer as createTcp, type Server } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import type { Finding } from '../../../../src/cli/commands/doctor/finding.js';
import { run } from '../../../../src/cli/program.js';
import { certificates } from '../../../support/certificates.js';
import { startJwksServer } from '../../../support/jwks-server.js';
import { rsaKey } from '../../../support/keys.js';
import { listen } from '../../../support/listening.js';
import { baseConfig, type ConfigTree } from '../../../support/proxy-process.js';
import type { Scope } from '../../../support/scope.js';
import { tempDir } from '../../../support/temp-dir.js';
import { captureIo } from '../../captured-io.js';

/** The finding about HTTP/2, and the exit code. */
async function findingOf(
  t: Scope,
  upstream: ConfigTree,
): Promise<{ finding: Finding | undefined; code: number | null }> {
  const cwd = tempDir(t);
  const jwks = await startJwksServer(t, { keys: [rsaKey()] });
  const issuers = { core: { jwks_url: jwks.url } };
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig({ issuers, upstream: { http2: true, ...upstream } }));
  const io = captureIo({ cwd });
  await run(['doctor', '--json'], io);
  const { findings } = JSON.parse(io.out()) as { findings: readonly Finding[] };
  return { finding: findings.find(({ subject }) => subject === 'receiver http2'), code: io.code() };
}

interface Asked {
  readonly headers: IncomingHttpHeaders;
}

/** Answers each stream, and keeps what was asked. */
function answering(server: Server, asked: Asked[], act: (stream: ServerHttp2Stream) => void): Server {
  return server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    asked.push({ headers });
    stream.on('error', () => undefined);
    act(stream);
  });
}

const notFound = (stream: ServerHttp2Stream): void => stream.respond({ ':status': 404 }, { endStream: true });

const speaks = { level: 'ok', what: 'speaks HTTP/2' };
const doesNot = { level: 'problem', what: 'does not speak HTTP/2', fix: /^set upstream\.http2: false/ };

t.test(
  'a service that speaks HTTP/2, on a port, on a socket and over TLS, asked without credential or identity',
  async (t) => {
    const files = certificates(t);
    const { cert, key } = files.server;
    const asked: Asked[] = [];
    const plain = await listen(t, answering(createServer(), asked, notFound));
    t.match(await findingOf(t, { url: `http://127.0.0.1:${String(plain.port)}` }), { finding: speaks, code: 0 });
    const secure = await listen(t, answering(createSecureServer({ cert, key }), asked, notFound));
    const tls = { url: `https://localhost:${String(secure.port)}`, ca_file: files.ca.certFile };
    t.match(await findingOf(t, tls), { finding: speaks, code: 0 });
    const folder = join(tempDir(t), 'run');
    mkdirSync(folder);
    const path = join(folder, 'app.sock');
    const socket = answering(createServer(), asked, notFound);
    await new Promise<void>((resolve) => socket.listen(path, resolve));
    t.teardown(() => socket.close());
    t.match((await findingOf(t, { url: `unix:${path}` })).finding, speaks);
    t.equal(asked.length, 3);
    for (const { headers } of asked) {
      t.equal(headers[':method'], 'GET');
      t.match(headers[':path'], /^\/sallyport-doctor-[0-9a-f-]{36}$/);
      t.notMatch(Object.keys(headers).join(' '), /authorization|x-auth|cookie/);
    }
  },
);

t.test('a service that does not is a problem, and says what to do', async (t) => {
  const { cert, key } = certificates(t).server;
  const old = await listen(
    t,
    createHttp1((_req, res) => res.end()),
  );
  t.match(await findingOf(t, { url: `http://127.0.0.1:${String(old.port)}` }), { finding: doesNot, code: 1 });
  const secure = await listen(
    t,
    createHttps({ cert, key }, (_req, res) => res.end()),
  );
  const ca = certificates(t).ca.certFile;
  const tls = { url: `https://localhost:${String(secure.port)}`, ca_file: ca };
  t.match(await findingOf(t, tls), { finding: doesNot, code: 1 });
});

t.test('one that says nothing in time is out of reach: whether it speaks HTTP/2 nobody knows', async (t) => {
  const { port } = await listen(
    t,
    createTcp((socket) => socket.on('error', () => undefined).resume()),
  );
  const found = await findingOf(t, { url: `http://127.0.0.1:${String(port)}`, connect_timeout: '300ms' });
  const what = 'made no HTTP/2 connection within 300 ms';
  t.match(found, { finding: { level: 'problem', what, fix: /^see why it is slow, or set / }, code: 3 });
});

t.test('one that speaks it, and breaks off instead of a response, is a warning', async (t) => {
  const asked: Asked[] = [];
  const { port } = await listen(
    t,
    answering(createServer(), asked, (stream) => stream.close(2)),
  );
  const found = await findingOf(t, { url: `http://127.0.0.1:${String(port)}` });
  t.match(found, { finding: { level: 'warning', what: /^speaks HTTP\/2, but gave no whole / }, code: 0 });
});

t.test('one that is asked over HTTP/1.1 is not asked over HTTP/2', async (t) => {
  const { port } = await listen(
    t,
    createHttp1((_req, res) => res.end()),
  );
  t.equal((await findingOf(t, { url: `http://127.0.0.1:${String(port)}`, http2: false })).finding, undefined);
});
