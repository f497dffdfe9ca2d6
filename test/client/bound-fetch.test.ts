/** Requests with bound tokens, sent by a program to a running proxy. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  createBoundFetch,
  createProofKey,
  type BoundFetchOptions,
  type BoundRequest,
} from '../../src/client/token/source.js';
import { startInProcessProxy, type InProcessProxy } from '../app/in-process-proxy.js';
import { certificateDigest } from '../support/certificate-digest.js';
import { certificates } from '../support/certificates.js';
import { rsaKey } from '../support/keys.js';
import { freePort, listen } from '../support/listening.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { mintToken } from '../support/tokens.js';

const { ca, client, server, stranger, dir } = certificates(t);
const nonceKeyFile = join(dir, 'nonces');
writeFileSync(nonceKeyFile, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
const tls = { cert_file: server.certFile, key_file: server.keyFile, client_auth: 'request' };
const routes = [
  {
    name: 'orders',
    methods: ['GET', 'POST'],
    path: '/orders/{id}',
    subjects: ['checkout'],
    permissions: [],
    idempotency: 'none',
  },
];
const key = createProofKey();
const receiver = await startUpstreamServer(t);

async function deploy(dpop: ConfigTree = {}): Promise<{ readonly proxy: InProcessProxy; readonly url: string }> {
  const port = await freePort();
  const origin = `https://localhost:${port}`;
  const config: ConfigTree = {
    listen: { port, tls, dpop: { origins: [origin], ...dpop } },
    store: { memory: {} },
    routes,
  };
  return { proxy: await startInProcessProxy(t, { receiver, config }), url: `${origin}/orders/1` };
}

function tokensWith(cnf: object): BoundFetchOptions['tokens'] {
  return { getToken: async () => Promise.resolve(mintToken({ key: rsaKey(), claims: { cnf } })) };
}

function boundFetch(options: Partial<BoundFetchOptions>, cnf: object): ReturnType<typeof createBoundFetch> {
  const bound = createBoundFetch({ tokens: tokensWith(cnf), ca: ca.cert, ...options });
  t.teardown(async () => bound.close());
  return bound;
}

const ofKey = { jkt: key.thumbprint };

t.test('each request has a proof of its own', async (t) => {
  const { url } = await deploy();
  const bound = boundFetch({ key }, ofKey);
  for (const init of [
    {},
    {},
    { method: 'POST', body: 'x' },
    { method: 'post', headers: [['X-A', 'b']] as [string, string][] },
  ]) {
    t.equal((await bound.fetch(`${url}?a=b`, init)).status, 200);
  }
  t.same(receiver.requests.at(-1)?.field('x-a'), ['b']);
  t.same(receiver.requests.at(-1)?.field('dpop'), []);
});

t.test('a nonce is asked for once, and repeated from then on, at each service its own', async (t) => {
  const [one, other] = [await deploy({ nonce_key_file: nonceKeyFile }), await deploy({ nonce_key_file: nonceKeyFile })];
  const bound = boundFetch({ key }, ofKey);
  const refused = async ({ proxy }: typeof one): Promise<number> =>
    proxy.metric('sallyport_denials_total{route="orders",reason="proof_nonce"}');
  for (const body of ['text', new URLSearchParams({ a: 'b' }), Buffer.from('bytes'), new Blob(['blob'])]) {
    t.equal((await bound.fetch(one.url, { method: 'POST', body })).status, 200);
  }
  t.equal(await refused(one), 1, 'once for four requests');
  const streamed = async (): Promise<number> => {
    const body = new ReadableStream({
      start: (controller) => {
        controller.enqueue(Buffer.from('stream'));
        controller.close();
      },
    });
    return (await bound.fetch(other.url, { method: 'POST', body, duplex: 'half' })).status;
  };
  t.equal(await streamed(), 401, 'a stream is gone');
  t.equal(await streamed(), 200, 'its nonce was kept');
  t.equal(await refused(other), 1);
});

t.test('a form is sent as one, and once more where a nonce is asked for', async (t) => {
  const { url, proxy } = await deploy({ nonce_key_file: nonceKeyFile });
  const bound = boundFetch({ key }, ofKey);
  const body = new FormData();
  body.set('name', 'of the form');
  body.set('file', new Blob(['of the file']), 'a.txt');
  t.equal((await bound.fetch(url, { method: 'POST', body })).status, 200);
  t.equal(await proxy.metric('sallyport_denials_total{route="orders",reason="proof_nonce"}'), 1);
  const seen = receiver.requests.at(-1);
  t.match(seen?.field('content-type'), [/^multipart\/form-data; boundary=/]);
  t.match(seen?.body.toString(), /name="name"\r\n\r\nof the form\r\n[^]*filename="a.txt"\r\n[^]*of the file\r\n/);
});

t.test('no server makes it ask more than twice, or follow', async (t) => {
  const seen: (string | undefined)[] = [];
  const answers: Record<string, (count: number) => readonly [number, Record<string, string>]> = {
    '/always-new': (count) => [401, { 'dpop-nonce': `n-${count}` }],
    '/always-the-same': () => [401, { 'dpop-nonce': 'same' }],
    '/none': () => [401, {}],
    '/malformed': () => [401, { 'dpop-nonce': 'a"b' }],
    '/elsewhere': () => [302, { location: 'http://127.0.0.1:1/' }],
  };
  const server = createServer((req, res) => {
    seen.push(req.headers.authorization);
    const [status, headers] = answers[req.url ?? '']?.(seen.length) ?? [404, {}];
    res.writeHead(status, headers).end();
  });
  const { port } = await listen(t, server);
  for (const [path, times, status] of [
    ['/always-new', 2, 401],
    ['/always-the-same', 2, 401],
    ['/none', 1, 401],
    ['/malformed', 1, 401],
    ['/elsewhere', 1, 302],
  ] as const) {
    seen.length = 0;
    const { status: answered } = await boundFetch({ key }, ofKey).fetch(`http://127.0.0.1:${port}${path}`);
    t.same([answered, seen.length], [status, times], path);
    t.equal(new Set(seen).size, 1, 'one token for both');
  }
});

t.test('no redirect is followed, whatever the request says of redirects', async (t) => {
  const seen: (string | undefined)[] = [];
  const server = createServer((req, res) => {
    seen.push(req.url);
    res.writeHead(307, { location: '/elsewhere' }).end();
  });
  const { port } = await listen(t, server);
  for (const redirect of [undefined, 'manual', 'follow']) {
    const init = { redirect } as BoundRequest;
    t.equal((await boundFetch({ key }, ofKey).fetch(`http://127.0.0.1:${port}/a`, init)).status, 307);
  }
  await t.rejects(boundFetch({ key }, ofKey).fetch(`http://127.0.0.1:${port}/a`, { redirect: 'error' }));
  t.same(seen, ['/a', '/a', '/a', '/a']);
});

t.test('a certificate is shown when TLS begins', async (t) => {
  const { url } = await deploy();
  const digest = certificateDigest(client.cert);
  const own = { certificate: client.cert, privateKey: client.key };
  const another = { certificate: stranger.cert, privateKey: stranger.key };
  const cnf = { 'x5t#S256': digest };
  t.equal((await boundFetch({ certificate: own }, cnf).fetch(url)).status, 200);
  t.equal((await boundFetch({ certificate: another }, cnf).fetch(url)).status, 401);
  t.equal((await boundFetch({ certificate: own, key }, { ...cnf, ...ofKey }).fetch(url)).status, 200, 'both');
  t.throws(() => createBoundFetch({ tokens: tokensWith({}) }), {
    name: 'TypeError',
    message: 'createBoundFetch: neither key nor certificate: tokens are bound to one of them',
  });
});
