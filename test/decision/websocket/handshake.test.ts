import t from 'tap';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import { readHeaders, type RequestHeaders } from '../../../src/decision/http/request-headers.js';
import { acceptOf, readAgreement, refusedUpgrade } from '../../../src/decision/websocket/handshake.js';
import { handshakeFields, handshakes, sampleKey, type ChangedHandshake } from '../../support/attacks/handshakes.js';

const rules = createHeaderRules({ identityNames: [], underscoreFields: 'drop', http10: 'allow' });

function judged(
  { method = 'GET', httpVersion = '1.1', fields = {} }: ChangedHandshake,
  isOffered = true,
): string | null {
  const head = { method, target: '/', httpVersion, rawHeaders: ['Host', 'a', ...handshakeFields(fields)] };
  const read = readHeaders(head, rules);
  if (!read.ok) return read.error.reason;
  return refusedUpgrade(head, read.value, isOffered)?.reason ?? null;
}

t.test('RFC 6455 §4.2.1: the opening handshake of a caller', (t) => {
  for (const { name, expected, ...changed } of handshakes) t.equal(judged(changed), expected, name);
  t.equal(judged({}, false), 'upgrade_refused', 'where no route takes any');
  t.end();
});

t.test('RFC 6455 §1.3: the proof that somebody read the key', (t) => {
  t.equal(acceptOf(sampleKey), 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  t.end();
});

const sound = ['Upgrade', 'websocket', 'Connection', 'Upgrade', 'Sec-WebSocket-Accept', acceptOf(sampleKey)];
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

t.test('RFC 6455 §4.1: the 101 of an upstream, against what was asked', (t) => {
  const read = readHeaders(
    {
      method: 'GET',
      target: '/',
      httpVersion: '1.1',
      rawHeaders: [
        'Host',
        'a',
        ...handshakeFields({
          'Sec-WebSocket-Protocol': ['v1', ' v2 , v4'],
          'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits, x-mine',
        }),
      ],
    },
    rules,
  );
  const asked: RequestHeaders['passed'] = read.ok ? read.value.passed : [];
  for (const { name, fields, expected } of answers) {
    const agreement = readAgreement(asked, fields);
    t.equal(agreement.ok ? agreement.value.extended : null, expected, name);
    if (!agreement.ok) t.equal(agreement.error.reason, 'upstream_failed');
  }
  t.equal(
    readAgreement(['Sec-WebSocket-Key', sampleKey], [...sound, 'Sec-WebSocket-Protocol', 'v1']).ok,
    false,
    'none was named',
  );
  t.end();
});
