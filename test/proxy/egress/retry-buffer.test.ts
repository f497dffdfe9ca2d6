import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import t from 'tap';
import { RetryBufferBudget, RetryBuffer } from '../../../src/proxy/egress/retry-buffer.js';

/** A body of so many pieces, each the first byte of 1 KiB that it keeps alive. */
function inPieces(count: number): Readable {
  return Readable.from(
    Array.from({ length: count }, (_, i) =>
      Buffer.allocUnsafeSlow(1_024)
        .fill(i % 256)
        .subarray(0, 1),
    ),
  );
}

t.test('what is held takes no more memory than is counted, however small its pieces are', async (t) => {
  const room = new RetryBufferBudget(1_000_000);
  const body = new RetryBuffer(inPieces(40_000), room, 1_000_000);
  const first = await buffer(body.open());
  t.equal(room.held(), 40_000);
  const pieces: Buffer[] = [];
  for await (const piece of body.open()) if (Buffer.isBuffer(piece)) pieces.push(piece);
  t.ok(Buffer.concat(pieces).equals(first), 'the same');
  t.ok(pieces.length < 10, 'a handful of pieces');
  const memory = pieces.reduce((sum, piece) => sum + piece.buffer.byteLength, 0);
  t.ok(memory <= 40_000, `${String(memory)} bytes of memory`);
  body.close();
  t.equal(room.held(), 0);
});

t.test('a reading in the middle of another gets all of it', async (t) => {
  const room = new RetryBufferBudget(1_000_000);
  const body = new RetryBuffer(inPieces(30_000), room, 1_000_000);
  const begun = body.open();
  let read = 0;
  for await (const piece of begun) {
    read += Buffer.isBuffer(piece) ? piece.length : 0;
    if (read > 20_000) break;
  }
  body.stop();
  const again = await buffer(body.open());
  t.equal(again.length, 30_000);
  t.ok(again.every((byte, i) => byte === i % 256));
  body.close();
  t.equal(room.held(), 0);
});
