import t from 'tap';
import { writeFileSync } from 'node:fs';
import { createCertificateExpiry } from '../../../src/app/certificates/certificate-expiry.js';
import { localFiles } from '../../../src/adapters/files/files.js';
import { readListenerCertificates, type ListenerCertificates } from '../../../src/app/certificates/certificates.js';
import type { LogFields } from '../../../src/ports/system.js';
import { manualTime } from '../../adapters/manual-time.js';
import { certificates, type Certificate, type Certificates } from '../../support/certificates.js';
import { expiredServer } from '../../support/expired-certificate.js';
import { request } from '../../support/raw-client.js';
import { replaceFile } from '../../support/replace-file.js';
import { until } from '../../support/until.js';
import { startIntrospection } from '../../support/introspection-server.js';
import { startJwksServer } from '../../support/jwks-server.js';
import { startInProcessProxy } from '../in-process-proxy.js';

const dayMs = 86_400_000;

async function read({ certFile, keyFile }: Certificate, clientCaFile: string | null): Promise<ListenerCertificates> {
  const found = await readListenerCertificates({ certFile, keyFile, clientCaFile, clientAuth: 'require' }, localFiles);
  if (!found.ok) throw new Error(found.error.messages.join());
  return found.value;
}

interface Setup extends ReturnType<typeof manualTime> {
  readonly expiry: ReturnType<typeof createCertificateExpiry>;
  /** Level, message and certificate of each line since the last look. */
  readonly logged: () => readonly (readonly unknown[])[];
}

function setup(): Setup {
  const time = manualTime();
  const lines: unknown[][] = [];
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      lines.push([level, message, fields['certificate']]);
    };
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  return { ...time, expiry: createCertificateExpiry({ ...time, log }), logged: () => lines.splice(0) };
}

const expired = 'a certificate has expired';
const expires = 'a certificate expires soon';
const early = 'a certificate is not valid yet';

t.test(
  'it is said at once, when it changes, and once a day, that a certificate does not count or will not for long',
  async (t) => {
    const c = certificates(t);
    const { expiry, logged, advance, clock, due } = setup();
    const certificate = await read(c.server, null);
    const [fromMs, toMs] = [Date.parse(certificate.leaf.validFrom), Date.parse(certificate.leaf.validTo)];
    expiry.useListener(certificate);
    t.same(logged(), [['error', early, 'listener']], 'the clock stands in 1970');
    const waitedMs = fromMs - 10 * dayMs - clock.now();
    advance(waitedMs);
    t.equal(logged().length, Math.floor(waitedMs / dayMs), 'once a day until then');
    advance(10 * dayMs + 3_600_000);
    t.same(
      logged().at(-1),
      ['warn', expires, 'listener'],
      'within the hour in which that changed: made for two days, it expires soon from its first moment',
    );
    expiry.useListener(certificate);
    t.same(logged(), [['warn', expires, 'listener']], 'and at each load');
    advance(toMs - clock.now() + 3_600_000);
    t.same(
      logged(),
      [
        ['warn', expires, 'listener'],
        ['error', expired, 'listener'],
      ],
      'a day later, and within the hour in which it expired',
    );
    advance(dayMs);
    t.same(logged(), [['error', expired, 'listener']], 'and the day after');
    t.match(expiry.states(), [
      { certificate: 'listener', state: 'expired', daysLeft: -2, notAfterS: toMs / 1000, notBeforeS: fromMs / 1000 },
    ]);
    expiry.close();
    t.same(due(), [], 'nothing is looked at after the end');
  },
);

t.test('authorities that are gone are told of no more', async (t) => {
  const c = certificates(t);
  const { expiry, logged } = setup();
  expiry.useAuthorities('upstream_ca', c.ca.cert);
  t.same(logged(), [['error', early, 'upstream_ca']]);
  t.match(expiry.states(), [{ certificate: 'upstream_ca', state: 'not_yet_valid' }]);
  expiry.useAuthorities('upstream_ca', null);
  t.same(logged(), []);
  t.same(expiry.states(), []);
});

function place(to: Certificate, from: Pick<Certificate, 'cert' | 'key'>): void {
  for (const [path, text] of [
    [to.certFile, from.cert],
    [to.keyFile, from.key],
  ] as const) {
    replaceFile(path, text);
  }
}

function listenWith(c: Certificates, server: Certificate): Record<string, unknown> {
  return { listen: { tls: { cert_file: server.certFile, key_file: server.keyFile, client_ca_file: c.ca.certFile } } };
}

t.test('an expired certificate is an error in the log at start, and on /status and /metrics', async (t) => {
  const c = certificates(t);
  const server = expiredServer(c);
  const proxy = await startInProcessProxy(t, { config: listenWith(c, server) });
  const named = (certificate: string): readonly unknown[] =>
    proxy
      .logs()
      .filter((line) => line['certificate'] === certificate)
      .map(({ level, msg }) => [level, msg]);
  t.same(named('listener'), [['error', expired]]);
  t.same(named('client_ca'), [['warn', expires]]);
  const { certificates: shown } = proxy.app.status();
  t.match(shown, [
    { certificate: 'listener', state: 'expired' },
    { certificate: 'client_ca', state: 'expiring', days_left: 1 },
  ]);
  for (const { certificate, valid_to: validTo } of shown) {
    t.equal(
      await proxy.metric(`sallyport_certificate_not_after_seconds{certificate="${certificate}"}`),
      Date.parse(validTo) / 1000,
      certificate,
    );
  }
  place(server, c.renewed);
  await until('the new one is in use', () => proxy.app.status().certificates[0]?.state === 'expiring');
  // Certificate and key are two files, so that it may be read twice.
  t.same(named('listener').slice(0, 2), [
    ['error', expired],
    ['warn', expires],
  ]);
  place(server, server);
  const errors = (): number =>
    named('listener').filter((line) => JSON.stringify(line) === JSON.stringify(['error', expired])).length;
  await until('an expired one is told of at the reload too', () => errors() > 1);
});

t.test('the authority of the upstream is told of from the load of the config that names it', async (t) => {
  const c = certificates(t);
  const proxy = await startInProcessProxy(t);
  t.same(proxy.app.status().certificates, []);
  proxy.rewrite({ upstream: { url: 'https://127.0.0.1:1', ca_file: c.ca.certFile } });
  await until('it is in use', () => proxy.app.status().certificates.length > 0);
  t.match(proxy.app.status().certificates, [{ certificate: 'upstream_ca', state: 'expiring' }]);
  proxy.rewrite({});
  await until('it is not in use', () => proxy.app.status().certificates.length === 0);
  t.equal((await proxy.admin('/metrics')).text.includes('sallyport_certificate_not_after_seconds{'), false);
});

t.test(
  'what an issuer is shown is told of from the load of the config that names it, and when it is renewed',
  async (t) => {
    const c = certificates(t);
    const shown = expiredServer(c);
    const { cert, key } = c.strangerServer;
    const issuer = await startIntrospection(t, {
      tls: { cert, key, ca: [c.ca.cert], requestCert: true, rejectUnauthorized: true },
    });
    const jwks = await startJwksServer(t);
    const asking = (introspection: object): object => ({
      issuers: {
        idp: {
          issuer: 'https://idp.example.com',
          profile: 'oauth',
          audience: 'orders',
          jwks_url: jwks.url,
          ca_file: c.otherCa.certFile,
          claims: { subject: 'client_id' },
          introspection: { url: issuer.url, client_id: 'sallyport', ...introspection },
        },
      },
    });
    const files = { cert_file: shown.certFile, key_file: shown.keyFile };
    const withCertificate = asking({ client_auth: 'tls_client_auth', ...files }) as Record<string, unknown>;
    const proxy = await startInProcessProxy(t, { config: withCertificate });
    const name = 'introspection:idp';
    const named = (): readonly unknown[] =>
      proxy
        .logs()
        .filter((line) => line['certificate'] === name)
        .map(({ level, msg }) => [level, msg]);
    await until('it is in use', () => named().length > 0);
    t.same(named(), [['error', expired]]);
    t.match(proxy.app.status().certificates, [{ certificate: name, state: 'expired' }]);
    const ask = async (token: string): Promise<number> =>
      (await request(proxy.port, { path: '/orders', headers: { Authorization: `Bearer ${token}` } })).status;
    issuer.tokens.set('good', { active: true, aud: 'orders', client_id: 'checkout', scope: 'orders:read', exp: 4e9 });
    t.equal(await ask('good'), 503, 'nobody takes it');

    place(shown, c.renewed);
    await until('the new one is in use', () => proxy.app.status().certificates[0]?.state === 'expiring');
    t.same(named().at(-1), ['warn', expires]);
    const validTo = proxy.app.status().certificates[0]?.valid_to ?? '';
    t.equal(
      await proxy.metric(`sallyport_certificate_not_after_seconds{certificate="${name}"}`),
      Date.parse(validTo) / 1000,
    );
    await until('tokens are verified again', async () => (await ask('good')) === 401);
    t.match(proxy.logs().at(-1), { reason: 'lifetime_too_long' });

    const told = named().length;
    proxy.rewrite({ ...withCertificate, log: { user_agent: false } });
    await until('it is told of at a reload too', () => named().length > told);
    const secretFile = `${c.dir}/secret`;
    writeFileSync(secretFile, 'a secret', { mode: 0o600 });
    proxy.rewrite(asking({ client_secret_file: secretFile }) as Record<string, unknown>);
    await until('it is not in use', () => proxy.app.status().certificates.length === 0);
    t.equal((await proxy.admin('/metrics')).text.includes('sallyport_certificate_not_after_seconds{'), false);
  },
);
