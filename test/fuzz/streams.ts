/** What a caller may send over one connection: requests in bytes, whole and torn, one inside the other. */
import { once, pick, several, type Draw } from './draw.js';
import { someHead } from './heads.js';
import type { Tokens } from './keyring.js';
import type { Field } from './model-fields.js';
import type { Head } from './model.js';
import { changedHead } from './mutations.js';

/** A request that must never be one of its own where it stands in a body. */
const inner = 'GET /open/smuggled HTTP/1.1\r\nHost: evil.example\r\n\r\n';

/** What makes two readers of a stream end a message at different places. */
const pieces = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  '\r\n\r\n',
  '\n\n',
  '\r\r\n',
  ' ',
  '\t',
  '\x0b',
  ':',
  ' :',
  '\r\n ',
  '\r\n\t',
  '0\r\n\r\n',
  '5\r\nhello\r\n',
  '\r\n0\r\n\r\n',
  inner,
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding : chunked\r\n',
  'Transfer-Encoding:\tchunked\r\n',
  'Transfer-Encoding: xchunked\r\n',
  'Transfer_Encoding: chunked\r\n',
  'Transfer-Encoding: chunked, identity\r\n',
  'Transfer-Encoding:\r\n chunked\r\n',
  'X: y\nTransfer-Encoding: chunked\r\n',
  ' Transfer-Encoding: chunked\r\n',
  'Content-Length: 5\r\n',
  'Content-Length: 0\r\n',
  'Content-Length: +5\r\n',
  'Content-Length: 5, 5\r\n',
  'content-length:5\r\n',
  'Content-Length : 5\r\n',
  'Content_Length: 5\r\n',
  'Content-Length: 0x5\r\n',
  'Content-Length: 5\n',
  'Connection: Content-Length\r\n',
  'Connection: close\r\n',
  'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n',
  'Upgrade: websocket\r\nConnection: Upgrade\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'Expect: 100-continue\r\n',
  'HTTP/1.1',
  ' HTTP/1.1',
  ' HTTP/1.0',
  'HTTP/1.1\r\n',
  '5;a=b\r\nhello\r\n',
  '5;\r\nhello\r\n',
  '5 \r\nhello\r\n',
  '05\r\nhello\r\n',
  '0x5\r\nhello\r\n',
  '5\nhello\n',
  'fffffffffffffffff\r\n',
  '0;\r\n',
  '0\r\nX-Auth-Subject: root\r\n\r\n',
  '-1\r\n',
  '5\r\nhelloX\r\n',
  '6\r\nhello\r\n',
  'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
  'Host: b\r\n',
  '\x16\x03\x01',
  'GET / HTTP/0.9\r\n\r\n',
  'GET /\r\n',
];

/** Bytes of one to three requests, half of them changed somewhere. */
export function someStream(draw: Draw, tokens: Tokens, kept: readonly Head[]): string {
  let bytes = several(draw, pick(draw, [1, 1, 1, 2, 3]), (one) => requestBytes(one, nextHead(one, tokens, kept))).join(
    '',
  );
  for (let count = pick(draw, [0, 0, 0, 1, 1, 2]); count > 0; count--) {
    const at = placeIn(draw, bytes);
    const piece = once(draw, 4) ? String.fromCharCode(draw.below(256)) : pick(draw, pieces);
    bytes = bytes.slice(0, at) + piece + bytes.slice(at + (once(draw, 4) ? draw.below(6) : 0));
  }
  return once(draw, 25) ? bytes.slice(0, draw.below(bytes.length + 1)) : bytes;
}

function nextHead(draw: Draw, tokens: Tokens, kept: readonly Head[]): Head {
  if (kept.length > 0 && !once(draw, 2)) return pick(draw, kept);
  const head = someHead(draw, tokens);
  return kept.length === 0 || once(draw, 2) ? head : changedHead(draw, pick(draw, kept), head, 1000);
}

/** The request, with a body in one of its framings or in two. */
function requestBytes(draw: Draw, head: Head): string {
  const body = pick(draw, [
    '',
    'hello',
    'x'.repeat(16),
    'x'.repeat(17),
    'x'.repeat(65),
    inner,
    `0\r\n\r\n${inner}`,
    `5\r\nhello\r\n0\r\n\r\n${inner}`,
  ]);
  const chunks =
    body === ''
      ? '0\r\n\r\n'
      : `${body.length.toString(16)}\r\n${body}\r\n0\r\n${once(draw, 5) ? 'X-Auth-Subject: root\r\n' : ''}\r\n`;
  const length: Field = ['Content-Length', String(body.length)];
  const chunked: Field = ['Transfer-Encoding', 'chunked'];
  switch (pick(draw, [0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 5])) {
    case 0:
      return headBytes(head, []);
    case 1:
      return headBytes(head, [length]) + body;
    case 2:
      return headBytes(head, [chunked]) + chunks;
    case 3:
      return headBytes(head, [length, chunked]) + chunks;
    case 4:
      return headBytes(head, [['Content-Length', String(draw.below(body.length + 8))]]) + body;
    default:
      return headBytes(head, [chunked, length]) + body;
  }
}

/** At the end of a line, mostly: that is where messages are told apart. */
function placeIn(draw: Draw, bytes: string): number {
  const anywhere = draw.below(bytes.length + 1);
  if (once(draw, 3)) return anywhere;
  const end = bytes.indexOf('\r\n', anywhere);
  return end < 0 ? anywhere : end + pick(draw, [0, 2, 1]);
}

function headBytes({ method, target, version, fields }: Head, framing: readonly Field[]): string {
  const lines = [...fields, ...framing].map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${method} ${target} HTTP/${version}\r\n${lines.join('')}\r\n`, 'utf8').toString('latin1');
}
