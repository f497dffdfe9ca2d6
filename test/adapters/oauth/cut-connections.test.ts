/** A kept connection to an issuer that is given up while nobody asks, or as somebody does. */
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { startIntrospection } from '../../support/introspection-server.js';
import { listen } from '../../support/listening.js';
import { asker, startIntrospector } from './introspector-harness.js';

const caller = asker('192.0.2.1', true);

t.test('the question of a caller is asked again where its connection is cut', async (t) => {
  const { ask, server, active, asked } = await startIntrospector(t);
  server.tokens.set('good', active());
  server.behave((_question, res) => {
    server.behave(null);
    res.destroy();
  });
  t.equal(await ask('good', caller), 'active');
  t.equal(server.questions.length, 2);
  t.same(asked, ['active']);
});

t.test('it is asked again once', async (t) => {
  const { ask, server } = await startIntrospector(t);
  server.behave((_question, res) => res.destroy());
  t.equal(await ask('good', caller), 'unavailable');
  t.equal(server.questions.length, 2);
});

t.test('the question of a stranger is not', async (t) => {
  const { ask, server } = await startIntrospector(t, { settings: { timeoutMs: 3_000 } });
  server.behave((_question, res) => res.destroy());
  await ask('odd', asker('203.0.113.9'));
  t.equal(server.questions.length, 1, 'of strangers as many questions come as are counted');
});

t.test('bytes over TLS that are no TLS, while nobody asks and in the place of a response', async (t) => {
  const { ca, server: own } = certificates(t);
  const issuer = await startIntrospection(t, { tls: { cert: own.cert, key: own.key } });
  const noTls = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n';
  const sides = new Set<Socket>();
  let spoilsNext = false;
  const relay = await listen(
    t,
    createServer((client) => {
      const beyond = connect(issuer.port, '127.0.0.1');
      sides.add(client.on('close', () => beyond.destroy()).on('error', () => undefined));
      beyond.on('close', () => client.destroy()).on('error', () => undefined);
      beyond.pipe(client);
      client.on('data', (bytes) => {
        if (spoilsNext) client.write(noTls);
        else beyond.write(bytes);
        spoilsNext = false;
      });
    }),
  );
  const url = `https://127.0.0.1:${String(relay.port)}/introspect`;
  const { ask, active, introspection } = await startIntrospector(t, {
    server: issuer,
    settings: { url, caFile: ca.certFile },
  });
  for (let round = 0; round < 6; round += 1) {
    const token = `good${String(round)}`;
    issuer.tokens.set(token, active());
    t.equal(await ask(token, caller), 'active', introspection.failure()?.why ?? '');
    if (round % 2 === 1) spoilsNext = true;
    else for (const side of sides) side.write(noTls);
    await delay(20);
  }
});
