/**
 * A proxy that stands still for longer than its time-outs, as where the CPU is throttled: all that was due is due at
 * once, beside what came meanwhile. Whatever its upstream does, the process lives, every request is answered, and
 * every place is given back.
 */
import t from 'tap';
import { long, short, standStillWithEach, transports, trust, urlOf, type Ask, type Part } from './stalls.js';

t.setTimeout(600_000);

const upstream =
  (http2: boolean): Part =>
  (stall) => ({
    upstream: { url: urlOf(stall), http2, connect_timeout: short, response_timeout: long, ...trust(stall) },
  });

const read: Ask = async (proxy) => (await proxy.request({ path: '/orders', headers: proxy.authorization() })).status;

for (const transport of transports) {
  for (const http2 of [false, true]) {
    t.test(`${http2 ? 'HTTP/2' : 'HTTP/1.1'}, ${transport.name}`, async (t) => {
      const asks = Array.from({ length: 4 }, () => read);
      await standStillWithEach(t, transport, upstream(http2), asks);
    });
  }
}
