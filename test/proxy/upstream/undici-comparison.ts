/** Answers near to what RFC 9112 allows, each read by us and by undici from a socket. */
import { createServer } from 'node:net';
import fc from 'fast-check';
import { Client, type Dispatcher } from 'undici';
import { listen } from '../../support/listening.js';
import type { Scope } from '../../support/scope.js';
import { startUpstream } from './upstream-harness.js';

export interface Answer {
  readonly text: string;
  readonly method: 'GET' | 'HEAD';
}

export interface Reading {
  readonly status: number;
  readonly fields: readonly string[];
  readonly body: string;
}

/** Where undici reads otherwise what we accept, and why it is right all the same. */
export const differences: readonly { readonly name: string; readonly applies: (answer: Answer) => boolean }[] = [
  {
    name: '100 Continue that nobody asked for has to be borne (RFC 9110 §15.2); undici takes it for a broken answer',
    applies: ({ text }) => /^(?:HTTP\/1\.[01] 1\d\d.*\r\n(?:.+\r\n)*\r\n)*HTTP\/1\.[01] 100/.test(text),
  },
  {
    name: '204 and 304 have no body, whatever length they state (RFC 9112 §6.3); undici waits for it',
    applies: ({ text }) => /^HTTP\/1\.[01] [23]04(?:.*\r\n)+?Content-Length:/im.test(text),
  },
];

const pick = (...texts: readonly string[]): fc.Arbitrary<string> => fc.constantFrom(...texts);
const interim = fc.array(
  pick('HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n', 'HTTP/1.1 102 X\r\n\r\n', 'HTTP/1.1 100 Continue\r\n\r\n'),
  { maxLength: 2 },
);
const statusLines = pick(
  'HTTP/1.1 200 OK',
  'HTTP/1.1 200 OK',
  'HTTP/1.0 200 OK',
  'HTTP/1.1 200',
  'HTTP/1.1 201 \xe9',
  'HTTP/1.1 204 No Content',
  'HTTP/1.1 304 Not Modified',
  'HTTP/1.1 404  ',
  'HTTP/1.1 599 X',
  'HTTP/2.0 200 OK',
  'HTTP/1.1 20 OK',
  'HTTP/1.1 2000 OK',
  'HTTP/1.1 200OK',
  'HTTP/1.2 200 OK',
  'http/1.1 200 OK',
);
const fieldLines = fc.array(
  pick(
    'A: b',
    'A:',
    'a:\tb ',
    'A: \xff',
    'Set-Cookie: c=d',
    'Set-Cookie: e=f',
    'Connection: close',
    'Connection: keep-alive',
    'Keep-Alive: timeout=5',
    'A : b',
    'A: b\r\n c',
    'A: \x01',
    ': b',
    'A: b\rc',
    'A: b\nc: d',
    'A_b: ~',
    'Trailer: x',
    'Date: today',
    'Upgrade: x',
  ),
  { maxLength: 5 },
);
const sized = fc.tuple(
  pick(
    'Content-Length: 5',
    'Content-Length: 5',
    'content-length:5 ',
    'Content-Length: 05',
    'Content-Length: 5, 5',
    'Content-Length: +5',
    'Content-Length: 4',
    'Content-Length: 6',
    'Content-Length: 5\r\nContent-Length: 5',
    'Content-Length: 99999999999999999999',
  ),
  pick('hello', 'hello', 'hell', 'hello!'),
);
const inChunks = fc.tuple(
  pick(
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: chunked',
    'transfer-encoding: CHUNKED',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: chunked\r\nContent-Length: 5',
    'Transfer-Encoding: identity',
    'Transfer-Encoding: chunked, chunked',
  ),
  fc
    .tuple(
      fc.array(
        pick(
          '5\r\nhello\r\n',
          'A\r\n0123456789\r\n',
          '0001\r\n\n\r\n',
          '2;a=b\r\n\r\n\r\n',
          '5\nhello\r\n',
          '5 \r\nhello\r\n',
          '6\r\nhello\r\n',
          '5;a="b;c"\r\nhello\r\n',
        ),
        { maxLength: 4 },
      ),
      pick(
        '0\r\n\r\n',
        '0\r\n\r\n',
        '000\r\nA: b\r\n\r\n',
        '0;x\r\n\r\n',
        '0\r\n',
        '0\r\nA : b\r\n\r\n',
        '0\r\n\r\nmore',
        '0\n\r\n',
      ),
    )
    .map(([chunks, end]) => chunks.join('') + end),
);
const untilEnd = fc.tuple(fc.constant(''), pick('hello', '', '5\r\nhello\r\n0\r\n\r\n'));

export const answers: fc.Arbitrary<Answer> = fc
  .record({
    interim,
    statusLine: statusLines,
    fieldLines,
    framed: fc.oneof(sized, inChunks, untilEnd),
    method: fc.constantFrom<Answer['method']>('GET', 'GET', 'HEAD'),
  })
  .map(({ interim: before, statusLine, fieldLines: lines, framed: [framing, body], method }) => ({
    method,
    text: `${before.join('')}${[statusLine, ...lines, ...(framing === '' ? [] : [framing])].join('\r\n')}\r\n\r\n${method === 'HEAD' ? '' : body}`,
  }));

export interface Comparison {
  /** Both readings of one answer; `null` where it is refused. */
  readonly read: (answer: Answer) => Promise<{ readonly ours: Reading | null; readonly theirs: Reading | null }>;
}

export async function startComparison(t: Scope): Promise<Comparison> {
  const texts: string[] = [];
  const { port } = await listen(
    t,
    createServer((socket) => {
      socket.once('data', (head) => {
        const number = /^\S+ \/(\d+) /.exec(head.toString('latin1'))?.[1] ?? '';
        socket.end(texts[Number(number)] ?? '', 'latin1');
      });
    }),
  );
  const url = `http://127.0.0.1:${String(port)}`;
  const { send } = startUpstream(t, url, { maxConnections: 64 });
  const ours = async (method: string, target: string): Promise<Reading | null> =>
    new Promise((resolve) => {
      let head: { status: number; fields: readonly string[] } | null = null;
      const pieces: Buffer[] = [];
      const heard = send(
        { method, target },
        (bytes) => {
          pieces.push(bytes);
          return true;
        },
        (status, fields) => {
          head = { status, fields };
        },
        () => {
          resolve(
            head === null || heard.failure() !== null
              ? null
              : { ...head, body: Buffer.concat(pieces).toString('latin1') },
          );
        },
      );
    });
  return {
    read: async ({ text, method }) => {
      const target = `/${String(texts.push(text) - 1)}`;
      const [first, second] = await Promise.all([ours(method, target), theirs(url, method, target)]);
      return { ours: first, theirs: second };
    },
  };
}

async function theirs(origin: string, method: 'GET' | 'HEAD', path: string): Promise<Reading | null> {
  const client = new Client(origin, { maxHeaderSize: 64 * 1024 });
  const reading = await new Promise<Reading | null>((resolve) => {
    client.dispatch({ method, path }, new Reader(resolve));
  });
  await client.destroy();
  return reading;
}

/** Takes an answer as undici tells it, field by field as it came. */
class Reader implements Dispatcher.DispatchHandler {
  private readonly onRead: (reading: Reading | null) => void;
  private head: { readonly status: number; readonly fields: readonly string[] } | null = null;
  private readonly pieces: Buffer[] = [];

  constructor(onRead: (reading: Reading | null) => void) {
    this.onRead = onRead;
  }

  onConnect(): void {
    this.head = null;
  }

  onHeaders(status: number, fields: Buffer[]): boolean {
    if (status >= 200) this.head = { status, fields: fields.map(withoutBlanks) };
    return true;
  }

  onData(bytes: Buffer): boolean {
    this.pieces.push(bytes);
    return true;
  }

  onComplete(): void {
    this.onRead(this.head === null ? null : { ...this.head, body: Buffer.concat(this.pieces).toString('latin1') });
  }

  onError(): void {
    this.onRead(null);
  }
}

/** undici leaves the blanks behind a value, which are no part of it (RFC 9112 §5.1). */
function withoutBlanks(field: Buffer): string {
  return field.toString('latin1').replace(/[\t ]+$/, '');
}

/** Reads so many of them, and says which we take otherwise than undici without a reason, and how many both took. */
export async function compare(
  t: Scope,
  count: number,
  seed: number,
): Promise<{ readonly wrong: readonly string[]; readonly taken: number }> {
  const { read } = await startComparison(t);
  const wrong: string[] = [];
  let taken = 0;
  const all = fc.sample(answers, { numRuns: count, seed });
  const atOnce = 16;
  for (let at = 0; at < all.length; at += atOnce) {
    await Promise.all(
      all.slice(at, at + atOnce).map(async (answer) => {
        const { ours, theirs: other } = await read(answer);
        if (ours === null) return;
        if (JSON.stringify(ours) === JSON.stringify(other)) taken += 1;
        else if (!differences.some(({ applies }) => applies(answer))) {
          wrong.push(JSON.stringify({ answer, ours, other }));
        }
      }),
    );
  }
  return { wrong, taken };
}
