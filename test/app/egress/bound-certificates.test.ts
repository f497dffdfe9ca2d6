/** Tokens that are bound to a certificate (RFC 8705): real oidc-provider, and a Sallyport as the target. */
import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:https';
import { TLSSocket } from 'node:tls';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { listen } from '../../support/listening.js';
import { until } from '../../support/until.js';
import type { InProcessProxy } from '../in-process-proxy.js';
import { fetchesOf, startBoundPeers } from './bound-peers.js';
import { ok, startCalling, startTarget } from './calling.js';

// That of the file, which is half a minute otherwise.
t.setTimeout(120_000);

const { ca, client, server } = certificates(t);
const { trusting, startAnswering, oauth, pairFiles, anotherPair } = await startBoundPeers(t);

const takenUp = 'the certificate for a target was reloaded';
const leftOut = 'the certificate for a target was not reloaded; the old one stays in use';

async function untilSaid(proxy: InProcessProxy, msg: string, times = 1): Promise<void> {
  await until(msg, () => proxy.logs().filter((line) => line.msg === msg).length >= times);
}

t.test('a certificate for a target, and a token that is bound to it; both follow their files', async (t) => {
  const origin = await startAnswering(t);
  const { put, certFile, keyFile } = pairFiles(t, client);
  const tokens = { own: oauth('certificate', { certificate_file: certFile, key_file: keyFile }) };
  const shown = { ...trusting, cert_file: certFile, key_file: keyFile };
  const { call, proxy } = await startCalling(t, origin, shown, { tokens });
  t.equal((await call('/orders/v1')).status, 200);
  t.match(
    proxy.app.status().certificates.map(({ certificate }) => certificate),
    ['target:orders'],
    'its end is told as that of the others',
  );
  const another = anotherPair(t);
  put({ cert: another.cert, key: client.key });
  await untilSaid(proxy, leftOut);
  t.equal((await call('/orders/v1')).status, 200, 'the old one stays');
  put(another);
  await untilSaid(proxy, takenUp);
  for (let i = 0; i < 5; i += 1) t.equal((await call('/orders/v1')).status, 200);
  t.equal(await fetchesOf(proxy, 'own'), 1, 'one token for the new pair');
});

t.test('no request fails while the pair of two targets is replaced again and again', async (t) => {
  const origin = await startAnswering(t);
  const { put, certFile, keyFile } = pairFiles(t, client);
  const tokens = { own: oauth('certificate', { certificate_file: certFile, key_file: keyFile }) };
  const target = { ...trusting, url: origin, token: 'own', cert_file: certFile, key_file: keyFile };
  const allow = [{ methods: ['*'], path: '/**' }];
  const targets = ['orders', 'bills'].map((name) => ({ ...target, name, prefix: `/${name}`, allow }));
  const { call, proxy } = await startCalling(t, origin, {}, { tokens, targets });
  const answers: string[] = [];
  let isOver = false;
  const callers = ['/orders/v1', '/bills/v1', '/orders/v2', '/bills/v2'].map(async (path) => {
    while (!isOver) {
      const answer = await call(path);
      answers.push(`${String(answer.status)} after ${answer.field('x-sallyport-attempts') ?? ''}`);
    }
  });
  // More often than a token may be refused before the one in hand goes on being given.
  for (let round = 1; round <= 8; round += 1) {
    const had = answers.length;
    await until('requests are answered', () => answers.length > had + 10);
    put(anotherPair(t));
    await untilSaid(proxy, takenUp, 2 * round);
  }
  isOver = true;
  await Promise.all(callers);
  t.same([...new Set(answers)], ['200 after 1'], 'and none is sent twice');
});

t.test('a token is bound to what its target is shown, though the files hold another pair already', async (t) => {
  const origin = await startAnswering(t);
  const { put, certFile, keyFile } = pairFiles(t, client);
  const tokens = { own: oauth('certificate', { certificate_file: certFile, key_file: keyFile }) };
  const shown = { ...trusting, cert_file: certFile, key_file: keyFile };
  // Nobody looks at the files again.
  const { call } = await startCalling(t, origin, shown, { tokens }, {}, 600_000);
  put(anotherPair(t));
  const answer = await call('/orders/v1');
  t.equal(answer.status, 200);
  t.equal(answer.field('x-sallyport-attempts'), '1');
});

t.test('what a target is shown is the pair that its files hold, from the next request on', async (t) => {
  const shown: string[] = [];
  const target = createServer({ cert: server.cert, key: server.key, ca: ca.cert, requestCert: true }, (req, res) => {
    if (req.socket instanceof TLSSocket) shown.push(req.socket.getPeerCertificate().serialNumber);
    req.resume().on('end', () => res.end('done'));
  });
  const { port } = await listen(t, target);
  const { put, certFile, keyFile } = pairFiles(t, client);
  const pair = { cert_file: certFile, key_file: keyFile };
  const { call, proxy } = await startCalling(t, `https://127.0.0.1:${String(port)}`, { ...trusting, ...pair });
  for (let i = 0; i < 2; i += 1) t.equal((await call('/orders/v1')).status, 200);
  const another = anotherPair(t);
  put(another);
  await untilSaid(proxy, takenUp);
  t.equal((await call('/orders/v1')).status, 200);
  const serialOf = (pem: string): string => new X509Certificate(pem).serialNumber;
  t.same(shown, [client.cert, client.cert, another.cert].map(serialOf));
});

t.test('without its certificate or its key a token of theirs is worth nothing', async (t) => {
  const origin = await startAnswering(t);
  const tokens = { own: oauth('certificate', { certificate_file: client.certFile, key_file: client.keyFile }) };
  const { call } = await startCalling(t, origin, trusting, { tokens });
  t.equal((await call('/orders/v1')).status, 401);
});

t.test('a pair that cannot be shown refuses the config, by the name of its file', async (t) => {
  const target = await startTarget(t, ok);
  const shown = { ...trusting, cert_file: client.certFile, key_file: server.keyFile };
  await t.rejects(startCalling(t, target.url.replace('http:', 'https:'), shown), /is not the key of the certificate/);
});
