/** Certificates behind a proxy that ends TLS (RFC 9440), and routes that ask for one: docs/bound-tokens.md. */
import { createHash, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { certificates, type Certificate } from '../../support/certificates.js';
import { runHaproxy } from '../../support/haproxy.js';
import { freePort } from '../../support/listening.js';
import { runNginx } from '../../support/nginx.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { request, type RawResponse } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy, type Harness, type HarnessOptions } from '../harness.js';

const files = certificates(t);
const { client, stranger } = files;
const derOf = ({ cert }: Certificate): Buffer => new X509Certificate(cert).raw;
const fieldOf = (certificate: Certificate): string => `:${derOf(certificate).toString('base64')}:`;
const boundTo = (certificate: Certificate): object => ({
  cnf: { 'x5t#S256': createHash('sha256').update(derOf(certificate)).digest('base64url') },
});

const routes = [
  { name: 'any', methods: ['GET'], path: '/any', subjects: ['checkout'], permissions: [] },
  {
    name: 'named',
    methods: ['GET'],
    path: '/named',
    subjects: ['checkout'],
    permissions: [],
    client_certificates: ['CN=client', 'spiffe://shop.example/checkout'],
  },
];
const identity = { headers: { client_certificate: 'X-Auth-Client-Certificate' } };

async function ask(
  proxy: Harness,
  path: string,
  claims: object,
  headers: Readonly<Record<string, string>>,
  tls?: object,
): Promise<RawResponse> {
  const input = { path, headers: { ...proxy.authorization({ ...claims }), ...headers } };
  return request(proxy.port, input, tls === undefined ? {} : { tls });
}

const behind = (listen: ConfigTree, more: Partial<HarnessOptions> = {}): HarnessOptions => ({
  config: { listen, routes, identity },
  ...more,
});

t.test('Client-Cert of a proxy in front is the certificate of its caller', async (t) => {
  const proxy = await startProxy(t, behind({ trust_forwarded: ['127.0.0.1'], client_cert_header: true }));
  const rows: readonly (readonly [string, object, Readonly<Record<string, string>>, number, string | null])[] = [
    ['/any', {}, {}, 200, null],
    ['/any', boundTo(client), { 'Client-Cert': fieldOf(client) }, 200, null],
    ['/any', boundTo(client), { 'client-cert': fieldOf(client) }, 200, null],
    ['/any', boundTo(client), { 'Client-Cert': fieldOf(stranger) }, 401, 'certificate_mismatch'],
    ['/any', boundTo(client), {}, 401, 'certificate_missing'],
    ['/any', boundTo(client), { 'X-Client-Cert': fieldOf(client) }, 401, 'certificate_missing'],
    ['/any', boundTo(client), { Client_Cert: fieldOf(client) }, 401, 'certificate_missing'],
    ['/any', boundTo(client), { 'Client-Cert': `${fieldOf(client)}, ${fieldOf(client)}` }, 401, 'certificate_missing'],
    ['/any', boundTo(client), { 'Client-Cert': 'x' }, 401, 'certificate_missing'],
    ['/any', {}, { 'Client-Cert': 'x' }, 200, null],
    ['/named', {}, { 'Client-Cert': fieldOf(client) }, 200, null],
    ['/named', {}, { 'Client-Cert': fieldOf(stranger) }, 403, 'client_certificate_refused'],
    ['/named', {}, {}, 403, 'client_certificate_refused'],
    ['/named', { exp: 1 }, { 'Client-Cert': fieldOf(client) }, 401, 'token_expired'],
  ];
  for (const [path, claims, headers, status, reason] of rows) {
    const response = await ask(proxy, path, claims, headers);
    const record = await proxy.recordOf(response.field('x-request-id') ?? '');
    t.same([response.status, record.reason], [status, reason], `${path} ${JSON.stringify(headers).slice(0, 40)}`);
  }
  const last = proxy.receiver.requests.at(-1);
  t.same(last?.field('client-cert'), [], 'the field ends here');
  t.same(last?.field('x-auth-client-certificate'), ['CN=client']);
  t.equal(proxy.records.find(({ route }) => route === 'named')?.client_certificate, 'CN=client');
  t.equal(proxy.records.find(({ route }) => route === 'any')?.client_certificate, undefined);
  await ask(proxy, '/any', {}, { 'X-Auth-Client-Certificate': 'CN=client' });
  t.same(proxy.receiver.requests.at(-1)?.field('x-auth-client-certificate'), [], 'nobody says it of himself');
});

t.test('Client-Cert of strangers is dropped, and is nobody’s certificate', async (t) => {
  const strangers: readonly (readonly [string, ConfigTree])[] = [
    ['from elsewhere', { trust_forwarded: ['192.0.2.1'], client_cert_header: true }],
    ['not asked for', { trust_forwarded: ['127.0.0.1'] }],
  ];
  for (const [name, listen] of strangers) {
    const proxy = await startProxy(t, {
      ...behind(listen),
      config: { listen, routes: routes.slice(0, 1), identity, upstream: { pass_fields: [] } },
    });
    const headers = { 'Client-Cert': fieldOf(client) };
    t.equal((await ask(proxy, '/any', boundTo(client), headers)).status, 401, name);
    t.equal((await ask(proxy, '/any', {}, headers)).status, 200, name);
    t.same(proxy.receiver.requests.at(-1)?.field('client-cert'), [], name);
    t.same(proxy.receiver.requests.at(-1)?.field('x-auth-client-certificate'), [], name);
    t.equal(proxy.counted.stripped, 2, `${name}: counted`);
  }
});

t.test('where TLS ends here, a route takes the certificates that its authorities vouch for', async (t) => {
  const shown = (certificate: Certificate | null): object => ({
    ca: files.ca.cert,
    servername: 'localhost',
    ...(certificate === null ? {} : { cert: certificate.cert, key: certificate.key }),
  });
  for (const clientAuth of ['optional', 'request'] as const) {
    const tls = { cert_file: '/c', key_file: '/k', client_ca_file: '/ca', client_auth: clientAuth };
    const proxy = await startProxy(t, {
      config: { listen: { tls, trust_forwarded: ['127.0.0.1'] }, routes, identity },
      tls: { cert: files.server.cert, key: files.server.key, clientCa: files.ca.cert, clientAuth },
    });
    t.equal((await ask(proxy, '/named', {}, {}, shown(client))).status, 200, clientAuth);
    t.same(proxy.receiver.requests.at(-1)?.field('x-auth-client-certificate'), ['CN=client']);
    t.equal((await ask(proxy, '/named', {}, {}, shown(null))).status, 403, clientAuth);
    t.equal((await ask(proxy, '/named', {}, { 'Client-Cert': fieldOf(client) }, shown(null))).status, 403, clientAuth);
    if (clientAuth === 'optional') continue;
    // One that nobody vouches for counts for what is bound to it, and has no name.
    t.equal((await ask(proxy, '/any', boundTo(stranger), {}, shown(stranger))).status, 200);
    t.same(proxy.receiver.requests.at(-1)?.field('x-auth-client-certificate'), []);
    t.equal((await ask(proxy, '/named', {}, {}, shown(stranger))).status, 403);
  }
});

t.test('the certificate of the proxy in front is not that of its callers', async (t) => {
  const tls = { cert_file: '/c', key_file: '/k', client_ca_file: '/ca', client_auth: 'require' };
  const proxy = await startProxy(t, {
    config: { listen: { tls, trust_forwarded: ['127.0.0.1'], client_cert_header: true }, routes, identity },
    tls: { cert: files.server.cert, key: files.server.key, clientCa: files.ca.cert, clientAuth: 'require' },
  });
  const front = { ca: files.ca.cert, servername: 'localhost', cert: client.cert, key: client.key };
  t.equal((await ask(proxy, '/named', {}, {}, front)).status, 403);
  t.equal((await ask(proxy, '/any', boundTo(client), {}, front)).status, 401);
  t.equal((await ask(proxy, '/any', boundTo(stranger), { 'Client-Cert': fieldOf(stranger) }, front)).status, 200);
});

/** Lines of a PEM that nginx puts together: 64 characters each. */
const pemLines = Array.from({ length: 29 }, (_, i) => `l${i + 2}`);

/** The certificate as RFC 9440 writes it, of the lines of its PEM: nginx has no other form of it. */
const nginxField = [
  'map $ssl_client_raw_cert $client_cert {',
  '  default "";',
  '  "~^-----BEGIN CERTIFICATE-----\\n(?<l1>[^\\n-]+)\\n',
  ...pemLines.map((name) => `(?:(?<${name}>[^\\n-]+)\\n)?`),
  `-----END" ":$l1${pemLines.map((name) => `$${name}`).join('')}:";`,
  '}',
];

t.test('HAProxy and nginx say which certificate their caller showed', async (t) => {
  const proxy = await startProxy(t, behind({ trust_forwarded: ['127.0.0.1'], client_cert_header: true }));
  const [haproxy, nginx] = [await freePort(), await freePort()];
  const pem = join(files.dir, 'haproxy.pem');
  writeFileSync(pem, files.server.cert + files.server.key);
  runHaproxy(
    t,
    [
      'defaults',
      '  mode http',
      '  timeout connect 5s',
      '  timeout client 30s',
      '  timeout server 30s',
      'frontend front',
      `  bind 127.0.0.1:${haproxy} ssl crt ${pem} ca-file ${files.ca.certFile} verify optional`,
      '  http-request del-header Client-Cert',
      '  http-request set-header Client-Cert :%[ssl_c_der,base64]: if { ssl_c_used } { ssl_c_verify 0 }',
      '  default_backend sallyport',
      'backend sallyport',
      `  server one 127.0.0.1:${proxy.port}`,
      '',
    ].join('\n'),
  );
  runNginx(
    t,
    [
      [...nginxField.slice(0, 2), nginxField.slice(2, -1).join(''), ...nginxField.slice(-1)].join('\n'),
      'server {',
      `  listen 127.0.0.1:${nginx} ssl;`,
      `  ssl_certificate ${files.server.certFile};`,
      `  ssl_certificate_key ${files.server.keyFile};`,
      `  ssl_client_certificate ${files.ca.certFile};`,
      '  ssl_verify_client optional;',
      '  location / {',
      `    proxy_pass http://127.0.0.1:${proxy.port};`,
      '    proxy_http_version 1.1;',
      '    proxy_set_header Client-Cert $client_cert;',
      '  }',
      '}',
    ].join('\n'),
  );
  for (const [name, port] of [
    ['HAProxy', haproxy],
    ['nginx', nginx],
  ] as const) {
    const through = async (certificate: Certificate | null, claims: object, path: string): Promise<number> => {
      const own = certificate === null ? {} : { cert: certificate.cert, key: certificate.key };
      const forged = { 'Client-Cert': fieldOf(client) };
      const tls = { ca: files.ca.cert, servername: 'localhost', ...own };
      const input = { path, headers: { ...proxy.authorization({ ...claims }), ...forged } };
      return (await request(port, input, { tls })).status;
    };
    await until(name, async () =>
      through(null, {}, '/any').then(
        () => true,
        () => false,
      ),
    );
    t.equal(await through(client, boundTo(client), '/any'), 200, `${name}: bound`);
    t.equal(await through(client, {}, '/named'), 200, `${name}: by its name`);
    t.equal(await through(client, boundTo(stranger), '/any'), 401, `${name}: bound to another`);
    t.equal(await through(null, boundTo(client), '/any'), 401, `${name}: a caller says it of himself`);
    t.equal(await through(null, {}, '/named'), 403, `${name}: and is not believed`);
  }
});
