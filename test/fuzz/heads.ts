/** Request heads by grammar: mostly sound ones, with one or a few things that are not. */
import { badCodings, badLengths } from '../support/attacks/framing.js';
import { pathPieces } from '../support/attacks/targets.js';
import { boundFields, clientCert } from './bound-heads.js';
import { once, pick, several, type Draw } from './draw.js';
import { makeSession, makeToken, unsignedToken, type Tokens } from './keyring.js';
import type { Field } from './model-fields.js';
import type { Head } from './model.js';

const paths = [
  '/orders',
  '/orders/7',
  '/orders/export',
  '/orders/7/cancel',
  '/orders/7/items/1',
  '/files/a/b.txt',
  '/files/admin/x',
  '/names/ada',
  '/matrix/1',
  '/points/1/2',
  '/both/a/b',
  '/search',
  '/users/1',
  '/either/1',
  '/profile',
  '/live',
  '/live/orders',
  '/live/app/here',
  '/open-live',
  '/caf%C3%A9/a%20b',
  '/partner/9',
  '/healthz',
  '/open/home',
  '/',
  '/nowhere',
  '/orders/',
  '/files/',
  '/files',
  '/Orders',
  '/healthz/',
];

const methods = [
  'GET',
  'POST',
  'HEAD',
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'TRACK',
  'PRI',
  'get',
  'G\xcbT',
  'PROPFIND',
  'GET ',
  '',
  'M-SEARCH',
];

/** Fields with values that mean something, right and wrong ones. */
const fieldValues: readonly (readonly [name: string, values: readonly string[]])[] = [
  ['Accept', ['*/*', 'text/html;q=0.1']],
  ['Content-Type', ['application/json', 'text/plain; charset=utf-8', 'application/json ;a']],
  ['Content-Length', ['0', '2', '17', '65', ' 2', '-0', ...badLengths(2)]],
  ['Transfer-Encoding', ['chunked', 'Chunked', ' chunked', ...badCodings]],
  [
    'Host',
    [
      'example.com',
      'example.com:8443',
      '127.0.0.1',
      '[::1]:80',
      '',
      'a,b',
      'u@h',
      'a;b',
      'h:99999',
      '[::g]',
      'a b',
      'a/b',
      'h:',
      'h:0',
    ],
  ],
  [
    'Connection',
    [
      'close',
      'keep-alive',
      'close, X-Other',
      'X-Auth-Subject',
      'Idempotency-Key',
      'Content-Type',
      'Upgrade',
      'te',
      'x_auth_subject',
      'a b',
      ',',
      'traceparent',
      'Authorization',
      'Host',
      'X-Forwarded-For',
      'content-length',
      'Keep-Alive, Proxy-Connection',
      'Accept',
      'Remote-User',
      'cookie',
      'transfer-encoding',
    ],
  ],
  ['Expect', ['100-continue', '100-Continue', '200-ok', '']],
  ['Upgrade', ['h2c', 'websocket', 'h2c, websocket', 'TLS/1.0', 'H2C', '']],
  ['HTTP2-Settings', ['AAMAAABkAAQAAP__']],
  ['Idempotency-Key', ['abc', '"a b"', '']],
  ['X-Request-Id', ['r-1', 'a b', 'x'.repeat(128), 'x'.repeat(129), '', 'a\tb']],
  [
    'traceparent',
    [
      `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      `00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`,
      `ff-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      `00-${'A'.repeat(32)}-${'b'.repeat(16)}-01`,
      `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01-x`,
      `01-${'a'.repeat(32)}-${'b'.repeat(16)}-01-x`,
      'x',
    ],
  ],
  ['tracestate', ['a=1', '']],
  [
    'Cookie',
    [
      'sAccessToken=x',
      'a=b',
      'a=b; sRefreshToken=r; c=d',
      'a=b;c',
      ' ; =x',
      'a=b, sFrontToken=x',
      'SACCESSTOKEN=x; %73AccessToken=y',
      '"sAntiCsrf"=x',
    ],
  ],
  ['rid', ['session', '', 'anti-csrf']],
  ['anti-csrf', ['csrf-1', '', 'csrf-2']],
  ['st-auth-mode', ['header']],
  ['front-token', ['x']],
  ['st-access-token', ['x']],
  [
    'Origin',
    [
      'https://app.example.com',
      'https://APP.example.com',
      'https://sallyport.example',
      'http://sallyport.example:80',
      'https://evil.example',
      'null',
      'https://app.example.com.evil.example',
      'https://sallyport.example:444',
      '',
    ],
  ],
  ['Sec-WebSocket-Version', ['13', '8', '13, 8', '']],
  ['Sec-WebSocket-Key', ['dGhlIHNhbXBsZSBub25jZQ==', 'dGhlIHNhbXBsZSBub25jZR==', 'x', '']],
  ['Sec-WebSocket-Protocol', ['chat', 'chat, superchat']],
  ['Sec-WebSocket-Extensions', ['permessage-deflate']],
  ['X-Forwarded-For', ['10.0.0.1']],
  ['X-Forwarded-Proto', ['https']],
  ['X-Forwarded-Host', ['evil']],
  ['Forwarded', ['for=evil']],
  ['Via', ['1.1 other']],
  ['X-Real-IP', ['10.0.0.1']],
  ['X-Original-URL', ['/admin']],
  ['X-Rewrite-URL', ['/admin']],
  ['X-HTTP-Method-Override', ['DELETE']],
  ['X-HTTP-Method', ['PUT']],
  ['Client-IP', ['10.0.0.1']],
  ['X-Remote-User', ['root']],
  ['Destination', ['/admin']],
  ['X-Method-Override', ['PUT']],
  ['X-Original-Method', ['PUT']],
  ['Proxy', ['evil']],
  ['X-Forwarded-Prefix', ['/x']],
  ['X-Forwarded-Uri', ['/x']],
  ['X-Envoy-Original-Path', ['/x']],
  ['X-Skipper-Proxy', ['x']],
  ['X-Auth-Subject', ['root']],
  ['X-Auth-Permissions', ['everything']],
  ['X-Auth-Kind', ['session']],
  ['X-Auth-Token-Id', ['t']],
  ['X-Auth-Issuer', ['https://evil']],
  ['X-Auth-Assertion', ['x.y.z']],
  ['Remote-User', ['root']],
  ['Remote-Groups', ['everything']],
  ['Remote-Kind', ['session']],
  ['Idempotency-Record', ['r']],
  ['Idempotency-Fence', ['9']],
  ['Idempotency-Outcome', ['committed']],
  ['Idempotent-Replayed', ['true']],
  ['Proxy-Status', ['sallyport']],
  ['Keep-Alive', ['timeout=5']],
  ['Proxy-Connection', ['close']],
  ['TE', ['trailers']],
  ['Trailer', ['X-Auth-Subject']],
  ['Proxy-Authorization', ['Basic eA==']],
  ['X-Other', ['plain', 'caf\xe9', 'a\tb', 'a\0b', 'a\rb', 'a\nb', 'a\x7f', '\u{1f642}', '']],
  ['__proto__', ['x']],
  ['constructor', ['y']],
  ['X_Other', ['z']],
  ['User-Agent', ['kube-probe/1.30', 'GoogleHC/1.0']],
  ['Large', ['x'.repeat(2000), 'x'.repeat(20_000)]],
  ['', ['x']],
  ['Bad Name', ['x']],
  ['Bad\xe9', ['x']],
  ['a:b', ['x']],
];

/** How a name is written so that one reader takes it for another: CGI, WSGI and kin. */
export function respelled(draw: Draw, name: string): string {
  switch (draw.below(7)) {
    case 0:
      return name.toLowerCase();
    case 1:
      return name.replaceAll('-', '_');
    case 2:
      return name.toUpperCase().replaceAll('-', '_');
    case 3:
      return name.replaceAll('-', '.');
    case 4:
      return name.replaceAll('-', '--');
    case 5:
      return name.replaceAll('-', '');
    default:
      return `${name}${pick(draw, ['-', '_', '~', "'", '|', ' '])}`;
  }
}

/** Any field of the list. */
export function someField(draw: Draw): Field {
  const [name, values] = pick(draw, fieldValues);
  return [once(draw, 5) ? respelled(draw, name) : name, pick(draw, values)];
}

/** `Authorization` in one of its forms. */
export function authorizationOf(draw: Draw, token: string): Field {
  if (!once(draw, 8)) return ['Authorization', `Bearer ${token}`];
  const value = pick(draw, [
    `bearer ${token}`,
    `BEARER ${token}`,
    `Bearer  ${token}`,
    `Bearer\t${token}`,
    token,
    `Bearer ${token} `,
    `Bearer ${token},Bearer ${token}`,
    `Basic ${token}`,
    'Bearer ',
    'Bearer',
    '',
    `Bearer ${token}=`,
    `Bearer "${token}"`,
    `Token ${token}`,
    `DPoP ${token}`,
    `Bearer ${unsignedToken()}`,
  ]);
  return [
    pick(draw, [
      'Authorization',
      'authorization',
      'AUTHORIZATION',
      'Authorization',
      'X-Authorization',
      'Authorization_',
    ]),
    value,
  ];
}

/** A target by grammar: a path of ours, with pieces put into it. */
export function someTarget(draw: Draw): string {
  let target = pick(draw, paths);
  for (let count = pick(draw, [0, 0, 0, 0, 1, 1, 2, 3]); count > 0; count--) {
    const at = draw.below(target.length + 1);
    target =
      target.slice(0, at) + pick(draw, pathPieces) + (once(draw, 3) ? '/' : '') + target.slice(at + draw.below(3));
  }
  if (once(draw, 5)) {
    target += `?${several(draw, draw.below(4), (one) => pick(one, [...pathPieces, 'a=b', '&', 'access_token=x', '/healthz'])).join('')}`;
  }
  if (!once(draw, 40)) return target;
  return pick(draw, [
    `http://evil.example${target}`,
    `//evil.example${target}`,
    '*',
    'evil.example:443',
    target.slice(1),
    `/${'a/'.repeat(4200)}`,
  ]);
}

/** The first of them is sound and lets its caller do most things. */
export function someToken(draw: Draw, { service, session }: Tokens): string {
  if (!once(draw, 2)) return service[0] ?? '';
  return once(draw, 30) ? makeToken(draw) : pick(draw, once(draw, 12) ? session : service);
}

/** The same of sessions. */
function someSession(draw: Draw, { service, session }: Tokens): string {
  if (!once(draw, 2)) return session[0] ?? '';
  return once(draw, 30) ? makeSession(draw) : pick(draw, once(draw, 12) ? service : session);
}

/** What a frontend sends with a session, in a cookie or not, and what a page of somebody else would send. */
export function sessionFields(draw: Draw, tokens: Tokens): Field[] {
  const token = someSession(draw, tokens);
  const cookie = pick(draw, [
    `sAccessToken=${token}`,
    `a=b; sAccessToken=${token}; sIdRefreshToken=x`,
    `sAccessToken=${token};`,
  ]);
  const fields: Field[] = once(draw, 3) ? [authorizationOf(draw, token)] : [['Cookie', cookie]];
  if (!once(draw, 3)) fields.push(['rid', 'session']);
  if (once(draw, 3)) fields.push(['anti-csrf', pick(draw, ['csrf-1', 'csrf-1', 'csrf-2'])]);
  if (once(draw, 12)) {
    fields.push(
      once(draw, 2)
        ? authorizationOf(draw, someToken(draw, tokens))
        : ['Cookie', `sAccessToken=${someSession(draw, tokens)}`],
    );
  }
  return fields;
}

/** An opening handshake, mostly whole. */
export function handshakeFields(draw: Draw): Field[] {
  const fields: Field[] = [
    ['Connection', pick(draw, ['Upgrade', 'Upgrade', 'keep-alive, upgrade', 'keep-alive'])],
    ['Upgrade', pick(draw, ['websocket', 'websocket', 'WebSocket', 'websocket, h2c'])],
    ['Sec-WebSocket-Version', '13'],
    ['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
  ];
  if (once(draw, 12)) fields.splice(draw.below(fields.length), 1);
  if (once(draw, 2)) {
    fields.push([
      'Origin',
      pick(draw, ['https://app.example.com', 'https://sallyport.example', 'https://evil.example']),
    ]);
  }
  return fields;
}

const userPaths = ['/users/1', '/either/1', '/profile', '/orders', '/nowhere', '/healthz'];
const boundPaths = [
  '/orders',
  '/orders/7',
  '/orders/%C3%A9',
  '/files/a/~b%2Dc.txt',
  '/either/1',
  '/orders/7/items/1?a=b',
  '/partner/9',
];
const livePaths = ['/live', '/live/orders', '/live/app/here', '/open-live', '/orders', '/nowhere'];

/** One that is bound, mostly to what its sender has, or to nothing, or a session. */
function someBoundToken(draw: Draw, { bound, service, session }: Tokens): string {
  if (once(draw, 8)) return (once(draw, 2) ? session : service)[0] ?? '';
  return pick(draw, once(draw, 2) ? bound : bound.slice(0, 4));
}

/** A whole head; `tokens` are such as were signed before. */
export function someHead(draw: Draw, tokens: Tokens): Head {
  const kind = pick(draw, ['service', 'service', 'service', 'user', 'user', 'bound'] as const);
  return headOf(draw, tokens, kind);
}

/** One with a bound token. */
export function someBoundHead(draw: Draw, tokens: Tokens): Head {
  return headOf(draw, tokens, 'bound');
}

function headOf(draw: Draw, tokens: Tokens, kind: 'service' | 'user' | 'bound'): Head {
  const fields: Field[] = [['Host', 'sallyport.example']];
  const isOpener = once(draw, 6);
  const usual = isOpener ? ['GET'] : ['GET', 'GET', 'GET', 'POST', 'HEAD', 'DELETE', 'PUT'];
  const meant = isOpener ? livePaths : kind === 'user' ? userPaths : boundPaths;
  const [isBound, isPlain] = [kind === 'bound', kind === 'service' && !isOpener];
  const method = once(draw, isBound ? 24 : 6) ? pick(draw, methods) : pick(draw, usual);
  const target = !isPlain && !once(draw, 4) ? pick(draw, meant) : someTarget(draw);
  if (kind === 'user') fields.push(...sessionFields(draw, tokens));
  else if (isBound) fields.push(...boundFields(draw, { method, target }, someBoundToken(draw, tokens)));
  else if (!once(draw, 12)) fields.push(authorizationOf(draw, someToken(draw, tokens)));
  if (isOpener) fields.push(...handshakeFields(draw));
  for (let count = pick(draw, isBound ? [0, 0, 0, 1] : [0, 0, 1, 1, 2, 4]); count > 0; count--) {
    fields.splice(draw.below(fields.length + 1), 0, someField(draw));
  }
  if (!isBound && once(draw, 3)) fields.push(clientCert(draw));
  if (once(draw, 60)) fields.splice(0, 1);
  return {
    method,
    target,
    version: once(draw, 30) ? pick(draw, ['1.0', '0.9', '2.0']) : '1.1',
    fields,
  };
}
