/** Certificates of callers in `explain`, `test` and `diff`: docs/policy-tests.md. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { run } from '../../../src/cli/program.js';
import { certificateDigest } from '../../support/certificate-digest.js';
import { certificates } from '../../support/certificates.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

const files = certificates(t);
const { dir, client, stranger } = files;
const digest = certificateDigest(client.cert);
const jkt = createHash('sha256').update('a key').digest('base64url');
const named = { methods: ['GET'], subjects: ['checkout'], permissions: [] };
const routes = [
  { name: 'any', path: '/any', ...named },
  { name: 'named', path: '/named', ...named, client_certificates: ['CN=client', 'spiffe://shop.example/checkout'] },
];
const tls = { cert_file: files.server.certFile, key_file: files.server.keyFile, client_ca_file: files.ca.certFile };
const listen = { tls, dpop: { origins: ['https://orders.example'] } };
const receiver = {
  case_sensitive: true,
  strict_slash: true,
  format_suffix: false,
  trailing_dots: false,
  head_as_get: false,
};
const base: ConfigTree = { listen, routes, receiver, store: { memory: {} } };

/** JSON is YAML. */
function write(name: string, value: object | string): string {
  const file = join(dir, name);
  writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
  return file;
}

const writeConfig = (name: string, config: ConfigTree): string => write(name, baseConfig(config));

async function sallyport(...args: readonly string[]): Promise<CapturedIo> {
  const io = captureIo();
  await run(args, io);
  return io;
}

t.test('explain takes the certificate that a caller shows', async (t) => {
  const config = writeConfig('explain.yaml', base);
  const claims = write('claims.json', { sub: 'checkout', cnf: { 'x5t#S256': digest } });
  const explain = async (path: string, ...more: readonly string[]): Promise<CapturedIo> =>
    sallyport('explain', '--config', config, '--method', 'GET', '--path', path, ...more);
  const shown = ['--client-certificate', client.certFile];
  const rows: readonly (readonly [string, readonly string[], number, RegExp])[] = [
    ['/any', ['--claims', claims], 1, /401 certificate_missing[^]*--client-certificate FILE/],
    [
      '/any',
      ['--claims', claims, ...shown],
      0,
      /proof +ok +its sender has the certificate that it is bound to: CN=client/,
    ],
    [
      '/any',
      ['--claims', claims, '--client-certificate', stranger.certFile],
      1,
      /401 certificate_mismatch[^]*its sender shows CN=stranger; SHA-256 [\w-]{43}/,
    ],
    ['/named', ['--subject', 'checkout'], 1, /403 client_certificate_refused[^]*CN=client[^]*its sender shows none/],
    ['/named', ['--subject', 'checkout', ...shown], 0, /policy +ok +client certificate CN=client: accepted/],
    ['/named', ['--subject', 'checkout', '--header', 'Client-Cert: :AA==:'], 1, /403 client_certificate_refused/],
  ];
  for (const [path, args, code, says] of rows) {
    const io = await explain(path, ...args);
    t.equal(io.code(), code, `${path} ${args.join(' ')}\n${io.err()}`);
    t.match(io.out(), says);
  }
  const data = JSON.parse((await explain('/any', '--claims', claims, ...shown, '--json')).out()) as object;
  t.match(data, { client_certificate: { name: 'CN=client', thumbprint: digest, verified: true } });
  for (const file of [client.keyFile, join(dir, 'none')]) {
    const io = await explain('/any', '--client-certificate', file);
    t.equal(io.code(), 2);
    t.match(io.err(), `--client-certificate ${file}: `);
    t.notMatch(io.err(), 'PRIVATE');
  }
});

t.test('where nobody verifies certificates, one that is shown has no name', async (t) => {
  const self = { ...tls, client_ca_file: null, client_auth: 'request' };
  const config = writeConfig('request.yaml', { ...base, listen: { ...listen, tls: self }, routes: routes.slice(0, 1) });
  const claims = write('claims.json', { sub: 'checkout', cnf: { 'x5t#S256': digest } });
  const args = ['--config', config, '--method', 'GET', '--path', '/any', '--claims', claims, '--json'];
  const io = await sallyport('explain', ...args, '--client-certificate', client.certFile);
  t.equal(io.code(), 0, 'it is bound to that very one');
  t.match(JSON.parse(io.out()), { client_certificate: { verified: false } });
});

const caseOf = (name: string, request: object, claims: object, expect: object): object => ({
  name,
  request: { method: 'GET', ...request },
  claims: { sub: 'checkout', ...claims },
  expect,
});

t.test('a case names the certificate of its request', async (t) => {
  writeConfig('suite-config.yaml', base);
  const cnf = { cnf: { 'x5t#S256': digest } };
  const cases = [
    caseOf('bound, by file', { path: '/any', client_certificate: 'client.crt' }, cnf, { status: 200 }),
    caseOf('bound, by thumbprint', { path: '/any', client_certificate: { thumbprint: digest } }, cnf, { status: 200 }),
    caseOf('stolen', { path: '/any', client_certificate: { name: 'CN=client' } }, cnf, {
      status: 401,
      reason: 'certificate_mismatch',
    }),
    caseOf('without', { path: '/any' }, cnf, { status: 401, reason: 'certificate_missing' }),
    caseOf('named', { path: '/named', client_certificate: 'client.crt' }, {}, { status: 200 }),
    caseOf(
      'by SPIFFE ID',
      { path: '/named', client_certificate: { name: 'spiffe://shop.example/checkout' } },
      {},
      {
        status: 200,
      },
    ),
    caseOf(
      'unverified',
      { path: '/named', client_certificate: { name: 'CN=client', verified: false } },
      {},
      {
        status: 403,
        reason: 'client_certificate_refused',
      },
    ),
    caseOf('of a key', { path: '/any' }, { cnf: { jkt } }, { status: 200 }),
    caseOf('unknown', { path: '/any' }, { cnf: { jwk: {} } }, { status: 401, reason: 'binding_unknown' }),
  ];
  const io = await sallyport('test', write('suite.yaml', { config: 'suite-config.yaml', cases }));
  t.equal(io.code(), 0, io.out() + io.err());
  const wrong = async (given: unknown): Promise<string> => {
    const request = { path: '/any', client_certificate: given };
    const suite = { config: 'suite-config.yaml', cases: [caseOf('a', request, {}, { status: 200 })] };
    const io = await sallyport('test', write('wrong.yaml', suite));
    t.not(io.code(), 0, JSON.stringify(given));
    return io.err() + io.out();
  };
  t.match(await wrong('none.crt'), /client_certificate none\.crt: .*allowed: a file with a certificate in PEM/);
  t.match(await wrong('client.key'), /client_certificate client\.key: no certificate/);
  for (const given of [{}, { verified: true }, { thumbprint: 'x' }, { name: '' }, { color: 'red' }, 5, []]) {
    t.match(await wrong(given), /wrong\.yaml:1:/);
  }
});

t.test('where tokens have to be bound, an assumed one is; a null says that it is not', async (t) => {
  const required: ConfigTree = { ...base, issuers: { core: { binding: 'require' } } };
  for (const [name, config] of Object.entries({
    keys: required,
    none: { ...required, listen: { ...listen, dpop: null } },
  })) {
    writeConfig('required.yaml', config);
    const cases = [
      caseOf('bound', { path: '/any' }, {}, { status: 200 }),
      caseOf('bound to a certificate', { path: '/any', client_certificate: 'client.crt' }, {}, { status: 200 }),
      caseOf('not bound', { path: '/any' }, { cnf: null }, { status: 401, reason: 'binding_missing' }),
      caseOf(
        'to a key',
        { path: '/any' },
        { cnf: { jkt } },
        name === 'keys' ? { status: 200 } : { reason: 'proof_missing' },
      ),
    ];
    const io = await sallyport('test', write('required-suite.yaml', { config: 'required.yaml', cases }));
    t.equal(io.code(), 0, io.out() + io.err());
  }
});

t.test('cases that are written for a policy show certificates, pass, and cover all of it', async (t) => {
  writeConfig('drafted.yaml', base);
  const drafted = await sallyport('test', '--init', join(dir, 'drafted.yaml'));
  t.match(drafted.out(), /client_certificate:\n +name: CN=client/);
  const suite = parse(drafted.out()) as { config: string };
  const io = await sallyport('test', write('draft-suite.yaml', { ...suite, config: 'drafted.yaml' }));
  t.equal(io.code(), 0, io.out() + io.err());
  t.match(io.out(), /certificate spiffe:\/\/shop\.example\/checkout: who shows it is let through by no case/);
});

t.test('diff says who gains and who loses by the certificates of a route', async (t) => {
  const withCertificates = (...names: readonly string[]): string =>
    writeConfig(`diff-${names.length}-${names[0]?.length ?? 0}.yaml`, {
      ...base,
      routes: [
        { name: 'named', path: '/named', ...named, ...(names.length === 0 ? {} : { client_certificates: names }) },
      ],
    });
  const diff = async (from: string, to: string): Promise<string> => (await sallyport('diff', from, to)).out();
  const [none, one, both] = [withCertificates(), withCertificates('CN=a'), withCertificates('CN=a', 'CN=b')];
  t.match(await diff(one, both), /gains: checkout without permissions, showing CN=b\n[^]*access widens/);
  t.match(await diff(both, one), /loses: checkout without permissions, showing CN=b\n[^]*access does not widen/);
  t.match(await diff(one, none), /gains: checkout without permissions\n[^]*access widens/);
  const asked = await diff(none, one);
  t.match(asked, /loses: checkout without permissions\n/);
  t.notMatch(asked, 'showing');
});
