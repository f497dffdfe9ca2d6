import t from 'tap';
import type { Reason } from '../../../src/decision/denial.js';
import type { HeaderRuleSettings } from '../../../src/decision/http/header-rules.js';
import { host, read } from './read-headers.js';

interface Refused {
  readonly name: string;
  readonly input: readonly string[];
  readonly reason: Reason;
  readonly settings?: Partial<HeaderRuleSettings>;
  readonly httpVersion?: string;
}

const once = ['Host', 'Authorization', 'Content-Type', 'Content-Length', 'Idempotency-Key', 'Transfer-Encoding'];

const refused: readonly Refused[] = [
  ...['1.0', '0.9', '2.0', '3.0', '', '1.2', '11', '1.1 '].map((httpVersion) => ({
    name: `version ${httpVersion}`,
    input: host,
    httpVersion,
    reason: 'http_version' as const,
  })),
  ...['0.9', '2.0', '1.2'].map((httpVersion) => ({
    name: `version ${httpVersion}, where 1.0 is allowed`,
    input: host,
    httpVersion,
    settings: { http10: 'allow' as const },
    reason: 'http_version' as const,
  })),
  ...once.flatMap((name) => [
    { name: `two ${name}`, input: [...host, name, '5', name, '6'], reason: 'field_repeated' as const },
    {
      name: `two equal ${name}`,
      input: [...host, name, '5', name.toUpperCase(), '5'],
      reason: 'field_repeated' as const,
    },
    {
      name: `${name} and an empty one`,
      input: [...host, name, '', name.toLowerCase(), '5'],
      reason: 'field_repeated' as const,
    },
  ]),
  { name: 'no Host', input: ['Accept', '*/*'], reason: 'host_malformed' },
  { name: 'no fields', input: [], reason: 'host_malformed' },
  { name: 'a Host in another spelling is none', input: ['H_ost', 'a'], reason: 'host_malformed' },
  {
    name: 'no Host in HTTP/1.0',
    input: [],
    httpVersion: '1.0',
    settings: { http10: 'allow' },
    reason: 'host_malformed',
  },
  { name: 'an empty Host', input: ['Host', ''], reason: 'host_malformed' },
  { name: 'a list of hosts', input: ['Host', 'a, b'], reason: 'host_malformed' },
  { name: 'user information', input: ['Host', 'a@b'], reason: 'host_malformed' },
  {
    name: 'a name with an underscore, where these are refused',
    input: [...host, 'my_field', 'a'],
    settings: { underscoreFields: 'refuse' },
    reason: 'field_refused',
  },
  { name: 'a name that is no token', input: [...host, 'a b', 'c'], reason: 'field_malformed' },
  { name: 'an empty name', input: [...host, '', 'c'], reason: 'field_malformed' },
  { name: 'a line end in a value', input: [...host, 'A', 'b\r\nX-Caller: c'], reason: 'field_malformed' },
  { name: 'a NUL in a value', input: [...host, 'A', 'b\u0000'], reason: 'field_malformed' },
  { name: 'DEL in a value', input: [...host, 'A', '\u007f'], reason: 'field_malformed' },
  { name: 'a value that is no bytes', input: [...host, 'A', '\u0141'], reason: 'field_malformed' },
  { name: 'a control in a field that is dropped', input: [...host, 'X-Caller', '\u0001'], reason: 'field_malformed' },
  { name: 'both framings', input: [...host, 'Content-Length', '5', 'Transfer-Encoding', 'chunked'], reason: 'framing' },
  { name: 'another coding', input: [...host, 'Transfer-Encoding', 'gzip, chunked'], reason: 'framing' },
  { name: 'a length that is none', input: [...host, 'Content-Length', '+5'], reason: 'framing' },
  {
    name: 'chunks in HTTP/1.0',
    input: [...host, 'Transfer-Encoding', 'chunked'],
    httpVersion: '1.0',
    settings: { http10: 'allow' },
    reason: 'framing',
  },
  {
    name: 'Connection names the key',
    input: [...host, 'Connection', 'close, Idempotency-Key', 'Idempotency-Key', 'a'],
    reason: 'connection_option',
  },
  {
    name: 'on a second line',
    input: [...host, 'Connection', 'close', 'Content-Type', 'a', 'connection', 'CONTENT-TYPE'],
    reason: 'connection_option',
  },
  { name: 'an identity header', input: [...host, 'Connection', 'x_caller'], reason: 'connection_option' },
  { name: 'no token', input: [...host, 'Connection', 'a b'], reason: 'field_malformed' },
  ...['', 'x', '100-continue, x', '100-continue=1', '100continue', '200-ok', '100-continue, 100-continue'].map(
    (value) => ({
      name: `Expect: ${value}`,
      input: [...host, 'Expect', value],
      reason: 'expectation_unknown' as const,
    }),
  ),
  {
    name: 'two lines of Expect',
    input: [...host, 'Expect', '100-continue', 'Expect', '100-continue'],
    reason: 'expectation_unknown',
  },
  {
    name: 'one field too many',
    input: [...host, ...Array<string[]>(256).fill(['A', 'b']).flat()],
    reason: 'header_too_large',
  },
];

t.test('header sections that are refused', (t) => {
  for (const { name, input, reason, settings, httpVersion } of refused) {
    t.same(read(input, settings, httpVersion), { ok: false, error: { reason } }, name);
  }
  t.end();
});
