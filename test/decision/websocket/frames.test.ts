import fc from 'fast-check';
import t from 'tap';
import { closeFrame, FrameReader, type FrameRules, type FrameScan } from '../../../src/decision/websocket/frames.js';

const server: FrameRules = { masked: false, extended: false };
const client: FrameRules = { masked: true, extended: false };
const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex');
const passed = (scans: readonly FrameScan[]): Buffer => Buffer.concat(scans.flatMap((scan) => scan.passed));

/** A frame with the header that its length asks for. */
function frame(first: number, length: number, mask: Buffer | null): Buffer {
  const bit = mask === null ? 0 : 0x80;
  const header = Buffer.alloc(10);
  header[0] = first;
  let size = 2;
  if (length < 126) header[1] = bit | length;
  else if (length < 65_536) {
    header[1] = bit | 126;
    header.writeUInt16BE(length, 2);
    size = 4;
  } else {
    header[1] = bit | 127;
    header.writeBigUInt64BE(BigInt(length), 2);
    size = 10;
  }
  return Buffer.concat([header.subarray(0, size), mask ?? Buffer.alloc(0), Buffer.alloc(length, 0x61)]);
}

const wellFormed = [
  { name: 'RFC 6455 §5.7: unmasked text', rules: server, hex: '81 05 48 65 6c 6c 6f' },
  { name: 'RFC 6455 §5.7: masked text', rules: client, hex: '81 85 37 fa 21 3d 7f 9f 4d 51 58' },
  { name: 'RFC 6455 §5.7: fragmented text', rules: server, hex: '01 03 48 65 6c 80 02 6c 6f' },
  { name: 'RFC 6455 §5.7: ping', rules: server, hex: '89 05 48 65 6c 6c 6f' },
  { name: 'RFC 6455 §5.7: masked pong', rules: client, hex: '8a 85 37 fa 21 3d 7f 9f 4d 51 58' },
  { name: 'a ping between fragments', rules: server, hex: '01 01 61 89 00 00 01 62 8a 00 80 00' },
  { name: 'empty', rules: server, hex: '82 00' },
  { name: 'reserved bit of an extension', rules: { masked: false, extended: true }, hex: 'c1 01 61' },
];

t.test('RFC 6455 §5.2: frames pass as they are, in pieces of any size', (t) => {
  for (const { name, rules, hex } of wellFormed) {
    const whole = bytes(hex);
    for (const size of [1, 2, 3, 5, whole.length]) {
      const reader = new FrameReader(rules);
      const scans: FrameScan[] = [];
      for (let at = 0; at < whole.length; at += size) scans.push(reader.read(whole.subarray(at, at + size)));
      t.same(passed(scans), whole, `${name}, by ${size}`);
      t.ok(
        scans.every(({ close, isMalformed }) => close === null && !isMalformed),
        name,
      );
      t.equal(reader.missing(), 0, name);
    }
  }
  t.end();
});

const malformed = [
  { name: 'a masked frame of a server', rules: server, hex: '81 80 00 00 00 00' },
  { name: 'an unmasked frame of a client', rules: client, hex: '81 00' },
  { name: 'RSV1 without an extension', rules: server, hex: 'c1 00' },
  { name: 'RSV2', rules: server, hex: 'a1 00' },
  { name: 'RSV3', rules: server, hex: '91 00' },
  { name: 'opcode 3', rules: server, hex: '83 00' },
  { name: 'opcode 7', rules: server, hex: '87 00' },
  { name: 'opcode 11', rules: server, hex: '8b 00' },
  { name: 'opcode 15', rules: { masked: false, extended: true }, hex: '8f 00' },
  { name: 'a fragmented ping', rules: server, hex: '09 00' },
  { name: 'a long ping', rules: server, hex: '89 7e 00 7e' },
  { name: 'a very long ping', rules: server, hex: '89 7f 00 00 00 00 00 01 00 00' },
  { name: 'a continuation of nothing', rules: server, hex: '80 00' },
  { name: 'text within text', rules: server, hex: '01 00 81 00', good: 2 },
  { name: 'binary within text', rules: server, hex: '01 00 02 00', good: 2 },
  { name: 'a continuation after the end', rules: server, hex: '01 00 80 00 80 00', good: 4 },
  { name: '125 in two bytes', rules: server, hex: '82 7e 00 7d' },
  { name: '65535 in eight bytes', rules: server, hex: '82 7f 00 00 00 00 00 00 ff ff' },
  { name: 'the highest bit of a length', rules: server, hex: '82 7f 80 00 00 00 00 00 00 00' },
  { name: 'a length beyond any number', rules: server, hex: '82 7f 00 20 00 00 00 00 00 00' },
  { name: 'a Close of one byte', rules: server, hex: '88 01 03' },
  { name: 'a fragmented Close', rules: server, hex: '08 00' },
];

t.test('RFC 6455 §5: nothing of a malformed frame passes, however it is cut', (t) => {
  for (const { name, rules, hex, good = 0 } of malformed) {
    const whole = Buffer.concat([bytes(hex), Buffer.from('more')]);
    for (const size of [1, 3, whole.length]) {
      const reader = new FrameReader(rules);
      const scans: FrameScan[] = [];
      for (let at = 0; at < whole.length && scans.at(-1)?.isMalformed !== true; at += size) {
        scans.push(reader.read(whole.subarray(at, at + size)));
      }
      t.equal(scans.at(-1)?.isMalformed, true, `${name}, by ${size}`);
      t.same(passed(scans), whole.subarray(0, good), name);
      t.equal(reader.missing(), 0, 'a frame of ours may come next');
    }
  }
  t.end();
});

const lengths = [
  { hex: '82 7d', missing: 125 },
  { hex: '82 7e 00 7e', missing: 126 },
  { hex: '82 7e ff ff', missing: 65_535 },
  { hex: '82 7f 00 00 00 00 00 01 00 00', missing: 65_536 },
  { hex: '82 7f 00 00 00 01 00 00 00 00', missing: 2 ** 32 },
  { hex: '82 7f 00 1f ff ff ff ff ff ff', missing: Number.MAX_SAFE_INTEGER },
];

t.test('lengths of 7, 16 and 64 bits', (t) => {
  for (const { hex, missing } of lengths) {
    const reader = new FrameReader(server);
    t.equal(reader.read(bytes(hex)).isMalformed, false, hex);
    t.equal(reader.missing(), missing, hex);
    reader.read(Buffer.alloc(100));
    t.equal(reader.missing(), missing - 100, 'counted, not kept');
  }
  t.end();
});

t.test('a header is held back until it is whole', (t) => {
  const reader = new FrameReader(client);
  t.same(reader.read(bytes('81 00').subarray(0, 1)).passed, []);
  t.same(passed([reader.read(bytes('81')), reader.read(bytes('01 02 03'))]), Buffer.alloc(0));
  t.equal(reader.missing(), 0);
  t.same(passed([reader.read(bytes('04 60'))]), bytes('81 81 01 02 03 04 60'));
  t.end();
});

const closes = [
  { name: 'without a code', rules: server, hex: '88 00', code: null },
  { name: '1000', rules: server, hex: '88 02 03 e8', code: 1000 },
  { name: 'with a reason', rules: server, hex: '88 05 0f a0 62 79 65', code: 4000 },
  { name: 'masked', rules: client, hex: '88 82 01 02 03 04 02 ea', code: 1000 },
  { name: 'masked, without a code', rules: client, hex: '88 80 01 02 03 04', code: null },
];

t.test('RFC 6455 §5.5.1: a Close is the last that passes', (t) => {
  for (const { name, rules, hex, code } of closes) {
    const whole = bytes(hex);
    for (const size of [1, whole.length + 3]) {
      const reader = new FrameReader(rules);
      const stream = Buffer.concat([whole, Buffer.from('abc')]);
      const scans: FrameScan[] = [];
      for (let at = 0; at < stream.length && (scans.at(-1)?.close ?? null) === null; at += size) {
        scans.push(reader.read(stream.subarray(at, at + size)));
      }
      t.same(scans.at(-1)?.close, { code }, name);
      t.same(passed(scans), whole, name);
    }
  }
  t.end();
});

t.test('whatever the frames and the pieces: all bytes pass, and the end of a frame is known', (t) => {
  const length = fc.oneof(fc.nat(300), fc.constantFrom(125, 126, 65_535, 65_536));
  const sent = fc.array(fc.record({ length, parts: fc.integer({ min: 1, max: 3 }), binary: fc.boolean() }), {
    maxLength: 4,
  });
  const pieces = fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1 });
  fc.assert(
    fc.property(fc.boolean(), sent, pieces, (masked, messages, cuts) => {
      const mask = masked ? Buffer.from([1, 2, 3, 4]) : null;
      const stream = Buffer.concat(
        messages.flatMap(({ length, parts, binary }) =>
          Array.from({ length: parts }, (_, i) =>
            frame((i === parts - 1 ? 0x80 : 0) | (i === 0 ? (binary ? 2 : 1) : 0), length, mask),
          ),
        ),
      );
      const reader = new FrameReader({ masked, extended: false });
      const scans: FrameScan[] = [];
      for (let at = 0, i = 0; at < stream.length; i++) {
        const size = cuts[i % cuts.length] ?? 1;
        scans.push(reader.read(stream.subarray(at, at + size)));
        at += size;
      }
      return (
        passed(scans).equals(stream) &&
        reader.missing() === 0 &&
        scans.every(({ isMalformed, close }) => !isMalformed && close === null)
      );
    }),
    { numRuns: 100 },
  );
  t.end();
});

t.test('a Close of ours is a frame like any other', (t) => {
  t.same(closeFrame(4401, 'unauthorized', null), Buffer.concat([bytes('88 0e 11 31'), Buffer.from('unauthorized')]));
  for (const mask of [null, Buffer.from([9, 8, 7, 6])]) {
    const scan = new FrameReader({ masked: mask !== null, extended: false }).read(closeFrame(1001, 'going away', mask));
    t.same([scan.isMalformed, scan.close], [false, { code: 1001 }]);
  }
  t.end();
});
