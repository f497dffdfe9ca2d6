import type { Test } from 'tap';
import type { ProxyProcess } from '../support/proxy-process.js';

/** The last test of each file: after all that was sent to this proxy, nothing secret is written anywhere. */
export function checkSilence(t: Test, proxy: ProxyProcess): void {
  t.test('no token, cookie, body or query in any log line, metric or status', async (t) => {
    t.same(await proxy.exposures(), []);
    t.equal(proxy.process.isRunning(), true, 'and the process is alive');
  });
}
