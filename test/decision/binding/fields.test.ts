/** What becomes of the fields that prove something: which are read, which go on. */
import t from 'tap';
import { identityHeaders, upstreamHeaders } from '../../../src/decision/http/forwarded-headers.js';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import { readHeaders, type RequestHeaders } from '../../../src/decision/http/request-headers.js';
import { principal } from '../samples.js';

function read(fields: readonly string[], readsClientCert?: boolean): RequestHeaders {
  const settings = { identityNames: [], underscoreFields: 'drop', http10: 'refuse' } as const;
  const rules = createHeaderRules(readsClientCert === undefined ? settings : { ...settings, readsClientCert });
  const head = { method: 'GET', target: '/', httpVersion: '1.1', rawHeaders: ['Host', 'a', ...fields] };
  const found = readHeaders(head, rules);
  if (!found.ok) throw new Error(found.error.reason);
  return found.value;
}

t.test('a proof is read, and is none of the headers that pass as they came', (t) => {
  const rows: readonly (readonly [readonly string[], boolean, string | null])[] = [
    [['Authorization', 'DPoP a.b.c', 'DPoP', 'x'], true, 'x'],
    [['Authorization', 'dPoP a.b.c', 'dpop', 'x'], true, 'x'],
    [['Authorization', 'Bearer a.b.c', 'DPoP', 'x'], false, 'x'],
    [['Authorization', 'DPoP a.b.c', 'DPoP', 'x', 'DPoP', 'y'], true, 'x, y'],
    [['Authorization', 'DPoP a.b.c', 'D-PoP', 'x', 'D_PoP', 'y'], true, null],
    [['Authorization', 'DPoPx a.b.c'], false, null],
  ];
  for (const [fields, saysBound, dpop] of rows) {
    const found = read(fields);
    t.same([found.saysBound, found.dpop, found.passed], [saysBound, dpop, []], fields.join(' '));
  }
  t.ok(read(['Authorization', 'DPoP a.b.c']).bearer.ok);
  t.notOk(read(['Authorization', 'DPoP  a.b.c']).bearer.ok);
  t.notOk(read(['Authorization', 'DPoP a,b']).bearer.ok);
  t.end();
});

t.test('Client-Cert is read where the config says so, and is dropped elsewhere', (t) => {
  for (const [readsClientCert, expected] of [
    [true, ':AA:'],
    [false, null],
    [undefined, null],
  ] as const) {
    const found = read(['Client-Cert', ':AA:', 'X-Client-Cert', 'x', 'Client_Cert', 'y'], readsClientCert);
    t.same([found.clientCert, found.passed], [expected, []], String(readsClientCert));
    t.equal((found.stripped.forwarded ?? 0) + found.strippedUnlessTrusted, 3);
  }
  t.end();
});

t.test('a proof goes on with the token, and the name of a certificate where a header is named for it', (t) => {
  const forwarded = (forwardsAuthorization: boolean, fields: readonly string[]): readonly string[] =>
    upstreamHeaders({
      headers: read(fields),
      httpVersion: '1.1',
      remoteAddress: '192.0.2.1',
      trusted: false,
      encrypted: true,
      host: null,
      requestId: 'r',
      traceparent: null,
      forwardsAuthorization,
      takesTrailers: false,
      identity: [],
    }).filter((text, i, all) => ['DPoP', 'Authorization'].includes(all[i - (i % 2)] ?? '') && text !== '');
  const fields = ['Authorization', 'DPoP a.b.c', 'DPoP', 'x'];
  t.same(forwarded(true, fields), fields);
  t.same(forwarded(false, fields), []);
  t.same(forwarded(true, fields.slice(0, 2)), fields.slice(0, 2));

  const none = { subject: null, issuer: null, permissions: null, tokenId: null, kind: null };
  t.same(identityHeaders({ ...none, clientCertificate: 'X-C' }, principal(), 'CN=a'), ['X-C', 'CN=a']);
  t.same(identityHeaders({ ...none, clientCertificate: 'X-C' }, principal(), null), []);
  t.same(identityHeaders({ ...none, clientCertificate: null }, principal(), 'CN=a'), []);
  t.same(identityHeaders(none, principal(), 'CN=a'), []);
  t.end();
});
