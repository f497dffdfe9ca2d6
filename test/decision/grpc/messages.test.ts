import t from 'tap';
import { frameMessage, isOneMessage, readOneMessage } from '../../../src/decision/grpc/messages.js';

const one = frameMessage(Buffer.from('abc'));
const compressed = Buffer.from([1, ...one.subarray(1)]);
const rows: readonly (readonly [string, Uint8Array, number, boolean])[] = [
  ['one message', one, 3, true],
  ['one that is compressed', compressed, 3, true],
  ['one of no bytes', frameMessage(new Uint8Array()), 0, true],
  ['one that is longer than allowed', one, 2, false],
  ['two', Buffer.concat([one, one]), 100, false],
  ['one and the beginning of another', Buffer.concat([one, Buffer.from([0])]), 100, false],
  ['one that is cut short', one.subarray(0, -1), 100, false],
  ['a prefix that is cut short', one.subarray(0, 4), 100, false],
  ['nothing', new Uint8Array(), 100, false],
  ['a flag that means nothing', Buffer.from([2, ...one.subarray(1)]), 100, false],
  ['a length of four gigabytes', Buffer.from([0, 255, 255, 255, 255, 1]), 2 ** 32, false],
];

for (const [name, body, most, expected] of rows) {
  t.test(`a body that is one message: ${name}`, (t) => {
    t.equal(isOneMessage(body, most), expected);
    t.end();
  });
}

t.test('the length is read from all of its four bytes', (t) => {
  for (const length of [1, 256, 65_536, 16_777_216]) {
    const frame = frameMessage(Buffer.alloc(length));
    t.ok(isOneMessage(frame, length), `${length}`);
    t.notOk(isOneMessage(frame.subarray(0, -1), length), `${length}, and one byte is missing`);
  }
  t.end();
});

t.test('the one message of a body is read, and nothing else is', (t) => {
  const message = Uint8Array.of(1, 2, 3);
  const frame = frameMessage(message);
  const compressed = Uint8Array.from(frame).with(0, 1);
  t.same(readOneMessage(frame), { ok: true, value: Buffer.from(message) });
  t.match(readOneMessage(frameMessage(new Uint8Array())), { ok: true, value: { byteLength: 0 } });
  for (const [name, body, code] of [
    ['nothing', new Uint8Array(), 'UNIMPLEMENTED'],
    ['two', Buffer.concat([frame, frame]), 'UNIMPLEMENTED'],
    ['one, and a byte', Buffer.concat([frame, message.subarray(0, 1)]), 'UNIMPLEMENTED'],
    ['a compressed one', compressed, 'UNIMPLEMENTED'],
    ['part of a compressed one', compressed.subarray(0, -1), 'INTERNAL'],
    ['another flag', Uint8Array.from(frame).with(0, 2), 'INTERNAL'],
    ['part of one', frame.subarray(0, -1), 'INTERNAL'],
    ['part of a prefix', frame.subarray(0, 4), 'INTERNAL'],
    ['a length beyond all', Uint8Array.of(0, 255, 255, 255, 255, 0), 'INTERNAL'],
  ] as const) {
    t.strictSame(readOneMessage(body), { ok: false, error: code }, name);
  }
  t.end();
});
