import t from 'tap';
import { ByteBuffer } from '../../../src/proxy/inbound/byte-buffer.js';

t.test('pieces of any size are one run of bytes', (t) => {
  for (const size of [1, 7, 1023, 1024, 1025, 5000]) {
    const bytes = new ByteBuffer();
    const whole = Buffer.from(Array.from({ length: 12_000 }, (_, i) => i % 251));
    for (let at = 0; at < whole.length; at += size) bytes.append(whole.subarray(at, at + size));
    t.equal(bytes.length, whole.length);
    t.ok(bytes.take().equals(whole), `pieces of ${String(size)}`);
    t.equal(bytes.length, 0);
    t.equal(bytes.take().length, 0, 'nothing is left');
  }
  t.end();
});

t.test('what is held is at most twice the bytes and a kibibyte, and is said before', (t) => {
  for (const size of [1, 100, 3000]) {
    const bytes = new ByteBuffer();
    for (let count = 0; count < 500; count += 1) {
      const announced = bytes.heldWith(size);
      bytes.append(Buffer.alloc(size));
      t.ok(
        announced >= bytes.length && announced <= 2 * bytes.length + 1024,
        `${String(announced)} for ${String(bytes.length)}`,
      );
      t.equal(bytes.heldWith(0), announced);
    }
    t.ok(bytes.take().buffer.byteLength <= 2 * 500 * size + 1024);
  }
  t.end();
});

t.test('where the size is known no more than that is held', (t) => {
  const bytes = new ByteBuffer(10_000);
  for (let count = 0; count < 10_000; count += 100) {
    bytes.append(Buffer.alloc(100));
    t.ok(bytes.heldWith(0) <= 10_000);
  }
  t.equal(bytes.take().buffer.byteLength, 10_000);
  const more = new ByteBuffer(100);
  more.append(Buffer.alloc(90));
  more.append(Buffer.alloc(90));
  t.equal(more.take().length, 180, 'who announced less is no reason to lose bytes');
  t.end();
});

t.test('a large piece that comes alone is not copied, and a small slice does not keep the memory around it', (t) => {
  const large = Buffer.alloc(16 * 1024, 'x');
  const bytes = new ByteBuffer();
  bytes.append(large);
  t.equal(bytes.take().buffer, large.buffer);
  const read = Buffer.alloc(64 * 1024);
  bytes.append(read.subarray(0, 2000));
  t.not(bytes.take().buffer, read.buffer);
  t.end();
});
