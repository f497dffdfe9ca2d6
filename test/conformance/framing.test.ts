/**
 * docs/contract.md 3.1, 3.3, 4; docs/security-requirements.md: messages that two readers could split
 * differently never get through.
 */
import t from 'tap';
import { badCodings, badLengths, brokenChunks, brokenFramingLines } from '../support/attacks/framing.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { until } from '../support/until.js';
import { checkRefusal, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

const proxy = await startProxyProcess(t);
const auth = `Authorization: Bearer ${proxy.token()}`;

/** A request by its lines; every one of them has a good token. */
const get = (...lines: string[]): string => ['GET /orders HTTP/1.1', 'Host: a', auth, ...lines, '', ''].join('\r\n');
const post = (lines: readonly string[], body: string): string =>
  ['POST /orders HTTP/1.1', 'Host: a', auth, ...lines, '', body].join('\r\n');
const chunked = 'Transfer-Encoding: chunked';
const good = get();

const refusedHeads: readonly (readonly [string, string])[] = [
  ['length and chunks', post(['Content-Length: 5', chunked], '0\r\n\r\n')],
  ['chunks and length', post([chunked, 'Content-Length: 5'], '0\r\n\r\n')],
  ['length and chunks, the length 0', post(['Content-Length: 0', chunked], '0\r\n\r\n')],
  ...badLengths(1).map(
    (value) => [`the length ${JSON.stringify(value)}`, post([`Content-Length: ${value}`], 'x')] as const,
  ),
  ...badCodings.map(
    (value) => [`the coding ${JSON.stringify(value)}`, post([`Transfer-Encoding: ${value}`], '0\r\n\r\n')] as const,
  ),
  ...brokenFramingLines(1).map((lines) => [`the lines ${JSON.stringify(lines)}`, post([lines], '0\r\n\r\n')] as const),
  ['an empty coding without a blank', post(['Transfer-Encoding:'], '0\r\n\r\n')],
  ['a folded line', get('X-Folded: a', ' b')],
  ['NUL in a value', get('X-Odd: a\0b')],
  ['a bare CR in a value', get('X-Odd: a\rb')],
  ['a bare LF that ends a line', get('X-Odd: a\nX-Other: b')],
  ['a name with a space', get('X Odd: a')],
  ['a name with a parenthesis', get('X(Odd): a')],
  ['a line without a colon', get('X-Odd')],
  ['an empty name', get(': a')],
  ['a non-ASCII name', get('X-\xe9: a')],
  ['a space before the first field', `GET /orders HTTP/1.1\r\n Host: a\r\n${auth}\r\n\r\n`],
  ['no Host', `GET /orders HTTP/1.1\r\n${auth}\r\n\r\n`],
  ['two Hosts', get('Host: b')],
  ['HTTP/1.0', `GET /orders HTTP/1.0\r\nHost: a\r\n${auth}\r\n\r\n`],
  ['HTTP/1.0 with chunks', `POST /orders HTTP/1.0\r\nHost: a\r\n${auth}\r\n${chunked}\r\n\r\n0\r\n\r\n`],
  ['HTTP/0.9', 'GET /orders\r\n\r\n'],
  ['HTTP/1.2', `GET /orders HTTP/1.2\r\nHost: a\r\n${auth}\r\n\r\n`],
  ['HTTP/2.0', `GET /orders HTTP/2.0\r\nHost: a\r\n${auth}\r\n\r\n`],
  ['HTTP/11', `GET /orders HTTP/11\r\nHost: a\r\n${auth}\r\n\r\n`],
  ['http/1.1', `GET /orders http/1.1\r\nHost: a\r\n${auth}\r\n\r\n`],
  ['a preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a tab in the request line', `GET\t/orders HTTP/1.1\r\nHost: a\r\n${auth}\r\n\r\n`],
  [
    'a body on GET that hides a request',
    `${get('Content-Length: 40').slice(0, -2)}\r\nGET /orders HTTP/1.1\r\nHost: a\r\n\r\n`,
  ],
  ['a TLS greeting', '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03'],
  ['a SOCKS greeting', '\x05\x01\x00\r\n\r\n'],
];

t.test('ambiguous heads are 400, close the connection and never reach the upstream', async (t) => {
  const before = proxy.receiver.requests.length;
  for (const [name, bytes] of refusedHeads) {
    // What follows would be taken for a request of its own by whoever split the message elsewhere.
    const responses = await proxy.send(Buffer.from(`${bytes}${good}`, 'latin1'), { untilClosed: true });
    t.equal(responses.length, 1, `${name}: one answer and a close`);
    const [response] = responses;
    if (response === undefined) continue;
    checkRefusal(t, response, refusals.badRequest, name);
  }
  t.same(
    proxy.receiver.requests.slice(before).map(({ target, rawHeaders }) => [target, rawHeaders]),
    [],
    'nothing reached the receiver',
  );
  t.equal((await proxy.send(good)).at(-1)?.status, 200, 'a good request still passes');
});

const brokenBodies = brokenChunks.map((body) => [JSON.stringify(body), post([chunked], body)] as const);

t.test('a body that breaks its framing is never a whole request to the upstream', async (t) => {
  for (const [name, bytes] of brokenBodies) {
    const before = proxy.receiver.requests.length;
    const responses = await proxy.send(bytes, { untilClosed: true });
    t.ok(responses.length <= 1, `${name}: at most one answer`);
    for (const { status } of responses) t.equal(status, 400, name);
    await until('what began at the receiver is broken off', () =>
      proxy.receiver.requests.slice(before).every(({ aborted }) => aborted),
    );
    t.same(
      proxy.receiver.requests.slice(before).filter(({ complete }) => complete),
      [],
      name,
    );
  }
  t.equal((await proxy.send(good)).at(-1)?.status, 200, 'a good request still passes');
});

t.test('requests of one connection are judged one by one and answered in order', async (t) => {
  const before = proxy.receiver.requests.length;
  const anonymous = 'GET /orders/secret HTTP/1.1\r\nHost: a\r\n\r\n';
  const second = post(['Content-Length: 2'], 'hi');
  const responses = await proxy.send(`${good}${second}${anonymous}`, { responses: 3 });
  t.same(
    responses.map(({ status }) => status),
    [200, 200, 401],
  );
  t.same(
    proxy.receiver.requests.slice(before).map(({ method, body }) => [method, body.toString()]),
    [
      ['GET', ''],
      ['POST', 'hi'],
    ],
  );
  const mixed = await proxy.send(`${good}GARBAGE\r\n\r\n`, { responses: 2 });
  t.same(
    mixed.map(({ status }) => status),
    [200, 400],
    'garbage after a good request',
  );
  t.equal(proxy.receiver.requests.length, before + 3);
});

t.test('chunks and lengths in their plain form pass', async (t) => {
  const rows: readonly (readonly [string, string, string])[] = [
    ['a length', post(['Content-Length: 3'], 'abc'), 'abc'],
    ['a length in lower case with spaces around', post(['content-length:   3  '], 'abc'), 'abc'],
    ['no body', post(['Content-Length: 0'], ''), ''],
    ['chunks', post([chunked], '1\r\na\r\n2\r\nbc\r\n0\r\n\r\n'), 'abc'],
    ['chunked in capitals', post(['TRANSFER-ENCODING: Chunked'], '3\r\nabc\r\n0\r\n\r\n'), 'abc'],
    ['sizes in either case with zeros', post([chunked], '00A\r\n0123456789\r\n0\r\n\r\n'), '0123456789'],
    ['chunk extensions', post([chunked], '3;a=b;c="d"\r\nabc\r\n0\r\n\r\n'), 'abc'],
    ['trailers', post([chunked, 'Trailer: X-T'], '3\r\nabc\r\n0\r\nX-T: 1\r\nX-Auth-Subject: root\r\n\r\n'), 'abc'],
  ];
  for (const [name, bytes, body] of rows) {
    const [response] = await proxy.send(bytes);
    t.equal(response?.status, 200, name);
    const received = proxy.receiver.requests.at(-1);
    t.equal(received?.body.toString(), body, name);
    t.same(received?.trailers, [], `${name}: trailers end here`);
    t.same(received?.field('x-auth-subject'), ['checkout'], `${name}: and change nothing`);
  }
});

checkSilence(t, proxy);
