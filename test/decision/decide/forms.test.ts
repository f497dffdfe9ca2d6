import t from 'tap';
import { describeRequest, type Form } from '../../../src/decision/decide/forms.js';

function asking(rawHeaders: readonly string[], target = '/asked', method = 'GET') {
  return { method, target, httpVersion: '1.0', rawHeaders };
}

const nginx = ['Host', 'a.example', 'X-Original-URI', '/a%20b?q', 'X-Original-Method', 'POST'];
const forwarded = [
  ...['Host', 'decide', 'X-Forwarded-Method', 'PUT', 'X-Forwarded-Uri', '/a'],
  ...['X-Forwarded-Host', 'a.example', 'X-Forwarded-Proto', 'https'],
];

t.test('each form describes a request', (t) => {
  const rows: readonly (readonly [Form, readonly string[], object, boolean])[] = [
    ['nginx', nginx, { method: 'POST', target: '/a%20b?q', rawHeaders: ['Host', 'a.example'] }, false],
    [
      'nginx',
      [...nginx, 'X-Forwarded-Proto', 'HTTPS'],
      { rawHeaders: ['X-Forwarded-Proto', 'HTTPS', 'Host', 'a.example'] },
      true,
    ],
    ['traefik', forwarded, { method: 'PUT', target: '/a' }, true],
    ['caddy', forwarded, { method: 'PUT', target: '/a' }, true],
    ['apache', forwarded, { method: 'PUT', target: '/a' }, true],
    ['haproxy', forwarded.with(-1, 'ws'), { method: 'PUT', target: '/a' }, false],
    ['traefik', forwarded.with(-1, 'wss'), { method: 'PUT', target: '/a' }, true],
  ];
  for (const [form, headers, head, encrypted] of rows) {
    const described = describeRequest(asking(headers), form, '');
    t.match(described, { ok: true, value: { head: { httpVersion: '1.1', ...head }, encrypted } }, form);
  }
  t.match(describeRequest(asking(['Host', 'a.example'], '/p/a?q', 'DELETE'), 'envoy', '/p'), {
    ok: true,
    value: { head: { method: 'DELETE', target: '/a?q', rawHeaders: ['Host', 'a.example'] } },
  });
  t.match(describeRequest(asking(['Host', 'a.example'], '/a'), 'envoy', ''), { value: { head: { target: '/a' } } });
  t.end();
});

t.test('what is missing, empty, doubled or of another form is no description', (t) => {
  const malformed = { ok: false, error: { reason: 'description_malformed' } };
  for (const [form, headers] of [
    ['nginx', nginx],
    ['traefik', forwarded],
    ['caddy', forwarded],
    ['haproxy', forwarded],
    ['apache', forwarded],
  ] as const) {
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i] ?? '';
      if (form !== 'nginx' && name === 'Host') continue;
      t.match(describeRequest(asking(headers.toSpliced(i, 2)), form, ''), malformed, `${form} without ${name}`);
      t.match(describeRequest(asking(headers.with(i + 1, '')), form, ''), malformed, `${form} with an empty ${name}`);
    }
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i] ?? '';
      const doubled = [...headers, name.toLowerCase(), headers[i + 1] ?? ''];
      t.match(describeRequest(asking(doubled), form, ''), malformed, `${form} with two ${name}`);
    }
  }
  t.match(describeRequest(asking(forwarded), 'nginx', ''), malformed);
  t.match(describeRequest(asking(nginx), 'caddy', ''), malformed);
  t.match(describeRequest(asking(forwarded.with(-1, 'gopher')), 'caddy', ''), malformed);
  t.match(describeRequest(asking([...nginx, 'X-Forwarded-Proto', 'x']), 'nginx', ''), malformed);
  const twice = ['X-Original-Connection', 'a', 'X-Original-Connection', 'b'];
  t.match(describeRequest(asking([...nginx, ...twice]), 'nginx', ''), malformed);
  t.match(describeRequest(asking(['Host', 'a'], '/other/a'), 'envoy', '/p'), malformed);
  t.match(describeRequest(asking(['Host', 'a'], '/pa'), 'envoy', '/p'), malformed);
  t.match(describeRequest(asking([], '/a'), 'envoy', ''), malformed);
  t.match(describeRequest({ ...asking(nginx), rawHeaders: [...nginx, 'X-Odd'] }, 'nginx', ''), { ok: true });
  t.end();
});

t.test('what is of the asking message is none of the request', (t) => {
  const own = [
    ...['Connection', 'close', 'Content-Length', '5', 'Transfer-Encoding', 'chunked', 'Expect', '100-continue'],
    ...['TE', 'trailers', 'Trailer', 'x', 'Keep-Alive', 'x', 'X-Original-Connection', ''],
  ];
  const described = describeRequest(asking([...nginx, ...own, 'Cookie', 'a=b']), 'nginx', '');
  t.same(described.ok ? described.value.head.rawHeaders : null, ['Cookie', 'a=b', 'Host', 'a.example']);
  const told = describeRequest(asking([...nginx, 'X-Original-Connection', 'close, X-Auth-Subject']), 'nginx', '');
  t.same(told.ok ? told.value.head.rawHeaders.slice(2) : null, ['Connection', 'close, X-Auth-Subject']);
  t.end();
});

t.test('an offer of WebSocket is one, seen or not; any other is refused', (t) => {
  const handshake = { ok: true, value: { head: { rawHeaders: /./ } } };
  for (const more of [
    ['Sec-WebSocket-Key', 'x'],
    ['Upgrade', 'WebSocket'],
  ]) {
    const described = describeRequest(asking([...nginx, ...more]), 'nginx', '');
    t.match(described, { ok: handshake.ok });
    t.same(described.ok ? described.value.head.rawHeaders.slice(-4) : null, [
      ...['Connection', 'Upgrade'],
      ...['Upgrade', 'websocket'],
    ]);
  }
  const both = ['X-Original-Connection', 'keep-alive', 'Sec-WebSocket-Key', 'x'];
  const described = describeRequest(asking([...nginx, ...both]), 'nginx', '');
  t.ok(described.ok && described.value.head.rawHeaders.includes('keep-alive, Upgrade'));
  for (const more of [
    ['Upgrade', 'h2c'],
    ['Upgrade', 'websocket, h2c'],
    ['HTTP2-Settings', 'x'],
  ]) {
    t.match(describeRequest(asking([...nginx, ...more]), 'nginx', ''), { error: { reason: 'upgrade_refused' } });
  }
  t.end();
});

t.test('a connection that only the client can have told of is no part of a description', (t) => {
  const own = ['X-Original-Connection', 'Cookie'];
  const malformed = { ok: false, error: { reason: 'description_malformed' } };
  t.match(describeRequest(asking([...forwarded, ...own]), 'traefik', ''), malformed);
  t.match(describeRequest(asking(['Host', 'a.example', ...own]), 'envoy', ''), malformed);
  for (const form of ['caddy', 'haproxy', 'apache'] as const) {
    t.equal(describeRequest(asking([...forwarded, ...own]), form, '').ok, true, form);
  }
  t.end();
});
