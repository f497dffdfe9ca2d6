/**
 * KeyUpdate of TLS 1.3 (RFC 8446 §4.6.3): a record of 27 bytes for which two keys are derived, of which OpenSSL takes
 * any number.
 */
import t from 'tap';
import { certificates } from '../../../support/certificates.js';
import { connectKeyUpdater } from '../../../support/key-updates.js';
import { connectRaw } from '../../../support/raw-client.js';
import type { Scope } from '../../../support/scope.js';
import { until } from '../../../support/until.js';
import { startProxy, type Harness } from '../../harness.js';

async function start(t: Scope): Promise<{ readonly proxy: Harness; readonly ca: string }> {
  const { server, ca } = certificates(t);
  const proxy = await startProxy(t, {
    config: { listen: { http2: true, tls: { cert_file: server.certFile, key_file: server.keyFile } } },
    tls: { cert: server.cert, key: server.key, clientCa: null, clientAuth: 'require' },
  });
  return { proxy, ca: ca.cert };
}

for (const protocol of ['http/1.1', 'h2']) {
  for (const [kind, count, asks] of [
    ['and asks for others', 33, true],
    ['and asks for none', 66, false],
  ] as const) {
    t.test(`${protocol}: a connection that changes its keys again and again ${kind} is ended`, async (t) => {
      const { proxy, ca } = await start(t);
      const client = await connectKeyUpdater(t, proxy.port, { ca, protocol });
      client.send(client.updates(count, asks));
      await until('it is ended', () => client.isClosed());
      t.same(proxy.counted.connectionEndings, ['key_updates']);
      await until('nothing is left of it', () => proxy.server.counts().connections === 0);
    });
  }
}

t.test('one that changes its keys now and then is served', async (t) => {
  const { proxy, ca } = await start(t);
  const client = await connectKeyUpdater(t, proxy.port, { ca });
  const head = `GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`;
  for (let served = 1; served <= 6; served += 1) {
    client.send(Buffer.concat([client.updates(5, true), client.data(head)]));
    await until('it is answered', () => client.received().split('HTTP/1.1 200 ').length > served);
  }
  t.equal(client.isClosed(), false);
  t.same(proxy.counted.connectionEndings, []);
});

t.test('where many change their keys at once, others without a credential have their turn in between', async (t) => {
  const { proxy, ca } = await start(t);
  const tls = { ca, servername: 'localhost', localAddress: '127.0.0.2' };
  const kept = await connectRaw(proxy.port, { tls });
  const crowd = await Promise.all(Array.from({ length: 12 }, async () => connectKeyUpdater(t, proxy.port, { ca })));
  const floods = crowd.map((client) => client.updates(400, true));
  for (const [index, client] of crowd.entries()) client.send(floods[index] ?? Buffer.alloc(0));
  kept.write('GET /orders HTTP/1.1\r\nHost: a\r\n\r\n');
  t.equal((await kept.readResponse())?.status, 401);
  const ended = proxy.counted.connectionEndings.length;
  t.ok(ended < crowd.length / 2, `${String(ended)} of ${String(crowd.length)} were read before`);
  await until('all are ended', () => proxy.counted.connectionEndings.length === crowd.length);
  kept.end();
});
