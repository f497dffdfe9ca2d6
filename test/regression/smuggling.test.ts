/** The classes of request smuggling that its finders published, rebuilt: each is one request to everybody, or none. */
import t from 'tap';
import { policies } from '../fuzz/policies.js';
import { badCodings, badLengths, brokenChunks, brokenFramingLines } from '../support/attacks/framing.js';
import { startStreamStage, tryStream } from '../fuzz/stream-stage.js';

const inner = 'GET /open/smuggled HTTP/1.1\r\nHost: a\r\n\r\n';
const post = 'POST /open/page HTTP/1.1\r\nHost: a\r\n';

/** A Transfer-Encoding with one byte where none belongs, at each of four places. */
function spoiledCodings(): readonly string[] {
  const bytes = Array.from({ length: 256 }, (_, code) => code)
    .filter((code) => code <= 0x21 || code >= 0x7f)
    .map((code) => String.fromCharCode(code));
  return bytes.flatMap((byte) => [
    `${byte}Transfer-Encoding: chunked`,
    `Transfer-Encoding${byte}: chunked`,
    `Transfer-Encoding:${byte}chunked`,
    `Transfer-Encoding: chunked${byte}`,
  ]);
}

/** Content-Length and Transfer-Encoding on lines that are spoiled. */
const [lengthLines, codingLines] = [/Length/, /Encoding/].map((name) =>
  brokenFramingLines(4).filter((line) => name.test(line)),
);

const codings = [
  'Transfer-Encoding: chunked',
  'transfer-encoding: CHUNKED',
  'Transfer-Encoding:',
  'Transfer_Encoding: chunked',
  'TE: chunked',
  'Content-Encoding: chunked',
  ...badCodings.map((value) => `Transfer-Encoding: ${value}`),
  ...(codingLines ?? []),
];

const lengths = [
  '',
  'Content-Length: 0',
  'Content-Length: 4',
  'Content-Length: 04',
  'Content_Length: 4',
  ...badLengths(4).map((value) => `Content-Length: ${value}`),
  ...(lengthLines ?? []),
];

/** What may stand where a chunk begins or ends. */
const chunkTricks = [
  ...brokenChunks,
  '5\r\nhello\r\n0\r\n\r\n',
  '5\r\nhello\r\n0\n\n',
  '5 \r\nhello\r\n0\r\n\r\n',
  '5;a=b\r\nhello\r\n0\r\n\r\n',
  '5;a="\r\n"\r\nhello\r\n0\r\n\r\n',
  '05\r\nhello\r\n0\r\n\r\n',
  '00000000000000005\r\nhello\r\n0\r\n\r\n',
  '100000005\r\nhello\r\n0\r\n\r\n',
  'ffffffffffffffff\r\nhello\r\n0\r\n\r\n',
  '5\r\nhello\r\n00\r\n\r\n',
  '5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n',
  '5\r\nhello\r\n0\r\n X\r\n\r\n',
  '5\r\nhello\r\n0;\r\n\r\n',
  '\r\n\r\n',
];

const streams: readonly { readonly name: string; readonly streams: readonly string[] }[] = [
  {
    name: 'a byte at each place of Transfer-Encoding, beside a length',
    streams: spoiledCodings().map(
      (coding) => `${post}Content-Length: ${String(5 + inner.length)}\r\n${coding}\r\n\r\n0\r\n\r\n${inner}`,
    ),
  },
  {
    name: 'every pair of a length and a coding',
    streams: lengths.flatMap((length) =>
      codings.flatMap((coding) => {
        const fields = [length, coding].filter((field) => field !== '').map((field) => `${field}\r\n`);
        return [`${post}${fields.join('')}\r\n0\r\n\r\n${inner}`];
      }),
    ),
  },
  {
    name: 'chunks that end where nobody expects it',
    streams: chunkTricks.map((chunks) => `${post}Transfer-Encoding: chunked\r\n\r\n${chunks}${inner}`),
  },
  {
    name: 'what follows a refused request with a body is no request of the same bytes',
    streams: ['/nowhere', '/admin', '/open/%2e', '/open/page'].flatMap((path) => [
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${String(inner.length)}\r\n\r\n${inner}`,
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${String(inner.length)}\r\nContent-Type: a\r\nContent-Type: b\r\n\r\n${inner}`,
      `POST ${path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: ${String(inner.length)}\r\n\r\n${inner}`,
      `GET ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${String(inner.length)}\r\n\r\n${inner}`,
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n${inner}`,
    ]),
  },
  {
    name: 'upgrades, tunnels and prefaces open nothing',
    streams: [
      'Connection: Upgrade\r\nUpgrade: h2c',
      'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk',
      'Upgrade: h2c',
      'Connection: Upgrade\r\nUpgrade: websocket',
      'Connection: Upgrade\r\nUpgrade: h2c, websocket',
      'Connection: Upgrade\r\nUpgrade: TLS/1.0',
      'Connection: upgrade, content-length\r\nUpgrade: h2c\r\nContent-Length: 5',
    ]
      .flatMap((fields) =>
        ['GET', 'POST', 'HEAD', 'OPTIONS'].map(
          (method) => `${method} /open/page HTTP/1.1\r\nHost: a\r\n${fields}\r\n\r\n${inner}`,
        ),
      )
      .concat([
        `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${inner}`,
        `CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n${inner}`,
        `CONNECT /open/page HTTP/1.1\r\nHost: a\r\n\r\n${inner}`,
      ]),
  },
];

for (const group of streams) {
  t.test(group.name, async (t) => {
    const [policy] = policies;
    if (policy === undefined) throw new Error('there is no policy');
    const stage = await startStreamStage(t, policy);
    const faults: string[] = [];
    let reached = 0;
    for (const bytes of group.streams) {
      const outcome = await tryStream(bytes, stage);
      reached += outcome.reached;
      if (outcome.fault !== null) faults.push(`${outcome.fault}\n${JSON.stringify(bytes)}`);
    }
    t.not(reached, 0, 'some of them are sound to everybody');
    t.same(faults.slice(0, 5), []);
    t.comment(`${String(group.streams.length)} streams, ${String(reached)} requests reached the receiver`);
  });
}
