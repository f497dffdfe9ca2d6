/**
 * docs/contract.md 3: files of this folder, each of whose requests is made over HTTP/2 too. `http2.long.test.ts` takes
 * all of them.
 */
import t from 'tap';
import { checkOverHttp2 } from './http2-suite.js';

t.setTimeout(120_000);

t.test('what is said over HTTP/2 is answered, and reaches the upstream, as over HTTP/1.1', async (t) => {
  const { refused, reset, allowed } = await checkOverHttp2(t, ['credentials', 'routes', 'framing']);
  t.ok(
    refused > 70 && reset > 15 && allowed > 30,
    `${String(refused)} refused alike, ${String(reset)} of them by a reset, ${String(allowed)} allowed alike`,
  );
});
