import t from 'tap';
import { isInterim, readResponseHead, type ResponseHead } from '../../../../src/proxy/upstream/http1/response-head.js';

/** A 200 with these fields, each a whole line without its end. */
function withFields(lines: readonly string[], startLine = 'HTTP/1.1 200 OK', answersHead = false): ResponseHead | null {
  return readResponseHead([startLine, ...lines].map((line) => `${line}\r\n`).join(''), answersHead);
}

t.test('RFC 9112 §4: one form of a status line', (t) => {
  const cases = [
    { line: 'HTTP/1.1 200 OK', status: 200 },
    { line: 'HTTP/1.0 200 OK', status: 200 },
    { line: 'HTTP/1.1 200 ', status: 200 },
    { line: 'HTTP/1.1 200', status: 200 },
    { line: 'HTTP/1.1 200 \tvery  well \xe9', status: 200 },
    { line: 'HTTP/1.1 100', status: 100 },
    { line: 'HTTP/1.1 999 Odd', status: 999 },
    { line: 'HTTP/1.1 099 Odd', status: null },
    { line: 'HTTP/1.1 000 Odd', status: null },
    { line: 'HTTP/1.1 20 OK', status: null },
    { line: 'HTTP/1.1 2000 OK', status: null },
    { line: 'HTTP/1.1 200OK', status: null },
    { line: 'HTTP/1.1 200\tOK', status: null },
    { line: 'HTTP/1.1 2x0 OK', status: null },
    { line: 'HTTP/1.1  200 OK', status: null },
    { line: ' HTTP/1.1 200 OK', status: null },
    { line: '\r\nHTTP/1.1 200 OK', status: null },
    { line: 'HTTP/1.2 200 OK', status: null },
    { line: 'HTTP/2.0 200 OK', status: null },
    { line: 'HTTP/1.10 200 OK', status: null },
    { line: 'HTTP/1 200 OK', status: null },
    { line: 'http/1.1 200 OK', status: null },
    { line: 'ICY 200 OK', status: null },
    { line: 'HTTP/1.1 200 O\x00K', status: null },
    { line: 'HTTP/1.1 200 O\rK', status: null },
    { line: 'HTTP/1.1 200 O\nK', status: null },
    { line: 'HTTP/1.1 200 O\x7fK', status: null },
    { line: 'HTTP/1.1 200 \u0100', status: null },
    { line: 'GET / HTTP/1.1', status: null },
    { line: '', status: null },
  ];
  for (const { line, status } of cases) t.equal(withFields([], line)?.status ?? null, status, JSON.stringify(line));
  t.end();
});

t.test('RFC 9112 §5: one form of a header line, and nothing is mended', (t) => {
  const cases = [
    { line: 'A: b', fields: ['A', 'b'] },
    { line: 'A:b', fields: ['A', 'b'] },
    { line: 'A:', fields: ['A', ''] },
    { line: 'A:   ', fields: ['A', ''] },
    { line: 'A: \t b c \t ', fields: ['A', 'b c'] },
    { line: 'A: b:c', fields: ['A', 'b:c'] },
    { line: "!#$%&'*+-.^_`|~09azAZ: \x21\x7e\x80\xff", fields: ["!#$%&'*+-.^_`|~09azAZ", '\x21\x7e\x80\xff'] },
    { line: 'A: \xa0b\xa0', fields: ['A', '\xa0b\xa0'] },
    { line: 'A : b', fields: null },
    { line: ' A: b', fields: null },
    { line: '\tA: b', fields: null },
    { line: ': b', fields: null },
    { line: 'A b', fields: null },
    { line: 'A\xe9: b', fields: null },
    { line: 'A(: b', fields: null },
    { line: 'A: b\x00', fields: null },
    { line: 'A: b\x1f', fields: null },
    { line: 'A: b\x7f', fields: null },
    { line: 'A: b\rC: d', fields: null },
    { line: 'A: b\nC: d', fields: null },
    { line: 'A: b\r\n C: d', fields: null },
    { line: 'A: b\r\n\tc', fields: null },
    { line: 'A: b\r\n\r\nC: d', fields: null },
  ];
  for (const { line, fields } of cases) t.same(withFields([line])?.headers ?? null, fields, JSON.stringify(line));
  t.equal(readResponseHead('HTTP/1.1 200 OK\r\nA: b', false), null, 'a line without an end');
  t.equal(readResponseHead('HTTP/1.1 200 OK\r\nA: b\n', false), null, 'a bare line feed at the end');
  t.same(withFields(['A: 1', 'B: 2', 'a: 3'])?.headers, ['A', '1', 'B', '2', 'a', '3'], 'order and spelling stay');
  t.end();
});

t.test(
  'RFC 9112 §6: one length, or chunked, or until the end; anything that two readers may take in two ways is refused',
  (t) => {
    const largest = String(Number.MAX_SAFE_INTEGER);
    const cases: readonly {
      readonly lines: readonly string[];
      readonly old?: true;
      readonly body: ResponseHead['body'] | null;
    }[] = [
      { lines: [], body: 'until-end' },
      { lines: ['Content-Length: 0'], body: 0 },
      { lines: ['Content-Length: 5'], body: 5 },
      { lines: ['content-LENGTH:5 '], body: 5 },
      { lines: ['Content-Length: 0005'], body: 5 },
      { lines: [`Content-Length: ${largest}`], body: Number.MAX_SAFE_INTEGER },
      { lines: ['Content-Length: 9007199254740992'], body: null },
      { lines: ['Content-Length: 18446744073709551621'], body: null },
      { lines: ['Content-Length:'], body: null },
      { lines: ['Content-Length: 5, 5'], body: null },
      { lines: ['Content-Length: 5,'], body: null },
      { lines: ['Content-Length: +5'], body: null },
      { lines: ['Content-Length: -5'], body: null },
      { lines: ['Content-Length: 5.0'], body: null },
      { lines: ['Content-Length: 5e0'], body: null },
      { lines: ['Content-Length: 0x5'], body: null },
      { lines: ['Content-Length: 5 5'], body: null },
      { lines: ['Content-Length: \xa05'], body: null },
      { lines: ['Content-Length: five'], body: null },
      { lines: ['Content-Length: 5', 'Content-Length: 5'], body: null },
      { lines: ['Content-Length: 5', 'content-length: 6'], body: null },
      { lines: ['Content_Length: 5'], body: 'until-end' },
      { lines: ['Transfer-Encoding: chunked'], body: 'chunked' },
      { lines: ['transfer-encoding:CHUNKED'], body: 'chunked' },
      { lines: ['Transfer-Encoding: \tchunked '], body: 'chunked' },
      { lines: ['Transfer-Encoding:'], body: null },
      { lines: ['Transfer-Encoding: identity'], body: null },
      { lines: ['Transfer-Encoding: gzip'], body: null },
      { lines: ['Transfer-Encoding: gzip, chunked'], body: null },
      { lines: ['Transfer-Encoding: chunked, gzip'], body: null },
      { lines: ['Transfer-Encoding: chunked, chunked'], body: null },
      { lines: ['Transfer-Encoding: chunked,'], body: null },
      { lines: ['Transfer-Encoding: chunked;a=b'], body: null },
      { lines: ['Transfer-Encoding: "chunked"'], body: null },
      { lines: ['Transfer-Encoding: xchunked'], body: null },
      { lines: ['Transfer-Encoding: \x0bchunked'], body: null },
      { lines: ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], body: null },
      { lines: ['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked'], body: null },
      { lines: ['Transfer-Encoding: chunked', 'Content-Length: 5'], body: null },
      { lines: ['Content-Length: 5', 'Transfer-Encoding: chunked'], body: null },
      { lines: ['Content-Length: 0', 'Transfer-Encoding: chunked'], body: null },
      { lines: ['Transfer-Encoding: chunked'], old: true, body: null },
      { lines: ['Content-Length: 5'], old: true, body: 5 },
      { lines: [], old: true, body: 'until-end' },
    ];
    for (const { lines, old, body } of cases) {
      const startLine = old === true ? 'HTTP/1.0 200 OK' : 'HTTP/1.1 200 OK';
      t.equal(withFields(lines, startLine)?.body ?? null, body, JSON.stringify([startLine, ...lines]));
      const bodyless = ['HTTP/1.1 204 X', 'HTTP/1.1 304 X', 'HTTP/1.1 103 X'].map((line) =>
        withFields(lines, old === true ? line.replace('1.1', '1.0') : line),
      );
      for (const head of [...bodyless, withFields(lines, startLine, true)]) {
        t.equal(
          head?.body ?? null,
          body === null ? null : 0,
          `${JSON.stringify(lines)}: none with 204, 304, 1xx and to HEAD, and no less strict`,
        );
      }
    }
    for (const status of [200, 203, 205, 303, 305, 404, 999]) {
      t.equal(withFields(['Content-Length: 5'], `HTTP/1.1 ${String(status)}`)?.body, 5);
    }
    t.end();
  },
);

t.test('RFC 9112 §9.3: whether the connection may carry another request', (t) => {
  const length = 'Content-Length: 5';
  const cases = [
    { line: 'HTTP/1.1 200', lines: [length], persists: true },
    { line: 'HTTP/1.1 200', lines: ['Transfer-Encoding: chunked'], persists: true },
    { line: 'HTTP/1.1 200', lines: [], persists: false },
    { line: 'HTTP/1.1 200', lines: [length, 'Connection: close'], persists: false },
    { line: 'HTTP/1.1 200', lines: [length, 'connection: CLOSE'], persists: false },
    { line: 'HTTP/1.1 200', lines: [length, 'Connection: x, close ,y'], persists: false },
    { line: 'HTTP/1.1 200', lines: [length, 'Connection: keep-alive', 'Connection: close'], persists: false },
    { line: 'HTTP/1.1 200', lines: [length, 'Connection: close', 'Connection: keep-alive'], persists: false },
    { line: 'HTTP/1.1 200', lines: [length, 'Connection: keep-alive'], persists: true },
    { line: 'HTTP/1.1 200', lines: [length, 'Connection: closed'], persists: true },
    { line: 'HTTP/1.1 200', lines: [length, 'Connections: close'], persists: true },
    { line: 'HTTP/1.0 200', lines: [length], persists: false },
    { line: 'HTTP/1.0 200', lines: [length, 'Connection: Keep-Alive'], persists: true },
    { line: 'HTTP/1.0 200', lines: [length, 'Connection: keep-alive, close'], persists: false },
    { line: 'HTTP/1.0 200', lines: ['Connection: keep-alive'], persists: false },
    { line: 'HTTP/1.1 204', lines: [], persists: true },
    { line: 'HTTP/1.1 204', lines: ['Content-Length: 0'], persists: true },
    { line: 'HTTP/1.1 204', lines: [length], persists: false },
    { line: 'HTTP/1.1 204', lines: ['Transfer-Encoding: chunked'], persists: false },
    { line: 'HTTP/1.1 304', lines: [length], persists: true },
    { line: 'HTTP/1.1 304', lines: ['Connection: close'], persists: false },
  ];
  for (const { line, lines, persists } of cases) {
    t.equal(withFields(lines, line)?.persists, persists, JSON.stringify([line, ...lines]));
  }
  for (const lines of [[], [length], ['Transfer-Encoding: chunked']]) {
    t.equal(withFields(lines, 'HTTP/1.1 200', true)?.persists, true, 'to HEAD');
  }
  t.end();
});

t.test('how long the upstream keeps an idle connection', (t) => {
  const cases = [
    { line: 'Keep-Alive: timeout=5', seconds: 5 },
    { line: 'keep-alive: max=100, Timeout=7', seconds: 7 },
    { line: 'Keep-Alive: timeout=0', seconds: 0 },
    { line: 'Keep-Alive: timeout=999999999', seconds: 999_999_999 },
    { line: 'Keep-Alive: timeout=', seconds: null },
    { line: 'Keep-Alive: timeout=x', seconds: null },
    { line: 'Keep-Alive: xtimeout=5', seconds: null },
    { line: 'Keep-Alive: 5', seconds: null },
    { line: 'X-Other: timeout=5', seconds: null },
  ];
  for (const { line, seconds } of cases) t.equal(withFields([line])?.keepAliveS, seconds, line);
  t.end();
});

t.test('which heads are followed by another', (t) => {
  for (const [status, expected] of [
    [100, true],
    [101, false],
    [102, true],
    [103, true],
    [199, true],
    [200, false],
  ] as const) {
    const head = withFields([], `HTTP/1.1 ${String(status)}`);
    t.equal(head === null ? null : isInterim(head), expected, String(status));
  }
  t.end();
});
