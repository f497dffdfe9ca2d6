/**
 * docs/contract.md 3.3: which fields of the caller reach the receiver, and which of the receiver's reach the caller.
 * Those that tell who calls: `identity-fields.test.ts`.
 */
import t from 'tap';
import { malformedOptions, ownFields } from '../support/attacks/connection-options.js';
import { badHosts } from '../support/attacks/hosts.js';
import { markedSecret } from '../support/secrets.js';
import { bare, names, startFieldsProxy, type Fields } from './fields-proxy.js';
import { checkRefusal, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

const { proxy, token, send, received } = await startFieldsProxy(t);

t.test('method and URL overrides and what only proxies may say are dropped', async (t) => {
  const dropped = [
    'X-HTTP-Method-Override',
    'X-HTTP-Method',
    'X-Method-Override',
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-Original-Method',
    'Forwarded',
    'X-Real-IP',
    'True-Client-IP',
    'X-Client-IP',
    'CF-Connecting-IP',
    'X-Cluster-Client-IP',
    'X-Request-URI',
    'X-Forwarded-Uri',
    'X-Forwarded-Prefix',
    'X-Forwarded-Method',
    'X-Envoy-Original-Path',
    'Proxy',
    'x_http_method_override',
  ];
  for (const name of dropped) {
    t.equal((await send([[name, 'evil-value']])).status, 200, name);
    t.notMatch(received().rawHeaders.join('\n'), 'evil-value', name);
  }
  t.equal((await send([['TE', 'deflate, trailers']])).status, 200);
  t.same(
    received().field('te'),
    ['trailers'],
    'that trailers are taken is said for the caller, and nothing else of TE',
  );
});

t.test('hop-by-hop headers and those that Connection names end here', async (t) => {
  const rows: readonly { name: string; fields: Fields }[] = [
    {
      name: 'keep-alive',
      fields: [
        ['Keep-Alive', 'timeout=99'],
        ['Connection', 'keep-alive'],
      ],
    },
    {
      name: 'proxy fields',
      fields: [
        ['Proxy-Connection', 'evil-value'],
        ['Proxy-Authorization', `Basic ${markedSecret}`],
        ['Proxy-Authenticate', 'evil-value'],
      ],
    },
    {
      name: 'te',
      fields: [
        ['TE', 'deflate;q=0.5'],
        ['Connection', 'te'],
      ],
    },
    {
      name: 'a named one',
      fields: [
        ['X-Private', 'evil-value'],
        ['Connection', 'X-Private'],
      ],
    },
    {
      name: 'a named one in another case',
      fields: [
        ['X-Private', 'evil-value'],
        ['Connection', 'close, x-pRIVATE'],
      ],
    },
    {
      name: 'a list over two lines',
      fields: [
        ['X-Private', 'evil-value'],
        ['Connection', 'keep-alive'],
        ['Connection', 'x-private'],
      ],
    },
    {
      name: 'h2c',
      fields: [
        ['Upgrade', 'h2c'],
        ['HTTP2-Settings', 'AAMAAABkAAQAoAAAAAIAAAAA'],
        ['Connection', 'Upgrade, HTTP2-Settings'],
      ],
    },
  ];
  const gone = [
    'keep-alive',
    'proxy-connection',
    'proxy-authorization',
    'proxy-authenticate',
    'te',
    'x-private',
    'upgrade',
    'http2-settings',
    'trailer',
  ];
  for (const { name, fields } of rows) {
    t.equal((await send(fields)).status, 200, name);
    t.same(
      names(received()).filter((other) => gone.includes(other)),
      [],
      name,
    );
    t.notMatch(received().rawHeaders.join('\n'), 'evil-value', name);
  }
});

t.test('Connection may not name a header that we set or judge', async (t) => {
  const before = proxy.receiver.requests.length;
  const named = [
    ...ownFields,
    ...ownFields.map((name) => name.toLowerCase()),
    'X_Auth_Subject',
    'idempotency_key',
    'close, X-Auth-Kind',
    'keep-alive,x-auth-issuer',
    ...malformedOptions,
  ];
  for (const option of named) {
    checkRefusal(t, await send([['Connection', option]]), refusals.badRequest, option);
    checkRefusal(
      t,
      await send([
        ['Connection', 'keep-alive'],
        ['Connection', option],
      ]),
      refusals.badRequest,
      `${option} on a second line`,
    );
  }
  t.equal(proxy.receiver.requests.length, before);
});

t.test('fields that may occur once are refused twice', async (t) => {
  const before = proxy.receiver.requests.length;
  const rows: readonly (readonly [string, Fields])[] = [
    ['Authorization', [['Authorization', `Bearer ${token}`]]],
    ['authorization', [['authorization', 'Bearer x']]],
    [
      'Host',
      [
        ['Host', 'a'],
        ['Host', 'a'],
      ],
    ],
    [
      'Content-Type',
      [
        ['Content-Type', 'text/plain'],
        ['content-type', 'text/plain'],
      ],
    ],
    [
      'Idempotency-Key',
      [
        ['Idempotency-Key', '"a"'],
        ['Idempotency-Key', '"a"'],
      ],
    ],
    [
      'Content-Length',
      [
        ['Content-Length', '0'],
        ['Content-Length', '0'],
      ],
    ],
  ];
  for (const [name, fields] of rows) t.equal((await send(fields)).status, 400, name);
  for (const host of badHosts) {
    checkRefusal(t, await send([['Host', host]]), refusals.badRequest, `Host: ${JSON.stringify(host)}`);
  }
  t.equal(proxy.receiver.requests.length, before);
  for (const host of ['orders', 'orders.example.com:8443', '127.0.0.1', '[::1]:80', 'ORDERS']) {
    t.equal((await send([['Host', host]])).status, 200, `Host: ${host}`);
  }
});

t.test('X-Forwarded-*, Via and Host are ours', async (t) => {
  await send([
    ['Host', 'orders.example.com'],
    ['X-Forwarded-For', '203.0.113.9'],
    ['X-Forwarded-Proto', 'https'],
    ['X-Forwarded-Host', 'evil.example'],
    ['Via', '1.0 evil'],
  ]);
  t.same(received().field('x-forwarded-for'), ['127.0.0.1']);
  t.same(received().field('x-forwarded-proto'), ['http']);
  t.same(received().field('x-forwarded-host'), ['orders.example.com']);
  t.same(received().field('host'), [new URL(proxy.receiver.url).host], "the receiver's own name");
  t.match(received().field('via').join(), /1\.1 sallyport$/);
});

t.test('everything else gets through as it came, in order', async (t) => {
  const fields: Fields = [
    ['Accept', 'text/html;q=0.5, */*'],
    ['X-Custom', 'a'],
    ['x-cUSTOM', 'b'],
    ['Cookie', `session=${markedSecret}`],
    ['User-Agent', 'test/1.0'],
    ['X-Empty', ''],
    ['__proto__', 'kept or dropped'],
    ['constructor', 'x'],
    ['If-None-Match', '"etag"'],
    ['Range', 'bytes=0-1'],
    ['Accept-Encoding', 'gzip'],
    ['Content-Type', 'application/json; charset=utf-8'],
  ];
  t.equal((await send(fields, '{}')).status, 200);
  const kept = fields.filter(([name]) => name !== '__proto__');
  for (const [name] of kept) {
    t.same(
      received().field(name),
      fields.filter(([other]) => bare(other) === bare(name)).map(([, value]) => value),
      name,
    );
  }
  const order = names(received()).filter((name) => kept.some(([other]) => other.toLowerCase() === name));
  t.same(
    order,
    kept.map(([name]) => name.toLowerCase()),
  );
});

t.test('no header of a caller causes a 5xx', async (t) => {
  const registered = [
    'A-IM',
    'Accept-Charset',
    'Accept-Datetime',
    'Alt-Used',
    'Cache-Control',
    'CDN-Loop',
    'Content-Encoding',
    'Content-Range',
    'Date',
    'DPoP',
    'Early-Data',
    'ETag',
    'Expires',
    'From',
    'HTTP2-Settings',
    'If-Match',
    'If-Modified-Since',
    'Keep-Alive',
    'Link',
    'Max-Forwards',
    'MIME-Version',
    'Origin',
    'Pragma',
    'Prefer',
    'Priority',
    'Proxy-Connection',
    'Referer',
    'Sec-WebSocket-Key',
    'Server',
    'Set-Cookie',
    'SOAPAction',
    'TE',
    'Timeout',
    'Trailer',
    'Upgrade',
    'Upgrade-Insecure-Requests',
    'Want-Digest',
    'Warning',
    'X-Forwarded-Port',
    'Expect',
    'Content-MD5',
    'Connection',
    'Transfer-Encoding',
    'Traceparent',
    'Tracestate',
    'Baggage',
    'Status',
    ':authority',
  ];
  for (const name of registered) {
    const { status } = await send([[name, 'x']]);
    t.ok([200, 400, 417].includes(status), `${name}: ${String(status)}`);
  }
});

t.test("the upstream's response loses hop-by-hop headers, identity names and marks of ours", async (t) => {
  proxy.receiver.behave((_req, res) => {
    res.writeHead(200, [
      ['Connection', 'X-Gone, close'],
      ['X-Gone', 'evil-value'],
      ['Keep-Alive', 'timeout=9, evil-value'],
      ['Proxy-Authenticate', 'Basic realm="evil-value"'],
      ['X-Auth-Subject', 'evil-value'],
      ['x_auth_kind', 'evil-value'],
      ['Idempotent-Replayed', 'true'],
      ['Idempotency-Outcome', 'evil-value'],
      ['Proxy-Status', 'sallyport; error=evil, other; error=dns_timeout'],
      ['Set-Cookie', `a=${markedSecret}`],
      ['Set-Cookie', 'b=2'],
      ['X-Kept', 'kept'],
      ['Upgrade', 'evil-value'],
      ['Trailer', 'evil-value'],
    ]);
    res.end('ok');
  });
  const response = await send([]);
  proxy.receiver.behave(null);
  t.equal(response.status, 200);
  t.notMatch(response.fields, [[/./, /evil/]]);
  t.same(
    response.fields.filter(([, value]) => value.includes('evil')),
    [],
  );
  t.equal(response.field('idempotent-replayed'), null);
  t.equal(response.field('proxy-status'), 'other; error=dns_timeout');
  t.same(
    response.fields.filter(([name]) => name.toLowerCase() === 'set-cookie').map(([, value]) => value),
    [`a=${markedSecret}`, 'b=2'],
  );
  t.equal(response.field('x-kept'), 'kept');
  t.equal(response.text, 'ok');
});

checkSilence(t, proxy);
