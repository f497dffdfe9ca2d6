/**
 * Handshakes of many connections at once: Node takes all that it finds within one turn of the event loop, and a
 * signature is dear.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import t from 'tap';
import { certificates } from '../../../support/certificates.js';
import { listen } from '../../../support/listening.js';
import { hasAllHandles, openDescriptors } from '../../../support/linux.js';
import { openssl } from '../../../support/openssl.js';
import { startProxyProcess } from '../../../support/proxy-process.js';
import { connectRaw } from '../../../support/raw-client.js';
import type { Scope } from '../../../support/scope.js';
import { tempDir } from '../../../support/temp-dir.js';
import { until } from '../../../support/until.js';

const connections = 200;

/** A certificate whose signature takes some milliseconds, so that what is done in one turn shows. */
function dearCertificate(t: Scope): { readonly certFile: string; readonly keyFile: string; readonly cert: string } {
  const dir = tempDir(t);
  const [certFile, keyFile] = [join(dir, 'tls.crt'), join(dir, 'tls.key')];
  const key = ['-newkey', 'rsa:4096', '-nodes', '-keyout', keyFile];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  openssl(dir, 'req', '-x509', ...key, ...subject, '-out', certFile);
  return { certFile, keyFile, cert: readFileSync(certFile, 'utf8') };
}

/** What a client of TLS says first. */
async function clientHello(t: Scope): Promise<Buffer> {
  const server = createServer();
  const heard = new Promise<Buffer>((resolve) => {
    server.once('connection', (socket) => {
      socket
        .on('error', () => undefined)
        .once('data', (bytes: Buffer) => {
          socket.destroy();
          resolve(bytes);
        });
    });
  });
  const { port } = await listen(t, server);
  connectTls({ host: '127.0.0.1', port, servername: 'localhost' }).on('error', () => undefined);
  return heard;
}

/** Connections that say only the beginning, or nothing. */
async function crowdOf(
  t: Scope,
  port: number,
  first: Buffer,
): Promise<{ socket: Socket; isAnswered: () => boolean }[]> {
  return Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect(port, '127.0.0.1');
      t.teardown(() => socket.destroy());
      let answered = false;
      socket
        .on('error', () => undefined)
        .once('data', () => {
          answered = true;
        });
      await once(socket, 'connect');
      if (first.length > 0) socket.write(first);
      return { socket, isAnswered: () => answered };
    }),
  );
}

for (const [title, said] of [
  ['at once', 0],
  ['at once but for their first bytes', 20],
] as const) {
  t.test(`${String(connections)} handshakes ${title} do not keep open connections waiting`, async (t) => {
    const { certFile, keyFile, cert } = dearCertificate(t);
    const proxy = await startProxyProcess(t, {
      config: { listen: { tls: { cert_file: certFile, key_file: keyFile } } },
    });
    const kept = await connectRaw(proxy.port, { tls: { ca: cert, servername: 'localhost' } });
    const head = `GET /orders/1 HTTP/1.1\r\nHost: a\r\nAuthorization: ${proxy.authorization()['Authorization'] ?? ''}\r\n\r\n`;
    kept.write(head);
    t.equal((await kept.readResponse())?.status, 200);
    const hello = await clientHello(t);
    const crowd = await crowdOf(t, proxy.port, hello.subarray(0, said));
    await until('all are accepted', () => openDescriptors(proxy.process.pid) > connections);
    // All at once: it finds them when it goes on.
    proxy.signal('SIGSTOP');
    for (const { socket } of crowd) socket.write(hello.subarray(said));
    await until('all is on its way', () => crowd.every(({ socket }) => socket.writableLength === 0));
    kept.write(head);
    proxy.signal('SIGCONT');
    t.equal((await kept.readResponse())?.status, 200);
    const served = crowd.filter(({ isAnswered }) => isAnswered()).length;
    t.ok(served < connections / 4, `${String(served)} of ${String(connections)} were served before`);
    await until('all are served', () => crowd.every(({ isAnswered }) => isAnswered()), 60_000);
  });
}

t.test('hellos that are reset at once leave nothing, and one that stalls is ended in time', async (t) => {
  const files = certificates(t);
  const proxy = await startProxyProcess(t, {
    config: {
      listen: {
        tls: { cert_file: files.server.certFile, key_file: files.server.keyFile },
        header_timeout: '1s',
      },
    },
  });
  const hello = await clientHello(t);
  await hasAllHandles(proxy.process.pid);
  const atRest = openDescriptors(proxy.process.pid);
  const stalled = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect(proxy.port, '127.0.0.1').on('error', () => undefined);
      t.teardown(() => socket.destroy());
      await once(socket, 'connect');
      socket.resume().write(hello);
      return socket;
    }),
  );
  // Some of them before they are accepted, which then have no address.
  proxy.signal('SIGSTOP');
  for (let i = 0; i < connections; i++) {
    const socket = connect(proxy.port, '127.0.0.1').on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(hello);
    setImmediate(() => socket.resetAndDestroy());
  }
  proxy.signal('SIGCONT');
  await until('those that stall are ended', () => stalled.every(({ closed }) => closed), 20_000);
  await until('nothing is left', () => openDescriptors(proxy.process.pid) <= atRest + 2, 20_000);
  const open = (): Promise<number> => proxy.metric('sallyport_connections_open');
  await until('nor is anything counted', async () => (await open()) === 0);
});

t.test('no handshake is begun anew on an open connection', async (t) => {
  const files = certificates(t);
  const proxy = await startProxyProcess(t, {
    config: { listen: { tls: { cert_file: files.server.certFile, key_file: files.server.keyFile } } },
  });
  const client = connectTls({
    host: '127.0.0.1',
    port: proxy.port,
    ca: files.ca.cert,
    servername: 'localhost',
    maxVersion: 'TLSv1.2',
  });
  t.teardown(() => client.destroy());
  await once(client, 'secureConnect');
  const isAnew = await new Promise<boolean>((resolve) => {
    client.on('error', () => resolve(false));
    client.renegotiate({}, (error) => resolve(error === null));
  });
  t.equal(isAnew, false);
});
