import { X509Certificate } from 'node:crypto';
import t from 'tap';
import { certificateState, daysLeft, validityOf, validityOfBundle } from '../../src/lib/certificate-validity.js';
import { certificates } from '../support/certificates.js';
import { expiredServer } from '../support/expired-certificate.js';

const dayMs = 86_400_000;
const validity = { notBeforeMs: 1_000 * dayMs, notAfterMs: 1_090 * dayMs };

const rows = [
  { name: 'a moment too early', nowMs: validity.notBeforeMs - 1, state: 'not_yet_valid', days: 90 },
  { name: 'its first moment', nowMs: validity.notBeforeMs, state: 'valid', days: 90 },
  { name: '14 days left', nowMs: validity.notAfterMs - 14 * dayMs, state: 'valid', days: 14 },
  { name: 'less than 14 days left', nowMs: validity.notAfterMs - 14 * dayMs + 1, state: 'expiring', days: 13 },
  { name: 'its last moment', nowMs: validity.notAfterMs, state: 'expiring', days: 0 },
  { name: 'a moment too late', nowMs: validity.notAfterMs + 1, state: 'expired', days: -1 },
];

t.test('a certificate is valid, about to expire, expired or too new', (t) => {
  for (const { name, nowMs, state, days } of rows) {
    t.equal(certificateState(validity, nowMs), state, name);
    t.equal(daysLeft(validity, nowMs), days, name);
  }
  t.equal(certificateState({ ...validity, notBeforeMs: NaN }, validity.notAfterMs), 'not_yet_valid');
  t.equal(certificateState({ ...validity, notAfterMs: NaN }, validity.notBeforeMs), 'expired');
  t.end();
});

t.test('authorities count as long as one of them does', (t) => {
  const c = certificates(t);
  const { cert: expired } = expiredServer(c);
  const [old, now] = [validityOf(new X509Certificate(expired)), validityOf(new X509Certificate(c.ca.cert))];
  t.ok(old.notAfterMs < now.notBeforeMs);
  t.same(validityOfBundle([c.ca.cert]), now);
  for (const bundle of [
    [expired, c.ca.cert],
    [c.ca.cert, expired],
  ]) {
    t.same(validityOfBundle(bundle), { notBeforeMs: old.notBeforeMs, notAfterMs: now.notAfterMs });
  }
  t.end();
});
