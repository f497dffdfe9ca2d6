/** docs/contract.md 2: TLS on either side, unix sockets, and the listener's switches. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { once } from 'node:events';
import t from 'tap';
import { certificates } from '../support/certificates.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { checkRefusal, refusals } from './refusals.js';

t.test('callers over TLS, with client certificates, reloaded when the files change', async (t) => {
  const pem = certificates(t);
  const proxy = await startProxyProcess(t, {
    config: {
      listen: {
        tls: {
          cert_file: pem.server.certFile,
          key_file: pem.server.keyFile,
          client_ca_file: pem.ca.certFile,
          client_auth: 'require',
        },
      },
    },
  });
  const trusted = { ca: pem.ca.cert, servername: 'localhost', cert: pem.client.cert, key: pem.client.key };
  t.equal((await proxy.request({ path: '/orders', headers: proxy.authorization() }, { tls: trusted })).status, 200);
  t.same(proxy.receiver.requests.at(-1)?.field('x-forwarded-proto'), ['https']);
  const refused = [
    { ...trusted, cert: undefined, key: undefined },
    { ...trusted, cert: pem.stranger.cert, key: pem.stranger.key },
    { ...trusted, maxVersion: 'TLSv1.1', minVersion: 'TLSv1' } as const,
  ];
  const before = proxy.receiver.requests.length;
  for (const tls of refused) {
    const status = await proxy.request({ path: '/orders', headers: proxy.authorization() }, { tls }).then(
      (response) => response.status,
      () => 'refused',
    );
    t.equal(status, 'refused');
  }
  t.equal(
    await proxy.request({ path: '/orders' }).then(
      ({ status }) => status,
      () => 400,
    ),
    400,
    'plaintext',
  );
  t.equal(proxy.receiver.requests.length, before);

  const serial = async (): Promise<string> => {
    const socket = connect({ port: proxy.port, host: '127.0.0.1', ...trusted });
    await once(socket, 'secureConnect');
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  };
  const first = await serial();
  copyFileSync(pem.renewed.keyFile, pem.server.keyFile);
  copyFileSync(pem.renewed.certFile, pem.server.certFile);
  await until('the new certificate', async () => (await serial()) !== first);
  t.equal((await proxy.request({ path: '/orders', headers: proxy.authorization() }, { tls: trusted })).status, 200);
  t.same(await proxy.exposures(), []);
});

t.test('the upstream over TLS is verified', async (t) => {
  const pem = certificates(t);
  const rows = [
    { name: 'its own authority', certificate: pem.server, tls: { ca_file: pem.ca.certFile }, status: 200 },
    { name: 'no authority that we know', certificate: pem.server, tls: {}, status: 503 },
    { name: 'another authority', certificate: pem.strangerServer, tls: { ca_file: pem.ca.certFile }, status: 503 },
    { name: 'another name', certificate: pem.misnamed, tls: { ca_file: pem.ca.certFile }, status: 503 },
    {
      name: 'a name that is configured',
      certificate: pem.misnamed,
      tls: { ca_file: pem.ca.certFile, server_name: 'other.example' },
      status: 200,
    },
  ];
  const receivers = await Promise.all(
    rows.map(async ({ certificate: { cert, key } }) => startUpstreamServer(t, { tls: { cert, key }, alike: true })),
  );
  const [first] = receivers;
  if (first === undefined) throw new Error('no receiver');
  const proxy = await startProxyProcess(t, { receiver: first, config: { upstream: { ca_file: pem.ca.certFile } } });
  for (const [index, { name, tls, status }] of rows.entries()) {
    const receiver = receivers[index];
    const marker = `row-${String(index)}`;
    proxy.rewrite({
      upstream: { url: String(receiver?.url), ...tls },
      routes: [{ name: marker, methods: ['GET'], path: `/${marker}`, subjects: ['checkout'], permissions: [] }],
    });
    proxy.signal('SIGHUP');
    await proxy.loaded();
    const response = await proxy.request({ path: `/${marker}`, headers: proxy.authorization() });
    t.equal(response.status, status, name);
    if (status === 503) checkRefusal(t, response, refusals.upstreamUnreachable, name);
    t.equal(receiver?.requests.length, status === 200 ? 1 : 0, name);
  }
});

t.test(
  'the upstream behind a unix socket, Host preserved, HTTP/1.0 and underscores allowed, a trusted proxy in front',
  async (t) => {
    const receiver = await startUpstreamServer(t, { unix: join(tempDir(t), 'app.sock') });
    const proxy = await startProxyProcess(t, {
      receiver,
      config: {
        upstream: { host: 'preserve' },
        listen: {
          http_1_0: 'allow',
          underscore_fields: 'allow',
          trust_forwarded: ['127.0.0.0/8'],
          tls_terminated_by: 'a load balancer',
        },
        identity: { forward_authorization: true, headers: { subject: 'X-Caller', kind: null } },
      },
    });
    const forwarded = {
      'X-Forwarded-For': '203.0.113.9',
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-Host': 'orders.example.com',
    };
    const auth = proxy.authorization();
    await proxy.request({
      path: '/orders',
      headers: {
        ...auth,
        ...forwarded,
        Host: 'orders',
        My_Field: 'kept',
        X_Caller: 'evil',
        X_Auth_Subject: 'kept too',
      },
    });
    const received = receiver.requests.at(-1);
    t.same(received?.field('host'), ['orders']);
    t.same(received?.field('x-forwarded-for'), ['203.0.113.9, 127.0.0.1']);
    t.same(received?.field('x-forwarded-proto'), ['https']);
    t.same(received?.field('x-forwarded-host'), ['orders.example.com']);
    t.same(received?.field('my_field'), ['kept']);
    t.same(
      [received?.field('x-caller'), received?.field('x_caller'), received?.field('x-auth-kind')],
      [['checkout'], [], []],
      'look-alikes of the configured name are dropped',
    );
    t.same(
      received?.field('authorization'),
      [auth['Authorization']],
      'the token is forwarded where the config says so',
    );

    const [old] = await proxy.send(
      `GET /orders HTTP/1.0\r\nHost: a\r\nAuthorization: ${String(auth['Authorization'])}\r\n\r\n`,
      { untilClosed: true },
    );
    t.equal(old?.status, 200, 'HTTP/1.0');
    const refused = ['Host: a\r\nHost: a', 'X: y', 'Host: a\r\nTransfer-Encoding: chunked'];
    for (const lines of refused) {
      const responses = await proxy.send(
        `GET /orders HTTP/1.0\r\n${lines}\r\nAuthorization: ${String(auth['Authorization'])}\r\n\r\n`,
        { untilClosed: true },
      );
      t.equal(responses.at(-1)?.status, 400, lines);
    }

    t.same(await proxy.exposures(), []);
  },
);

t.test('underscore_fields: refuse', async (t) => {
  const proxy = await startProxyProcess(t, { config: { listen: { underscore_fields: 'refuse' } } });
  checkRefusal(
    t,
    await proxy.request({ path: '/orders', headers: { ...proxy.authorization(), My_Field: 'x' } }),
    refusals.badRequest,
    'an underscore',
  );
  t.equal(
    (await proxy.request({ path: '/orders', headers: { ...proxy.authorization(), 'My-Field': 'x' } })).status,
    200,
  );
  t.equal(proxy.receiver.requests.length, 1);
});
