import t from 'tap';
import { readHttp2Head } from '../../../src/decision/http2/request-head.js';
import type { Reason } from '../../../src/decision/denial.js';

const pseudo = [':method', 'GET', ':scheme', 'http', ':path', '/orders?a=b', ':authority', 'shop.example'];

/** The pseudo-header fields with some replaced; `null` leaves one out. */
function withPseudo(changes: Readonly<Record<string, string | null>>): string[] {
  const fields = new Map<string, string | null>();
  for (let i = 0; i < pseudo.length; i += 2) fields.set(pseudo[i] ?? '', pseudo[i + 1] ?? '');
  for (const [name, value] of Object.entries(changes)) fields.set(name, value);
  return [...fields].flatMap(([name, value]) => (value === null ? [] : [name, value]));
}

t.test('a head of HTTP/2 is the one that every decision is made from', (t) => {
  const read = readHttp2Head([...pseudo, 'user-agent', 'x', 'accept', '*/*'], true);
  t.same(read, {
    ok: true,
    value: {
      method: 'GET',
      target: '/orders?a=b',
      httpVersion: '2.0',
      rawHeaders: ['host', 'shop.example', 'user-agent', 'x', 'accept', '*/*'],
      endsStream: true,
    },
  });
  const named = readHttp2Head([...withPseudo({ ':authority': null }), 'host', 'a.example'], false);
  t.same(named.ok && named.value.rawHeaders, ['host', 'a.example'], 'Host stands in for :authority');
  const both = readHttp2Head([...pseudo, 'host', 'SHOP.example'], false);
  t.same(both.ok && both.value.rawHeaders, ['host', 'shop.example'], 'and beside it, where it says the same');
  const cookies = readHttp2Head([...pseudo, 'cookie', 'a=1', 'accept', '*/*', 'cookie', 'b=2'], false);
  t.same(
    cookies.ok && cookies.value.rawHeaders,
    ['host', 'shop.example', 'cookie', 'a=1; b=2', 'accept', '*/*'],
    'a cookie in pieces is one',
  );
  t.ok(readHttp2Head([...pseudo, 'te', 'trailers'], false).ok);
  t.ok(readHttp2Head(withPseudo({ ':method': 'OPTIONS', ':path': '*' }), true).ok);
  t.ok(readHttp2Head(withPseudo({ ':method': 'CONNECT', ':path': null, ':scheme': null }), true).ok, 'refused later');
  t.end();
});

t.test('what is no head of HTTP/2 goes no further', (t) => {
  const rows: readonly (readonly [title: string, fields: readonly string[], reason: Reason])[] = [
    ['no method', withPseudo({ ':method': null }), 'method_malformed'],
    ['no path', withPseudo({ ':path': null }), 'target_malformed'],
    ['an empty path', withPseudo({ ':path': '' }), 'target_malformed'],
    ['the absolute form', withPseudo({ ':path': 'http://other/x' }), 'target_malformed'],
    ['a path that is relative', withPseudo({ ':path': 'x' }), 'target_malformed'],
    ['* of another method', withPseudo({ ':path': '*' }), 'target_malformed'],
    ['no scheme', withPseudo({ ':scheme': null }), 'field_malformed'],
    ['another scheme', withPseudo({ ':scheme': 'ftp' }), 'field_malformed'],
    ['a second method', [...pseudo, ':method', 'POST'], 'field_repeated'],
    ['a second path', [...pseudo, ':path', '/admin'], 'field_repeated'],
    ['a second authority', [...pseudo, ':authority', 'other'], 'field_repeated'],
    ['an unknown one', [...pseudo, ':status', '200'], 'field_malformed'],
    ['one of extended CONNECT', [...pseudo, ':protocol', 'websocket'], 'field_malformed'],
    ['one behind a field', ['accept', '*/*', ...pseudo], 'field_malformed'],
    ['one behind Host', [...pseudo.slice(0, 6), 'host', 'x', ':authority', 'x'], 'field_malformed'],
    ['a name in upper case', [...pseudo, 'Accept', '*/*'], 'field_malformed'],
    ['another Host', [...pseudo, 'host', 'other.example'], 'host_malformed'],
    ['two Hosts', [...withPseudo({ ':authority': null }), 'host', 'a', 'host', 'a'], 'field_repeated'],
    ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'http2-settings'].map(
      (name) => [name, [...pseudo, name, 'x'], 'field_malformed'] as const,
    ),
    ['te of more than trailers', [...pseudo, 'te', 'trailers, deflate'], 'field_malformed'],
    ['te of something else', [...pseudo, 'te', 'gzip'], 'field_malformed'],
  ];
  for (const [title, fields, reason] of rows) {
    const read = readHttp2Head(fields, true);
    t.equal(read.ok ? null : read.error.denial.reason, reason, title);
  }
  t.end();
});
