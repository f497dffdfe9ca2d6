import { renameSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { createCertificateExpiry } from '../../../src/app/certificates/certificate-expiry.js';
import { localFiles } from '../../../src/adapters/files/files.js';
import { readListenerCertificates, type ListenerCertificates } from '../../../src/app/certificates/certificates.js';
import type { LogFields } from '../../../src/ports/system.js';
import { manualTime } from '../../adapters/manual-time.js';
import { certificates, type Certificate, type Certificates } from '../../support/certificates.js';
import { expiredServer } from '../../support/expired-certificate.js';
import { until } from '../../support/until.js';
import { startAppWorld } from '../app-world.js';

const dayMs = 86_400_000;

async function read({ certFile, keyFile }: Certificate, clientCaFile: string | null): Promise<ListenerCertificates> {
  const found = await readListenerCertificates({ certFile, keyFile, clientCaFile, clientAuth: 'require' }, localFiles);
  if (!found.ok) throw new Error(found.error.messages.join());
  return found.value;
}

interface Scene extends ReturnType<typeof manualTime> {
  readonly expiry: ReturnType<typeof createCertificateExpiry>;
  /** Level, message and certificate of each line since the last look. */
  readonly said: () => readonly (readonly unknown[])[];
}

function scene(): Scene {
  const time = manualTime();
  const lines: unknown[][] = [];
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      lines.push([level, message, fields['certificate']]);
    };
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  return { ...time, expiry: createCertificateExpiry({ ...time, log }), said: () => lines.splice(0) };
}

const expired = 'a certificate has expired';
const expires = 'a certificate expires soon';
const early = 'a certificate is not valid yet';

t.test(
  'it is said at once, when it changes, and once a day, that a certificate does not count or will not for long',
  async (t) => {
    const c = certificates(t);
    const { expiry, said, advance, clock, due } = scene();
    const certificate = await read(c.server, null);
    const [fromMs, toMs] = [Date.parse(certificate.leaf.validFrom), Date.parse(certificate.leaf.validTo)];
    expiry.useListener(certificate);
    t.same(said(), [['error', early, 'listener']], 'the clock stands in 1970');
    const waitedMs = fromMs - 10 * dayMs - clock.now();
    advance(waitedMs);
    t.equal(said().length, Math.floor(waitedMs / dayMs), 'once a day until then');
    advance(10 * dayMs + 3_600_000);
    t.same(
      said().at(-1),
      ['warn', expires, 'listener'],
      'within the hour in which that changed: made for two days, it expires soon from its first moment',
    );
    expiry.useListener(certificate);
    t.same(said(), [['warn', expires, 'listener']], 'and at each load');
    advance(toMs - clock.now() + 3_600_000);
    t.same(
      said(),
      [
        ['warn', expires, 'listener'],
        ['error', expired, 'listener'],
      ],
      'a day later, and within the hour in which it expired',
    );
    advance(dayMs);
    t.same(said(), [['error', expired, 'listener']], 'and the day after');
    t.match(expiry.states(), [
      { certificate: 'listener', state: 'expired', daysLeft: -2, notAfterS: toMs / 1000, notBeforeS: fromMs / 1000 },
    ]);
    expiry.close();
    t.same(due(), [], 'nothing is looked at after the end');
  },
);

t.test('authorities that are gone are told of no more', async (t) => {
  const c = certificates(t);
  const { expiry, said } = scene();
  expiry.useAuthorities('upstream_ca', c.ca.cert);
  t.same(said(), [['error', early, 'upstream_ca']]);
  t.match(expiry.states(), [{ certificate: 'upstream_ca', state: 'not_yet_valid' }]);
  expiry.useAuthorities('upstream_ca', null);
  t.same(said(), []);
  t.same(expiry.states(), []);
});

function place(to: Certificate, from: Pick<Certificate, 'cert' | 'key'>): void {
  for (const [path, text] of [
    [to.certFile, from.cert],
    [to.keyFile, from.key],
  ] as const) {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  }
}

function listenWith(c: Certificates, server: Certificate): Record<string, unknown> {
  return { listen: { tls: { cert_file: server.certFile, key_file: server.keyFile, client_ca_file: c.ca.certFile } } };
}

t.test('an expired certificate is an error in the log at start, and on /status and /metrics', async (t) => {
  const c = certificates(t);
  const server = expiredServer(c);
  const world = await startAppWorld(t, { config: listenWith(c, server) });
  const named = (certificate: string): readonly unknown[] =>
    world
      .logs()
      .filter((line) => line['certificate'] === certificate)
      .map(({ level, msg }) => [level, msg]);
  t.same(named('listener'), [['error', expired]]);
  t.same(named('client_ca'), [['warn', expires]]);
  const { certificates: shown } = world.app.status();
  t.match(shown, [
    { certificate: 'listener', state: 'expired' },
    { certificate: 'client_ca', state: 'expiring', days_left: 1 },
  ]);
  for (const { certificate, valid_to: validTo } of shown) {
    t.equal(
      await world.metric(`sallyport_certificate_not_after_seconds{certificate="${certificate}"}`),
      Date.parse(validTo) / 1000,
      certificate,
    );
  }
  place(server, c.renewed);
  await until('the new one is in use', () => world.app.status().certificates[0]?.state === 'expiring');
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

t.test('the authority of the receiver is told of from the load of the config that names it', async (t) => {
  const c = certificates(t);
  const world = await startAppWorld(t);
  t.same(world.app.status().certificates, []);
  world.rewrite({ upstream: { url: 'https://127.0.0.1:1', ca_file: c.ca.certFile } });
  await until('it is in use', () => world.app.status().certificates.length > 0);
  t.match(world.app.status().certificates, [{ certificate: 'upstream_ca', state: 'expiring' }]);
  world.rewrite({});
  await until('it is not in use', () => world.app.status().certificates.length === 0);
  t.equal((await world.admin('/metrics')).text.includes('sallyport_certificate_not_after_seconds{'), false);
});
