import t from 'tap';
import { boundBytes, download, startTransfers, upload } from './large-bodies.js';

const size = 1024 * 1024 * 1024 + 7;

t.setTimeout(600_000);

t.test('1 GiB up and down in the memory that 256 MiB take', async (t) => {
  const { proxy, counter } = await startTransfers(t);
  for (const framing of ['length', 'chunked'] as const) {
    const { status, bytes, isSame, peakBytes } = await upload(proxy, counter, size, framing);
    t.same({ status, bytes, isSame }, { status: 200, bytes: size, isSame: true }, framing);
    t.ok(peakBytes < boundBytes, `${framing}: ${String(peakBytes)} bytes in buffers`);
  }
  for (const stall of [false, true]) {
    const { status, bytes, isSame, peakBytes } = await download(proxy, size, stall);
    t.same({ status, bytes, isSame }, { status: 200, bytes: size, isSame: true });
    t.ok(peakBytes < boundBytes, `${String(peakBytes)} bytes in buffers`);
  }
});
