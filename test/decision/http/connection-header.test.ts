import t from 'tap';
import { readConnection, withoutHeaders } from '../../../src/decision/http/connection-header.js';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import { malformedOptions, ownFields } from '../../support/attacks/connection-options.js';
import { cases, lookAlikes } from '../../support/attacks/field-names.js';

const { requestKind } = createHeaderRules({
  identityNames: ['X-Caller'],
  underscoreFields: 'refuse',
  http10: 'refuse',
});

const accepted = [
  { name: 'none', input: undefined, closes: false, keepsAlive: false, upgrades: false, removes: [] },
  { name: 'empty', input: '', closes: false, keepsAlive: false, upgrades: false, removes: [] },
  { name: 'empty elements', input: ' , ,\t,', closes: false, keepsAlive: false, upgrades: false, removes: [] },
  { name: 'close', input: 'close', closes: true, keepsAlive: false, upgrades: false, removes: [] },
  { name: 'close in another case', input: 'Close', closes: true, keepsAlive: false, upgrades: false, removes: [] },
  {
    name: 'keep-alive as most send it',
    input: 'keep-alive',
    closes: false,
    keepsAlive: true,
    upgrades: false,
    removes: [],
  },
  { name: 'keep-alive', input: 'Keep-Alive', closes: false, keepsAlive: true, upgrades: false, removes: [] },
  { name: 'both', input: 'keep-alive,close', closes: true, keepsAlive: true, upgrades: false, removes: [] },
  {
    name: 'an offer of HTTP/2',
    input: 'Upgrade, HTTP2-Settings',
    closes: false,
    keepsAlive: false,
    upgrades: true,
    removes: [],
  },
  { name: 'trailers', input: 'TE', closes: false, keepsAlive: false, upgrades: false, removes: [] },
  {
    name: 'fields to remove',
    input: 'close, X-One,\tX-Two ',
    closes: true,
    keepsAlive: false,
    upgrades: false,
    removes: ['x-one', 'x-two'],
  },
  {
    name: 'fields that end here anyway',
    input: 'Trailer, Proxy-Authorization',
    closes: false,
    keepsAlive: false,
    upgrades: false,
    removes: ['trailer', 'proxy-authorization'],
  },
  {
    name: 'a field with an underscore',
    input: 'my_field',
    closes: false,
    keepsAlive: false,
    upgrades: false,
    removes: ['my_field'],
  },
] as const;

t.test('what Connection asks for', (t) => {
  for (const { name, input, removes, ...options } of accepted) {
    t.same(readConnection(input, requestKind), { ok: true, value: { ...options, removes: new Set(removes) } }, name);
  }
  t.end();
});

t.test('a header with an underscore may be named, whatever becomes of it', (t) => {
  for (const underscoreFields of ['drop', 'allow', 'refuse'] as const) {
    const rules = createHeaderRules({ identityNames: [], underscoreFields, http10: 'refuse' });
    t.match(
      readConnection('my_field', rules.requestKind),
      { ok: true, value: { removes: new Set(['my_field']) } },
      underscoreFields,
    );
  }
  t.end();
});

t.test('nobody has us remove a header that we set or judge, nor one that looks like it', (t) => {
  for (const name of ['X-Caller', ...ownFields].flatMap((name) => [...cases(name), ...lookAlikes(name)])) {
    for (const value of [name, `close, ${name}`, `${name},keep-alive`]) {
      t.same(readConnection(value, requestKind), { ok: false, error: { reason: 'connection_option' } }, value);
    }
  }
  t.end();
});

t.test('an option that is no token is malformed', (t) => {
  for (const value of malformedOptions) {
    t.same(readConnection(value, requestKind), { ok: false, error: { reason: 'field_malformed' } }, value);
  }
  t.end();
});

t.test('headers are left out by name, in any case', (t) => {
  const fields = ['A', '1', 'b', '2', 'a', 'b'];
  t.equal(withoutHeaders(fields, new Set()), fields);
  t.same(withoutHeaders(fields, new Set(['a'])), ['b', '2']);
  t.same(withoutHeaders(fields, new Set(['b'])), ['A', '1', 'a', 'b']);
  t.same(withoutHeaders(fields, new Set(['1', '2'])), fields, 'values are no names');
  t.end();
});
