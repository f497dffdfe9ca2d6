import t from 'tap';
import { readCaBundle, readCaFile } from '../../src/lib/pem.js';
import { certificates } from '../support/certificates.js';

t.test('reads authorities, refusing whatever would make Node trust others than are listed', (t) => {
  const { ca, otherCa } = certificates(t);
  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  const trusted = ca.cert.replaceAll(' CERTIFICATE', ' TRUSTED CERTIFICATE');
  const rows: { name: string; pem: string; expected: readonly string[] | string }[] = [
    { name: 'one', pem: ca.cert, expected: [ca.cert.trim()] },
    {
      name: 'two, with text between',
      pem: `# a\n${ca.cert}# b\n${otherCa.cert}# c`,
      expected: [ca.cert.trim(), otherCa.cert.trim()],
    },
    { name: 'nothing', pem: '', expected: 'holds no PEM certificate' },
    { name: 'text', pem: 'MIIB', expected: 'holds no PEM certificate' },
    { name: 'a private key', pem: ca.key, expected: 'holds no PEM certificate' },
    { name: 'no certificate within', pem: broken, expected: 'holds a broken PEM certificate' },
    {
      name: 'nothing at all within',
      pem: '-----BEGIN CERTIFICATE----------END CERTIFICATE-----',
      expected: 'holds a broken PEM certificate',
    },
    { name: 'one of two broken', pem: `${ca.cert}${broken}`, expected: 'holds a broken PEM certificate' },
    { name: 'no end', pem: ca.cert.replace(/-----END.*/, ''), expected: 'holds a broken PEM certificate' },
    {
      name: 'no end, then a good one',
      pem: `${ca.cert.replace(/-----END.*/, '')}${otherCa.cert}`,
      expected: 'holds a broken PEM certificate',
    },
    { name: 'an old label, which Node passes over', pem: trusted, expected: 'holds a broken PEM certificate' },
  ];
  for (const { name, pem, expected } of rows) {
    t.same(
      readCaBundle(pem),
      typeof expected === 'string' ? { ok: false, error: expected } : { ok: true, value: expected },
      name,
    );
  }
  t.end();
});

t.test('names the CA file that cannot be used', (t) => {
  const { ca } = certificates(t);
  const file = '/etc/ca.pem';
  t.same(readCaFile(file, { ok: true, value: ca.cert }), { ok: true, value: [ca.cert.trim()] });
  t.same(readCaFile(file, { ok: true, value: '' }), {
    ok: false,
    error: 'the CA file /etc/ca.pem holds no PEM certificate',
  });
  t.same(readCaFile(file, { ok: false, error: 'does not exist' }), {
    ok: false,
    error: 'the CA file /etc/ca.pem does not exist',
  });
  t.end();
});
