import t from 'tap';
import { createFieldRules } from '../../../src/decision/http/header-rules.js';
import { readFields, type RequestFields } from '../../../src/decision/http/request-headers.js';
import { acceptOf, readAgreement, refusedUpgrade } from '../../../src/decision/websocket/handshake.js';

const rules = createFieldRules({ identityNames: [], underscoreFields: 'drop', http10: 'allow' });
const key = 'dGhlIHNhbXBsZSBub25jZQ==';

interface Changed {
  readonly method?: string;
  readonly httpVersion?: string;
  /** Replace the fields of that name; `null` takes it away. */
  readonly fields?: Readonly<Record<string, string | readonly string[] | null>>;
}

function judged({ method = 'GET', httpVersion = '1.1', fields = {} }: Changed, isOffered = true): string | null {
  const head = { method, target: '/', httpVersion, rawHeaders: rawHeaders(fields) };
  const read = readFields(head, rules);
  if (!read.ok) return read.error.reason;
  return refusedUpgrade(head, read.value, isOffered)?.reason ?? null;
}

function rawHeaders(changed: Changed['fields'] = {}): string[] {
  const fields: Record<string, string | readonly string[] | null> = {
    Host: 'a',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': key,
    ...changed,
  };
  return Object.entries(fields).flatMap(([name, value]) =>
    value === null ? [] : [value].flat().flatMap((text) => [name, text]),
  );
}

const requests: readonly (Changed & { readonly name: string; readonly expected: string | null })[] = [
  { name: 'sound', expected: null },
  { name: 'any case', fields: { Upgrade: 'WebSocket', Connection: 'keep-alive, UPGRADE' }, expected: null },
  { name: 'an offer of HTTP/2 beside it', fields: { Upgrade: 'h2c, websocket' }, expected: null },
  { name: 'blanks around the key', fields: { 'Sec-WebSocket-Key': `  ${key}\t` }, expected: null },
  { name: 'an empty body', fields: { 'Content-Length': '0' }, expected: null },
  { name: 'another protocol', fields: { Upgrade: 'TLS/1.3' }, expected: 'upgrade_refused' },
  { name: 'another protocol beside it', fields: { Upgrade: 'websocket, foo' }, expected: 'upgrade_refused' },
  { name: 'one that begins like it', fields: { Upgrade: 'websockets' }, expected: 'upgrade_refused' },
  { name: 'with a version', fields: { Upgrade: 'websocket/13' }, expected: 'upgrade_refused' },
  { name: 'POST', method: 'POST', expected: 'websocket_handshake' },
  { name: 'HEAD', method: 'HEAD', expected: 'websocket_handshake' },
  { name: 'HTTP/1.0', httpVersion: '1.0', expected: 'websocket_handshake' },
  { name: 'no Connection', fields: { Connection: null }, expected: 'websocket_handshake' },
  { name: 'Connection without upgrade', fields: { Connection: 'keep-alive' }, expected: 'websocket_handshake' },
  { name: 'a body', fields: { 'Content-Length': '1' }, expected: 'websocket_handshake' },
  { name: 'chunks', fields: { 'Transfer-Encoding': 'chunked' }, expected: 'websocket_handshake' },
  { name: 'no version', fields: { 'Sec-WebSocket-Version': null }, expected: 'websocket_handshake' },
  { name: 'two versions', fields: { 'Sec-WebSocket-Version': ['13', '13'] }, expected: 'websocket_handshake' },
  { name: 'an old version', fields: { 'Sec-WebSocket-Version': '8' }, expected: 'websocket_version' },
  { name: 'a list of versions', fields: { 'Sec-WebSocket-Version': '13, 8' }, expected: 'websocket_version' },
  { name: 'no key', fields: { 'Sec-WebSocket-Key': null }, expected: 'websocket_handshake' },
  { name: 'two keys', fields: { 'Sec-WebSocket-Key': [key, key] }, expected: 'websocket_handshake' },
  { name: 'a short key', fields: { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25j' }, expected: 'websocket_handshake' },
  {
    name: 'a long key',
    fields: { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZTEyMw==' },
    expected: 'websocket_handshake',
  },
  { name: 'a key with more behind it', fields: { 'Sec-WebSocket-Key': `${key}x` }, expected: 'websocket_handshake' },
  {
    name: 'a key in base64url',
    fields: { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub2_jZQ==' },
    expected: 'websocket_handshake',
  },
  {
    name: 'a key with bits to spare',
    fields: { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZR==' },
    expected: 'websocket_handshake',
  },
  {
    name: 'a key without padding',
    fields: { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ' },
    expected: 'websocket_handshake',
  },
  {
    name: 'a key that Connection removes',
    fields: { Connection: 'Upgrade, Sec-WebSocket-Key' },
    expected: 'websocket_handshake',
  },
  {
    name: 'a look-alike of the key only',
    fields: { 'Sec-WebSocket-Key': null, Sec_WebSocket_Key: key },
    expected: 'websocket_handshake',
  },
];

t.test('RFC 6455 §4.2.1: the opening handshake of a caller', (t) => {
  for (const { name, expected, ...changed } of requests) t.equal(judged(changed), expected, name);
  t.equal(judged({}, false), 'upgrade_refused', 'where no route takes any');
  t.end();
});

t.test('RFC 6455 §1.3: the proof that somebody read the key', (t) => {
  t.equal(acceptOf(key), 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  t.end();
});

const sound = ['Upgrade', 'websocket', 'Connection', 'Upgrade', 'Sec-WebSocket-Accept', acceptOf(key)];
const without = (name: string): string[] => sound.filter((_text, i) => sound[i - (i % 2)] !== name);
const answers: readonly {
  readonly name: string;
  readonly fields: readonly string[];
  readonly expected: boolean | null;
}[] = [
  { name: 'sound', fields: sound, expected: false },
  {
    name: 'in any case',
    fields: ['upgrade', 'WebSocket', 'connection', 'keep-alive, upgrade', ...sound.slice(4)],
    expected: false,
  },
  { name: 'a subprotocol that was named', fields: [...sound, 'Sec-WebSocket-Protocol', 'v2'], expected: false },
  {
    name: 'an extension that was named',
    fields: [...sound, 'Sec-WebSocket-Extensions', 'permessage-deflate; server_no_context_takeover'],
    expected: true,
  },
  { name: 'no Upgrade', fields: without('Upgrade'), expected: null },
  { name: 'another protocol', fields: [...without('Upgrade'), 'Upgrade', 'h2c'], expected: null },
  { name: 'two Upgrades', fields: [...sound, 'Upgrade', 'websocket'], expected: null },
  { name: 'no Connection', fields: without('Connection'), expected: null },
  { name: 'no proof', fields: without('Sec-WebSocket-Accept'), expected: null },
  {
    name: 'the proof of another key',
    fields: [...without('Sec-WebSocket-Accept'), 'Sec-WebSocket-Accept', acceptOf('x')],
    expected: null,
  },
  { name: 'two proofs', fields: [...sound, ...sound.slice(4)], expected: null },
  { name: 'a subprotocol that nobody named', fields: [...sound, 'Sec-WebSocket-Protocol', 'v3'], expected: null },
  { name: 'a subprotocol in another case', fields: [...sound, 'Sec-WebSocket-Protocol', 'V2'], expected: null },
  {
    name: 'two subprotocols',
    fields: [...sound, 'Sec-WebSocket-Protocol', 'v1', 'Sec-WebSocket-Protocol', 'v2'],
    expected: null,
  },
  { name: 'a list of subprotocols', fields: [...sound, 'Sec-WebSocket-Protocol', 'v1, v2'], expected: null },
  { name: 'an empty subprotocol', fields: [...sound, 'Sec-WebSocket-Protocol', ''], expected: null },
  { name: 'an extension that nobody named', fields: [...sound, 'Sec-WebSocket-Extensions', 'x-other'], expected: null },
];

t.test('RFC 6455 §4.1: the 101 of a receiver, against what was asked', (t) => {
  const read = readFields(
    {
      method: 'GET',
      target: '/',
      httpVersion: '1.1',
      rawHeaders: rawHeaders({
        'Sec-WebSocket-Protocol': ['v1', ' v2 , v4'],
        'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits, x-mine',
      }),
    },
    rules,
  );
  const asked: RequestFields['passed'] = read.ok ? read.value.passed : [];
  for (const { name, fields, expected } of answers) {
    const agreement = readAgreement(asked, fields);
    t.equal(agreement.ok ? agreement.value.extended : null, expected, name);
    if (!agreement.ok) t.equal(agreement.error.reason, 'upstream_failed');
  }
  t.equal(
    readAgreement(['Sec-WebSocket-Key', key], [...sound, 'Sec-WebSocket-Protocol', 'v1']).ok,
    false,
    'none was named',
  );
  t.end();
});
