import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { refusedCaller, verifiedName } from '../../../src/decision/binding/certificate.js';
import { certificateName } from '../../../src/decision/binding/certificate-name.js';
import { readClientCert, shownCertificate } from '../../../src/decision/binding/client-cert-header.js';
import { openssl } from '../../support/openssl.js';
import { tempDir } from '../../support/temp-dir.js';

/** RFC 8705 appendix A: the certificate whose `x5t#S256` §3.1 shows. */
const example =
  'MIIBBjCBrAIBAjAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDDARtdGxzMB4XDTE4MTAxODEyMzcwOVoXDTIyMDUwMjEyMzcwOVowDzENMAsGA1UEAwwEbXRsczBZMBMGByqG' +
  'SM49AgEGCCqGSM49AwEHA0IABNcnyxwqV6hY8QnhxxzFQ03C7HKW9OylMbnQZjjJ/Au08/coZwxS7LfA4vOLS9WuneIXhbGGWvsDSb0tH6IxLm8wCgYIKoZIzj0EAwID' +
  'SQAwRgIhAP0RC1E+vwJD/D1AGHGzuri+hlV/PpQEKTWUVeORWz83AiEA5x2eXZOVbUlJSGQgjwD5vaUaKlLR50Q2DmFfQj1L+SY=';

t.test('the example of RFC 8705, as RFC 9440 writes it', (t) => {
  const read = {
    digest: 'A4DtL2JmUMhAsvJj5tKyn64SqzmuXbMrJa0n761y5v0',
    isVerified: true,
    name: 'CN=mtls',
    endsAtMs: 1_651_495_029_000,
  };
  t.same(readClientCert(`:${example}:`), read);
  t.same(readClientCert(`:${example}:`), read, 'remembered');
  t.end();
});

t.test('what is no Client-Cert', (t) => {
  const der = Buffer.from(example, 'base64');
  const rows = [
    '',
    '::',
    ':',
    example,
    `:${example}`,
    `:${example}:;a=b`,
    ` :${example}:`,
    `:${example}:, :${example}:`,
    `:${example.slice(0, -1)}:`,
    `:${example}=:`,
    `:${example.replaceAll('+', '-')}:`,
    `:${der.subarray(0, -1).toString('base64')}:`,
    `:${Buffer.concat([der, Buffer.from([0])]).toString('base64')}:`,
    `:${Buffer.from('no certificate').toString('base64')}:`,
    `:${Buffer.from(`-----BEGIN CERTIFICATE-----\n${example}\n-----END CERTIFICATE-----\n`).toString('base64')}:`,
  ];
  for (const row of rows) t.equal(readClientCert(row), null, row.slice(0, 40));
  t.end();
});

t.test('whose certificate counts', (t) => {
  const reported = readClientCert(`:${example}:`);
  // Later than the end of the reported one: whether that counts is for the front to check.
  const nowMs = Date.UTC(2026, 0);
  t.ok((reported?.endsAtMs ?? Infinity) < nowMs);
  const own = { digest: 'own', isVerified: true, name: null, endsAtMs: nowMs };
  const rows = [
    { name: 'shown to us', peer: { trusted: false, certificate: own }, header: null, isRead: true, expected: own },
    { name: 'shown by nobody', peer: { trusted: false }, header: null, isRead: true, expected: null },
    { name: 'said by a stranger', peer: { trusted: false }, header: `:${example}:`, isRead: true, expected: null },
    { name: 'said by the front', peer: { trusted: true }, header: `:${example}:`, isRead: true, expected: reported },
    { name: 'not read', peer: { trusted: true, certificate: own }, header: 'any', isRead: false, expected: own },
    { name: 'the front’s own', peer: { trusted: true, certificate: own }, header: null, isRead: true, expected: null },
  ];
  for (const { name, peer, header, isRead, expected } of rows) {
    t.same(shownCertificate(peer, header, isRead, nowMs), expected, name);
  }
  t.equal(shownCertificate({ trusted: false, certificate: own }, null, false, nowMs + 1), null, 'over');
  const unknownEnd = { ...own, endsAtMs: NaN };
  t.equal(shownCertificate({ trusted: false, certificate: unknownEnd }, null, false, nowMs), null, 'no known end');
  t.end();
});

t.test('names of certificates', (t) => {
  const dir = tempDir(t);
  const made = (subject: string, names: string | null): X509Certificate => {
    writeFileSync(
      join(dir, 'x.cnf'),
      `[req]\ndistinguished_name=d\n[d]\n[v]\n${names === null ? '' : `subjectAltName=${names}\n`}`,
    );
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'x.key'];
    openssl(
      dir,
      'req',
      '-x509',
      '-utf8',
      ...key,
      '-out',
      'x.crt',
      '-subj',
      subject,
      '-config',
      'x.cnf',
      '-extensions',
      'v',
    );
    return new X509Certificate(readFileSync(join(dir, 'x.crt')));
  };
  const id = 'URI:spiffe://shop.example/ns/a/sa/b';
  const rows: readonly (readonly [string, string | null, string | null])[] = [
    ['/C=DE/O=Shop/CN=checkout', null, 'CN=checkout,O=Shop,C=DE'],
    ['/O=Shop, Inc./CN=a', null, 'CN=a,O=Shop\\, Inc.'],
    ['/CN=a', id, 'spiffe://shop.example/ns/a/sa/b'],
    ['/CN=a', 'DNS:x', 'CN=a'],
    ['/CN=a', `DNS:x,${id}`, 'spiffe://shop.example/ns/a/sa/b'],
    ['/CN=a', `${id},URI:spiffe://other.example/x`, 'CN=a'],
    ['/CN=a', 'URI:https://shop.example/x', 'CN=a'],
    ['/CN=a', `URI:spiffe://shop.example/${'x'.repeat(1_024)}`, null],
    ['/CN=café', null, null],
    ['/', null, null],
    ['/', 'DNS:x', null],
    ['/', id, 'spiffe://shop.example/ns/a/sa/b'],
  ];
  for (const [subject, names, expected] of rows) {
    t.equal(certificateName(made(subject, names)), expected, `${subject} ${names ?? ''}`.slice(0, 60));
  }
  t.equal(certificateName({ subject: `CN=${'x'.repeat(1_024)}`, subjectAltName: undefined }), null);
  t.end();
});

t.test('a route takes callers with a certificate that somebody vouches for', (t) => {
  const accepted = new Set(['CN=a']);
  const shown = { digest: 'x', isVerified: true, name: 'CN=a', endsAtMs: Infinity };
  t.equal(refusedCaller(null, null), null);
  t.equal(refusedCaller(accepted, shown), null);
  for (const certificate of [
    null,
    { ...shown, isVerified: false },
    { ...shown, name: 'CN=b' },
    { ...shown, name: null },
  ]) {
    t.same(refusedCaller(accepted, certificate), { reason: 'client_certificate_refused' });
  }
  t.equal(verifiedName({ ...shown, isVerified: false }), null);
  t.end();
});
