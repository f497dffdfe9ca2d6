/** Requests whose form is refused, whoever sends them. */
import { type Row, service, upgrade } from './explained-policy.js';

export const refusedRequests: readonly Row[] = [
  {
    reason: 'target_malformed',
    path: '/a/../b',
    says: [/"\/a\/\.\.\/b": nothing is normalised/, /its segment "\.\." has two readings, or is none; allowed are/],
  },
  {
    reason: 'target_malformed',
    path: '/a//b',
    says: [/nothing is normalised/, /an empty segment: two slashes in a row/],
  },
  { reason: 'target_malformed', path: '/a?b=#c', says: [/nothing is normalised/, /its query has a character/] },
  {
    reason: 'target_malformed',
    path: 'http://a/b',
    says: [/nothing is normalised/, /it has to begin with \/: the path alone/],
  },
  {
    reason: 'target_malformed',
    path: '/a%2Fb',
    says: [/a segment has %2F, and encoded_slashes is refuse on no route that takes it$/],
  },
  { reason: 'target_malformed', path: '/a;b=c', says: [/a segment has a semicolon, and path_parameters is refuse/] },
  {
    reason: 'target_malformed',
    path: '/self/%40me',
    says: [/a segment has an escape that could have been spelled otherwise, such as %40 for @/],
  },
  { reason: 'target_too_long', path: `/${'a'.repeat(200)}`, says: [/it has 201 bytes; listen\.max_target is 100$/] },
  {
    reason: 'method_not_allowed',
    method: 'TRACE',
    says: [/the method is "TRACE"; TRACE, TRACK, CONNECT and PRI are never forwarded/],
  },
  {
    reason: 'method_malformed',
    method: 'BREW',
    says: [/the method is "BREW"; accepted: upper-case methods that Node\.js knows/],
  },
  {
    reason: 'framing',
    headers: [['Content-Length', '-1']],
    says: [/Content-Length: "-1"; accepted: one Content-Length of digits/],
  },
  { reason: 'field_malformed', headers: [['A b', 'c']], says: [/A b: "c"; accepted: names of letters/] },
  {
    reason: 'field_repeated',
    headers: [
      ['Content-Type', 'a'],
      ['content-type', 'b'],
    ],
    says: [/these come more than once: content-type; accepted: /],
  },
  {
    reason: 'field_refused',
    headers: [['X_Y', 'z']],
    says: [/X_Y: "z"; accepted: names without _; listen\.underscore_fields is refuse/],
  },
  { reason: 'host_malformed', headers: [['Host', 'a b']], says: [/Host: "a b"; accepted: one host name/] },
  {
    reason: 'connection_option',
    headers: [['Connection', 'X-Auth-Subject']],
    says: [/Connection: "X-Auth-Subject"; accepted: options, and names of headers/],
  },
  {
    reason: 'upgrade_refused',
    headers: [['Upgrade', 'h3']],
    says: [/Upgrade: "h3"; accepted: websocket, on a route with websocket: true, which orders has not/],
  },
  {
    reason: 'websocket_handshake',
    path: '/feed',
    headers: [...upgrade, ['Sec-WebSocket-Version', '13']],
    says: [/Connection: "Upgrade", Sec-WebSocket-Version: "13"; accepted: a GET of HTTP\/1\.1 without a body/],
  },
  {
    reason: 'websocket_version',
    path: '/feed',
    headers: [...upgrade, ['Sec-WebSocket-Version', '8']],
    says: [/Sec-WebSocket-Version: "8"; accepted: 13$/],
  },
  {
    reason: 'body_not_allowed',
    headers: [['Content-Length', '3']],
    says: [/GET comes with a body \(Content-Length: "3"\); route orders has not body: allow/],
  },
  {
    reason: 'header_too_large',
    headers: [['A', 'b'.repeat(5_000)]],
    says: [/it has \d+ bytes and 3 headers; listen\.max_header_bytes is 4096, and 256 headers/],
  },
  {
    reason: 'expectation_unknown',
    headers: [['Expect', '200-ok']],
    says: [/Expect: "200-ok"; accepted: 100-continue$/],
  },
  {
    reason: 'content_type_refused',
    method: 'POST',
    path: '/shop.Orders/List',
    headers: [['Content-Type', 'application/json']],
    says: [/Content-Type: "application\/json"; accepted: application\/grpc, for the route has grpc$/],
  },
  {
    reason: 'idempotency_key_missing',
    method: 'POST',
    token: service({ jti: 'j' }),
    says: [/there is no Idempotency-Key; operation write needs one, .* such as a UUID/],
  },
  {
    reason: 'idempotency_key_malformed',
    method: 'POST',
    token: service({ jti: 'j' }),
    headers: [['Idempotency-Key', 'a b']],
    says: [/Idempotency-Key is "a b"; accepted: 1 to 255 letters/],
  },
  {
    reason: 'body_too_large',
    method: 'POST',
    token: service({ jti: 'j' }),
    headers: [
      ['Idempotency-Key', 'a'],
      ['Content-Length', '99'],
    ],
    says: [/99 bytes; max_body of the route is 10, and idempotency\.max_body 10$/],
  },
];
