/** Opening handshakes of a WebSocket (RFC 6455 §4.2.1): what differs from a sound one, and what is said of it. */

export const sampleKey = 'dGhlIHNhbXBsZSBub25jZQ==';

export interface ChangedHandshake {
  readonly method?: string;
  readonly httpVersion?: string;
  /** Replace the fields of that name; `null` takes it away. */
  readonly fields?: Readonly<Record<string, string | readonly string[] | null>>;
}

export interface HandshakeRow extends ChangedHandshake {
  readonly name: string;
  /** The reason of the refusal; `null` where it is sound. */
  readonly expected: string | null;
}

/** The fields of a sound one with these changes, names and values in turn. */
export function handshakeFields(changed: ChangedHandshake['fields'] = {}): string[] {
  const fields: Record<string, string | readonly string[] | null> = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': sampleKey,
    ...changed,
  };
  return Object.entries(fields).flatMap(([name, value]) =>
    value === null ? [] : [value].flat().flatMap((text) => [name, text]),
  );
}

export const handshakes: readonly HandshakeRow[] = [
  { name: 'sound', expected: null },
  { name: 'any case', fields: { Upgrade: 'WebSocket', Connection: 'keep-alive, UPGRADE' }, expected: null },
  { name: 'an offer of HTTP/2 beside it', fields: { Upgrade: 'h2c, websocket' }, expected: null },
  { name: 'blanks around the key', fields: { 'Sec-WebSocket-Key': `  ${sampleKey}\t` }, expected: null },
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
  { name: 'two keys', fields: { 'Sec-WebSocket-Key': [sampleKey, sampleKey] }, expected: 'websocket_handshake' },
  { name: 'a short key', fields: { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25j' }, expected: 'websocket_handshake' },
  {
    name: 'a long key',
    fields: { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZTEyMw==' },
    expected: 'websocket_handshake',
  },
  {
    name: 'a key with more behind it',
    fields: { 'Sec-WebSocket-Key': `${sampleKey}x` },
    expected: 'websocket_handshake',
  },
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
    fields: { 'Sec-WebSocket-Key': null, Sec_WebSocket_Key: sampleKey },
    expected: 'websocket_handshake',
  },
];
