import t from 'tap';
import { readBearer } from '../../../src/decision/token/credential.js';
import { maxTokenBytes } from '../../../src/decision/token/compact-jws.js';

const accepted = [
  { name: 'as usual', input: 'Bearer a.b.c', expected: 'a.b.c' },
  { name: 'lower case', input: 'bearer a.b.c', expected: 'a.b.c' },
  { name: 'upper case', input: 'BEARER a.b.c', expected: 'a.b.c' },
  { name: 'mixed case', input: 'bEaReR a.b.c', expected: 'a.b.c' },
  { name: 'every token character', input: 'Bearer AZaz09-._~+/==', expected: 'AZaz09-._~+/==' },
  { name: 'as long as may be', input: `Bearer ${'a'.repeat(maxTokenBytes)}`, expected: 'a'.repeat(maxTokenBytes) },
];

const malformed = [
  { name: 'empty', input: '' },
  { name: 'the scheme alone', input: 'Bearer' },
  { name: 'no token', input: 'Bearer ' },
  { name: 'two spaces', input: 'Bearer  a.b.c' },
  { name: 'a tab', input: 'Bearer\ta.b.c' },
  { name: 'a space in front', input: ' Bearer a.b.c' },
  { name: 'a space behind', input: 'Bearer a.b.c ' },
  { name: 'a newline behind', input: 'Bearer a.b.c\n' },
  { name: 'no space', input: 'Bearera.b.c' },
  { name: 'another scheme', input: 'Basic YTpi' },
  { name: 'a scheme that begins alike', input: 'Bearers a.b.c' },
  { name: 'no scheme', input: 'a.b.c' },
  { name: 'the scheme twice', input: 'Bearer Bearer a.b.c' },
  { name: 'two fields joined by a comma', input: 'Bearer a.b.c, Bearer d.e.f' },
  { name: 'joined without a space', input: 'Bearer a.b.c,d.e.f' },
  { name: 'two tokens', input: 'Bearer a.b.c d.e.f' },
  { name: 'quoted', input: 'Bearer "a.b.c"' },
  { name: 'a parameter', input: 'Bearer token=abc' },
  { name: 'padding alone', input: 'Bearer ==' },
  { name: 'padding inside', input: 'Bearer a=b' },
  { name: 'a byte beyond ASCII', input: 'Bearer a.b.\u00e9' },
  { name: 'a NUL', input: 'Bearer a.b.c\0' },
  { name: 'a percent escape', input: 'Bearer a%2eb' },
  { name: 'one byte too long', input: `Bearer ${'a'.repeat(maxTokenBytes + 1)}` },
  { name: 'a Kelvin sign is no k', input: 'Bearer a.b.\u212a' },
];

t.test('Bearer in any case, one space, at most 8 KiB of token characters', (t) => {
  t.equal(maxTokenBytes, 8192);
  for (const { name, input, expected } of accepted) t.same(readBearer(input), { ok: true, value: expected }, name);
  for (const { name, input } of malformed) {
    t.same(readBearer(input), { ok: false, error: { reason: 'credential_malformed' } }, name);
  }
  t.end();
});

t.test('no field at all is a missing credential', (t) => {
  t.same(readBearer(null), { ok: false, error: { reason: 'credential_missing' } });
  t.end();
});
