import { X509Certificate } from 'node:crypto';
import { chmodSync, renameSync } from 'node:fs';
import { connect, type PeerCertificate } from 'node:tls';
import t from 'tap';
import { certificates, type Certificates } from '../../support/certificates.js';
import { request } from '../../support/raw-client.js';
import { replaceFile } from '../../support/replace-file.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { startInProcessProxy, type InProcessProxy } from '../in-process-proxy.js';

/** Which certificate the listener shows. */
async function shown(port: number, c: Certificates): Promise<string> {
  const certificate = await new Promise<PeerCertificate>((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', ca: c.ca.cert, cert: c.client.cert, key: c.client.key }, () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    });
    socket.on('error', reject);
  });
  return certificate.fingerprint256;
}

function fingerprint(pem: string): string {
  return new X509Certificate(pem).fingerprint256;
}

async function start(t: Scope, c: Certificates): Promise<InProcessProxy> {
  return startInProcessProxy(t, {
    config: {
      listen: { tls: { cert_file: c.server.certFile, key_file: c.server.keyFile, client_ca_file: c.ca.certFile } },
    },
  });
}

function problems(proxy: InProcessProxy): number {
  return proxy.logs().filter(({ msg }) => msg === 'the certificates were not reloaded; the old ones stay in use')
    .length;
}

t.test('certificates are taken up when their files change', async (t) => {
  const c = certificates(t);
  const proxy = await start(t, c);
  t.equal(await shown(proxy.port, c), fingerprint(c.server.cert));
  replaceFile(c.server.certFile, c.renewed.cert);
  await until('half of the pair is noticed', () => problems(proxy) > 0);
  t.equal(await shown(proxy.port, c), fingerprint(c.server.cert), 'the old pair stays until the new one is whole');
  replaceFile(c.server.keyFile, c.renewed.key);
  await until('the new pair is shown', async () => (await shown(proxy.port, c)) === fingerprint(c.renewed.cert));
  t.ok(
    proxy
      .logs()
      .some(({ msg, valid_to: validTo }) => msg === 'the certificates were reloaded' && typeof validTo === 'string'),
  );
  const answer = await request(
    proxy.port,
    { path: '/orders' },
    { tls: { ca: c.ca.cert, cert: c.client.cert, key: c.client.key } },
  );
  t.equal(answer.status, 401, 'and requests are served');
});

t.test('another client CA counts for connections to come', async (t) => {
  const c = certificates(t);
  const proxy = await start(t, c);
  const asStranger = { tls: { ca: c.ca.cert, cert: c.stranger.cert, key: c.stranger.key } };
  await t.rejects(request(proxy.port, { path: '/orders' }, asStranger));
  replaceFile(c.ca.certFile, c.otherCa.cert);
  await until('the stranger is let in', async () =>
    request(proxy.port, { path: '/orders' }, asStranger).then(
      ({ status }) => status === 401,
      () => false,
    ),
  );
  await t.rejects(
    request(proxy.port, { path: '/orders' }, { tls: { ca: c.ca.cert, cert: c.client.cert, key: c.client.key } }),
  );
});

t.test('files that break or go leave the old certificates in use', async (t) => {
  const c = certificates(t);
  const proxy = await start(t, c);
  replaceFile(c.server.certFile, 'nonsense');
  await until('nonsense is noticed', () => problems(proxy) === 1);
  renameSync(c.server.keyFile, `${c.server.keyFile}.away`);
  await until('the loss is noticed', () => problems(proxy) === 2);
  t.equal(await shown(proxy.port, c), fingerprint(c.server.cert));
  t.equal(proxy.app.readiness().status, 'ready');
});

t.test(
  'a private key that others may read is told of at start, at a reload of the config, and when its file is replaced',
  async (t) => {
    const c = certificates(t);
    chmodSync(c.server.keyFile, 0o644);
    const proxy = await start(t, c);
    const logged = (): readonly string[] =>
      proxy
        .logs()
        .flatMap(({ level, ...line }) => (level === 'warn' ? [JSON.stringify(line)] : []))
        .filter((line) => line.includes('every user of this machine may read (mode 0644)'));
    t.match(logged(), [/listen\.tls\.key_file names a file that every user.*the config has a warning/]);
    t.match(proxy.app.status().config.warnings, [/listen\.tls\.key_file names a file/]);

    chmodSync(c.server.keyFile, 0o600);
    await proxy.app.reload();
    t.same(proxy.app.status().config.warnings, [], 'mended');
    chmodSync(c.server.keyFile, 0o644);
    await proxy.app.reload();
    t.equal(logged().length, 2, 'open again');

    replaceFile(c.server.certFile, c.renewed.cert);
    replaceFile(c.server.keyFile, c.renewed.key);
    await until('the new pair is shown', async () => (await shown(proxy.port, c)) === fingerprint(c.renewed.cert));
    t.match(logged()[2], /the new file of a secret is one that every user/);
    t.notMatch(JSON.stringify(proxy.logs()), /PRIVATE KEY/);
  },
);
