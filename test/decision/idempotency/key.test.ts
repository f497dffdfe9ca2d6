import fc from 'fast-check';
import t from 'tap';
import { readIdempotencyKey } from '../../../src/decision/idempotency/key.js';
import { idempotencyKeys } from '../../support/attacks/idempotency-keys.js';

const read = (value: string): string | null => {
  const result = readIdempotencyKey(value, 'required', false);
  return result.ok ? result.value : null;
};

for (const { name, value, expected } of idempotencyKeys) {
  t.test(`the key: ${name}`, (t) => {
    t.equal(read(value), expected);
    t.end();
  });
}

t.test('a key that is missing is asked for where one is required, and only there', (t) => {
  for (const { mode, isHttp2, isAsked } of [
    { mode: 'required', isHttp2: false, isAsked: true },
    { mode: 'required', isHttp2: true, isAsked: true },
    { mode: 'optional', isHttp2: false, isAsked: false },
    // One that is malformed has been dropped there.
    { mode: 'optional', isHttp2: true, isAsked: true },
    { mode: 'optional_over_http2', isHttp2: false, isAsked: false },
    { mode: 'optional_over_http2', isHttp2: true, isAsked: false },
  ] as const) {
    t.match(
      readIdempotencyKey(null, mode, isHttp2),
      isAsked ? { ok: false, error: { reason: 'idempotency_key_missing' } } : { ok: true, value: null },
      `${mode} ${String(isHttp2)}`,
    );
    t.same(readIdempotencyKey('a', mode, isHttp2), { ok: true, value: 'a' });
    t.match(readIdempotencyKey('', mode, isHttp2), { ok: false, error: { reason: 'idempotency_key_malformed' } });
  }
  t.end();
});

t.test('RFC 8941 §3.3.3: every printable text has one quoted spelling, which reads back', (t) => {
  const printable = fc.string({
    unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 1,
    maxLength: 255,
  });
  fc.assert(fc.property(printable, (key) => read(`"${key.replace(/["\\]/g, '\\$&')}"`) === key));
  t.end();
});
