import fc from 'fast-check';
import t, { type Test } from 'tap';
import { ResponseParser } from '../../../../src/proxy/upstream/http1/response-parser.js';

/** How a list of reads went. Nobody can tell from it how they were cut. */
interface Heard {
  readonly status: number | null;
  readonly fields: readonly string[];
  readonly body: string;
  readonly isSound: boolean;
  readonly isDone: boolean;
  /** Whether it would be whole where the connection ended now. */
  readonly isWhole: boolean;
}

interface Run extends Heard {
  /** Pieces of the body. */
  readonly pieces: readonly Buffer[];
}

/** Reads until something is wrong, as a connection does. */
function run(reads: Iterable<Buffer>, answersHead = false): Run {
  let status: number | null = null;
  let fields: readonly string[] = [];
  const pieces: Buffer[] = [];
  const parser = new ResponseParser({
    onHead: (head) => {
      if (status !== null) throw new Error('a second head');
      ({ status, headers: fields } = head);
    },
    onSwitch: () => {
      throw new Error('nobody asked for another protocol');
    },
  });
  parser.expect(answersHead);
  let isSound = true;
  for (const bytes of reads) {
    const body = parser.read(bytes);
    if (body !== null) pieces.push(body);
    ({ isSound } = parser);
    if (!isSound) break;
  }
  const isDone = parser.isDone();
  return {
    status,
    fields,
    body: Buffer.concat(pieces).toString('latin1'),
    isSound,
    isDone,
    isWhole: parser.end(),
    pieces,
  };
}

function heard(reads: Iterable<Buffer>, answersHead = false): Heard {
  const { status, fields, body, isSound, isDone, isWhole } = run(reads, answersHead);
  return { status, fields, body, isSound, isDone, isWhole };
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

function* inPieces(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** What is heard in one read, after it was found the same byte by byte and with a cut at every place. */
function atEveryCut(t: Test, text: string, answersHead = false): Heard {
  const bytes = bytesOf(text);
  const whole = heard([bytes], answersHead);
  t.same(heard(inPieces(bytes, 1), answersHead), whole, `byte by byte: ${JSON.stringify(text.slice(0, 200))}`);
  for (let cut = 1; cut < Math.min(bytes.length, 400); cut++) {
    const parts = heard([bytes.subarray(0, cut), bytes.subarray(cut)], answersHead);
    if (JSON.stringify(parts) !== JSON.stringify(whole)) {
      t.same(parts, whole, `cut at ${String(cut)}: ${JSON.stringify(text.slice(0, 200))}`);
    }
  }
  return whole;
}

const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
const done = { isSound: true, isDone: true, isWhole: true };
const open = { isSound: true, isDone: false, isWhole: false };
const broken = { isSound: false };

t.test('RFC 9112 §6: bodies with a length, without one and with none, however they are cut', (t) => {
  const cases: readonly { readonly text: string; readonly head?: true; readonly expected: Partial<Heard> }[] = [
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', expected: { ...done, status: 200, body: 'hello' } },
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell', expected: { ...open, status: 200, body: 'hell' } },
    {
      text: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!',
      expected: { ...broken, isDone: true, body: 'hello' },
    },
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', expected: { ...done, body: '' } },
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\r\n', expected: { ...broken, isDone: true } },
    {
      text: 'HTTP/1.1 200 OK\r\n\r\nhel\r\n\r\nlo',
      expected: { isSound: true, isDone: false, isWhole: true, body: 'hel\r\n\r\nlo' },
    },
    { text: 'HTTP/1.1 200 OK\r\n\r\n', expected: { isSound: true, isDone: false, isWhole: true, body: '' } },
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', head: true, expected: { ...done, status: 200, body: '' } },
    { text: 'HTTP/1.1 200 OK\r\n\r\n', head: true, expected: done },
    { text: chunked, head: true, expected: done },
    {
      text: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
      head: true,
      expected: { ...broken, isDone: true, body: '' },
    },
    { text: 'HTTP/1.1 204 No Content\r\n\r\n', expected: done },
    { text: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', expected: { ...done, body: '' } },
    {
      text: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nh',
      expected: { ...broken, isDone: true, body: '' },
    },
    { text: '', expected: open },
    { text: 'HTTP/1.1 200 OK\r\nA: b\r\n', expected: { ...open, status: null } },
    { text: 'HTTP/1.1 200 OK\r\nA: b\r\n\r', expected: { ...open, status: null } },
    { text: '\r\nHTTP/1.1 200 OK\r\n\r\n', expected: { ...broken, status: null } },
    { text: 'HTTP/1.1 200 OK\n\nhello\r\n\r\n', expected: { ...broken, status: null } },
    { text: 'HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n', expected: { ...broken, status: null } },
    { text: '\r\n\r\n', expected: broken },
  ];
  for (const { text, head, expected } of cases) {
    t.match(atEveryCut(t, text, head), expected, JSON.stringify([text, head]));
  }
  t.end();
});

t.test('RFC 9112 §7.1: chunks, however they are cut', (t) => {
  const cases: readonly { readonly text: string; readonly expected: Partial<Heard> }[] = [
    { text: '0\r\n\r\n', expected: { ...done, body: '' } },
    { text: '5\r\nhello\r\n0\r\n\r\n', expected: { ...done, body: 'hello' } },
    { text: '5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n', expected: { ...done, body: 'hello!' } },
    { text: 'a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n', expected: { ...done, body: '01234567890123456789' } },
    { text: '0005\r\nhello\r\n0000\r\n\r\n', expected: { ...done, body: 'hello' } },
    { text: `${'0'.repeat(31)}5\r\nhello\r\n0\r\n\r\n`, expected: { ...done, body: 'hello' } },
    { text: `${'0'.repeat(32)}5\r\nhello\r\n0\r\n\r\n`, expected: broken },
    { text: '1fffffffffffff\r\nhello', expected: { ...open, body: 'hello' } },
    { text: '20000000000000\r\nhello', expected: { ...broken, body: '' } },
    { text: 'ffffffffffffffff\r\nhello', expected: { ...broken, body: '' } },
    { text: '10000000000000005\r\nhello\r\n0\r\n\r\n', expected: { ...broken, body: '' } },
    { text: '5;a\r\nhello\r\n0;b=c\r\n\r\n', expected: { ...done, body: 'hello' } },
    { text: '5;a="b;c\\""; d\r\nhello\r\n0\r\n\r\n', expected: { ...done, body: 'hello' } },
    { text: '5;\r\nhello\r\n0\r\n\r\n', expected: { ...done, body: 'hello' } },
    { text: '5;a="b\r\nc"\r\nhello\r\n0\r\n\r\n', expected: { ...broken, body: 'c"\r\nh' } },
    { text: '5;a\x00\r\nhello\r\n0\r\n\r\n', expected: broken },
    { text: '5;a\rb\r\nhello\r\n0\r\n\r\n', expected: broken },
    { text: '5 \r\nhello\r\n0\r\n\r\n', expected: broken },
    { text: ' 5\r\nhello\r\n0\r\n\r\n', expected: broken },
    { text: '+5\r\nhello\r\n0\r\n\r\n', expected: broken },
    { text: '-5\r\nhello\r\n0\r\n\r\n', expected: broken },
    { text: '0x5\r\nhello\r\n0\r\n\r\n', expected: broken },
    { text: '5_\r\nhello\r\n0\r\n\r\n', expected: broken },
    { text: 'g\r\nhello\r\n0\r\n\r\n', expected: broken },
    { text: '\r\nhello\r\n0\r\n\r\n', expected: broken },
    { text: ';a\r\nhello\r\n0\r\n\r\n', expected: broken },
    { text: '5\nhello\r\n0\r\n\r\n', expected: { ...broken, body: '' } },
    { text: '5\r\nhello\n0\r\n\r\n', expected: { ...broken, body: 'hello' } },
    { text: '5\r\nhello0\r\n\r\n', expected: { ...broken, body: 'hello' } },
    { text: '5\r\nhello!\r\n0\r\n\r\n', expected: { ...broken, body: 'hello' } },
    { text: '5\r\nhello\r0\r\n\r\n', expected: broken },
    { text: '5\r\nhello\r\n0\r\n', expected: { ...open, body: 'hello' } },
    { text: '5\r\nhello\r\n', expected: { ...open, body: 'hello' } },
    { text: '5\r\nhello\r\n0\r\n\n', expected: broken },
    { text: '0\r\n\r\n!', expected: { ...broken, isDone: true } },
    { text: '5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', expected: { ...broken, isDone: true, body: 'hello' } },
    { text: '0\r\nA: b\r\nC:\r\n\r\n', expected: done },
    { text: '0\r\nA: b\r\n', expected: open },
    { text: '0\r\nA : b\r\n\r\n', expected: broken },
    { text: '0\r\nA: b\r\n c\r\n\r\n', expected: broken },
    { text: '0\r\nA\r\n\r\n', expected: broken },
    { text: '0\r\nA: b\n\r\n', expected: broken },
    { text: '0\r\nA: \x00\r\n\r\n', expected: broken },
    { text: '0\r\n: b\r\n\r\n', expected: broken },
  ];
  for (const { text, expected } of cases) {
    t.match(atEveryCut(t, chunked + text), { status: 200, ...expected }, JSON.stringify(text));
  }
  t.end();
});

t.test('interim heads are dropped, a switch of protocols that nobody asked for is no response', (t) => {
  const final = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
  const interim = 'HTTP/1.1 100 Continue\r\n\r\n';
  const cases: readonly { readonly text: string; readonly expected: Partial<Heard> }[] = [
    { text: interim + final, expected: { ...done, status: 200, body: 'ok' } },
    {
      text: `HTTP/1.1 103 Hints\r\nLink: a\r\nContent-Length: 5\r\n\r\n${interim}${final}`,
      expected: { ...done, fields: ['Content-Length', '2'] },
    },
    { text: interim, expected: { ...open, status: null } },
    {
      text: `HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n${final}`,
      expected: { ...broken, status: null },
    },
    { text: `${interim}HTTP/1.1 101 Switching\r\n\r\n`, expected: { ...broken, status: null } },
    { text: `HTTP/1.1 103 Hints\r\nA : b\r\n\r\n${final}`, expected: { ...broken, status: null } },
    { text: final + interim, expected: { ...broken, isDone: true, body: 'ok' } },
  ];
  for (const { text, expected } of cases) t.match(atEveryCut(t, text), expected, JSON.stringify(text));
  for (const [count, isSound] of [
    [1_000, true],
    [1_001, false],
  ] as const) {
    const flood = bytesOf(interim.repeat(count) + final);
    for (const size of [7, 1_000, flood.length]) {
      t.match(heard(inPieces(flood, size)), { isSound, status: isSound ? 200 : null }, String(count));
    }
  }
  t.end();
});

t.test('limits stand at the same byte however the input is cut', (t) => {
  const padded = (start: string, length: number, fill = 'a'): string => start + fill.repeat(length - start.length);
  const headLimit = 64 * 1024;
  const lineLimit = 4 * 1024;
  const head = (length: number): string => `${padded('HTTP/1.1 204 No Content\r\nA: ', length - 2)}\r\n\r\n`;
  const sizeLine = (length: number): string => `${chunked}${padded('1;', length - 2)}\r\nx\r\n0\r\n\r\n`;
  const trailer = (length: number): string => `${chunked}0\r\n${padded('A:', length - 2)}\r\n\r\n`;
  // Without their line ends 65 lines of 1008 bytes are 16 bytes less than the limit.
  const lines = `${padded('A:', 1_008)}\r\n`.repeat(65);
  const trailers = (more: number): string => `${chunked}0\r\n${lines}${padded('B:', more)}\r\n\r\n`;
  const cases = [
    { name: 'a head', within: head(headLimit), beyond: head(headLimit + 1) },
    { name: 'a head without an end', within: head(headLimit).slice(0, -1), beyond: head(headLimit + 2).slice(0, -2) },
    { name: 'the line of a size', within: sizeLine(lineLimit), beyond: sizeLine(lineLimit + 1) },
    {
      name: 'a size without an end',
      within: chunked + '1;'.padEnd(lineLimit, 'a'),
      beyond: chunked + '1;'.padEnd(lineLimit + 1, 'a'),
    },
    { name: 'a line of the trailers', within: trailer(lineLimit), beyond: trailer(lineLimit + 1) },
    { name: 'all of the trailers', within: trailers(16), beyond: trailers(17) },
  ];
  for (const { name, within, beyond } of cases) {
    for (const [text, isSound] of [
      [within, true],
      [beyond, false],
    ] as const) {
      const bytes = bytesOf(text);
      for (const size of [1, 3, 1_000, bytes.length - 1, bytes.length]) {
        t.equal(heard(inPieces(bytes, size)).isSound, isSound, `${name}, ${String(size)}`);
      }
    }
  }
  t.end();
});

/** Answers near to what is allowed: grammar most of the time, a wrong byte now and then. */
const answers = fc
  .tuple(
    fc.array(fc.constantFrom('HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 X\r\nLink: <a>\r\n\r\n'), { maxLength: 2 }),
    fc.constantFrom(
      'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n',
      chunked,
      'HTTP/1.0 200 OK\r\n\r\n',
      'HTTP/1.1 204 X\r\n\r\n',
      'HTTP/1.1 200\r\nContent-Length: 012\r\n\r\n',
    ),
    fc.array(
      fc.constantFrom(
        '3\r\nabc\r\n',
        '0\r\n',
        '\r\n',
        'A: b\r\n',
        'hello, world',
        '00b;x="\xff"\r\nhello world\r\n',
        '\n',
        '\r',
        '\0',
        'HTTP/1.1 200 OK',
      ),
      { maxLength: 8 },
    ),
  )
  .map(([interim, head, parts]) => interim.join('') + head + parts.join(''));

t.test('however the bytes are cut, the same is heard', (t) => {
  fc.assert(
    fc.property(answers, fc.array(fc.nat(400)), fc.boolean(), (text, cuts, answersHead) => {
      const bytes = bytesOf(text);
      const places = [...new Set(cuts.map((cut) => cut % bytes.length))].sort((a, b) => a - b);
      const parts = [0, ...places].map((start, i) => bytes.subarray(start, places[i] ?? bytes.length));
      const whole = JSON.stringify(heard([bytes], answersHead));
      return (
        JSON.stringify(heard(parts, answersHead)) === whole &&
        JSON.stringify(heard(inPieces(bytes, 1), answersHead)) === whole
      );
    }),
    { numRuns: 2_000 },
  );
  t.end();
});

t.test('whatever the bytes are, nothing is thrown', (t) => {
  fc.assert(
    fc.property(
      fc.constantFrom('', 'HTTP/1.1 ', chunked, `${chunked}0\r\n`),
      fc.uint8Array({ maxLength: 200 }),
      (start, bytes) => {
        const all = Buffer.concat([bytesOf(start), bytes]);
        return JSON.stringify(heard([all])) === JSON.stringify(heard(inPieces(all, 1)));
      },
    ),
    { numRuns: 2_000 },
  );
  t.end();
});

/** Whether a read brought nothing but a response. */
function isSound(parser: ResponseParser, text: string): boolean {
  parser.read(bytesOf(text));
  return parser.isSound;
}

t.test('one connection: answer after answer, and each forgets what came before', (t) => {
  const statuses: number[] = [];
  const parser = new ResponseParser({
    onHead: ({ status }) => statuses.push(status),
    onSwitch: () => undefined,
  });
  t.equal(parser.isDone(), true);
  t.equal(isSound(parser, 'HTTP/1.1 200 OK\r\n\r\n'), false, 'nothing is expected before a request');
  for (const status of [200, 201, 202]) {
    parser.expect(status === 201);
    t.equal(parser.isDone(), false);
    t.equal(isSound(parser, `HTTP/1.1 100 C\r\n\r\nHTTP/1.1 ${String(status)} X\r\nContent-Length: 2\r\n`), true);
    t.equal(isSound(parser, '\r\n'), true);
    if (status !== 201) t.equal(isSound(parser, 'ok'), true);
    t.equal(parser.isDone(), true);
  }
  t.same(statuses, [200, 201, 202]);
  t.end();
});

t.test('floods cost no more than their bytes: a head byte by byte, chunks of one byte', (t) => {
  let searched = 0;
  const indexOf = Object.getOwnPropertyDescriptor(String.prototype, 'indexOf') ?? {};
  const restore = (): unknown => Object.defineProperty(String.prototype, 'indexOf', indexOf);
  t.teardown(restore);
  Object.defineProperty(String.prototype, 'indexOf', {
    ...indexOf,
    value(this: string, text: string, from = 0): number {
      searched += this.length - from;
      return Buffer.from(this, 'latin1').indexOf(text, from, 'latin1');
    },
  });
  const lines = 60;
  const head = bytesOf(`HTTP/1.1 200 OK\r\n${`A: ${'b'.repeat(1_000)}\r\n`.repeat(lines)}\r\n`);
  const { status } = heard(inPieces(head, 1));
  restore();
  t.equal(status, 200);
  // For each line the rest of the head, twice; before that a few bytes for each.
  t.ok(searched < (2 * (lines + 1) + 10) * head.length, `${String(searched)} of ${String(head.length)}`);

  const read = 64 * 1024;
  const flood = bytesOf(chunked + '1\r\nx\r\n'.repeat(100_000));
  const { pieces, body } = run(inPieces(flood, read));
  t.equal(body.length, 100_000);
  t.equal(pieces.length, Math.ceil(flood.length / read), 'one piece for a read');
  t.end();
});

t.test('a piece keeps no more memory than it has bytes, give or take as much again', (t) => {
  const read = 64 * 1024;
  const bytes = bytesOf(chunked + `1;${'a'.repeat(4_000)}\r\nx\r\n`.repeat(100));
  for (const piece of run(inPieces(bytes, read)).pieces) {
    t.ok(piece.buffer.byteLength <= Buffer.poolSize, 'of the pool, or its own');
  }
  const large = run([bytesOf(`HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n${'x'.repeat(50_000)}`)]).pieces;
  t.same(
    large.map((piece) => piece.buffer.byteLength),
    [50_000],
    'and a body in one piece is copied once',
  );
  t.end();
});

t.test('RFC 9110 §15.2.2: a 101 that was asked for ends what is read here, however it is cut', (t) => {
  const interim = 'HTTP/1.1 100 Continue\r\n\r\n';
  const head = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\n';
  const rest = 'HTTP/1.1 200 OK\r\n\r\n';
  const bytes = bytesOf(interim + head + rest);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const switches: { readonly fields: readonly string[]; readonly rest: string }[] = [];
    let other = '';
    const parser = new ResponseParser({
      onHead: () => t.fail('a head of an answer'),
      onSwitch: ({ headers: fields }, bytes) => switches.push({ fields, rest: bytes.toString('latin1') }),
    });
    parser.expect(false, true);
    for (const piece of [bytes.subarray(0, cut), bytes.subarray(cut)]) {
      if (switches.length > 0) other += piece.toString('latin1');
      else if (parser.read(piece) !== null) t.fail('some of a body');
      if (!parser.isSound) t.fail(`no answer, cut at ${String(cut)}`);
    }
    t.same(
      switches.map(({ fields }) => fields),
      [['Upgrade', 'websocket', 'Content-Length', '5']],
    );
    t.equal((switches[0]?.rest ?? '') + other, rest, String(cut));
    t.equal(parser.isDone(), false, 'nothing can follow on it');
    t.equal(isSound(parser, rest), false);
  }
  t.end();
});

t.test('an upstream that is asked for another protocol may answer as ever', (t) => {
  const heads: number[] = [];
  const parser = new ResponseParser({
    onHead: ({ status }) => heads.push(status),
    onSwitch: () => t.fail('it did not switch'),
  });
  parser.expect(false, true);
  t.ok(isSound(parser, 'HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno'));
  t.same(heads, [403]);
  t.ok(parser.isDone());
  t.end();
});
