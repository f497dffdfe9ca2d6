import t from 'tap';
import { boundBytes, download, startTransfers, upload } from './large-bodies.js';

const size = 256 * 1024 * 1024 + 7;

t.test('256 MiB up, with a length and in chunks, in bounded memory', async (t) => {
  const { proxy, counter } = await startTransfers(t);
  for (const framing of ['length', 'chunked'] as const) {
    const { status, bytes, isSame, peakBytes } = await upload(proxy, counter, size, framing);
    t.same({ status, bytes, isSame }, { status: 200, bytes: size, isSame: true }, framing);
    t.ok(peakBytes < boundBytes, `${framing}: ${String(peakBytes)} bytes in buffers`);
  }
});

t.test('256 MiB down, to a caller that reads and to one that pauses, in bounded memory', async (t) => {
  const { proxy } = await startTransfers(t);
  for (const stall of [false, true]) {
    const { status, bytes, isSame, peakBytes } = await download(proxy, size, stall);
    t.same({ status, bytes, isSame }, { status: 200, bytes: size, isSame: true });
    t.ok(peakBytes < boundBytes, `${String(peakBytes)} bytes in buffers`);
  }
});
