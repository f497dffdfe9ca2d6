import t from 'tap';
import { reauthorizeAfterMs, reauthorizeInMs } from '../../../src/proxy/exchange/reauthorization.js';

t.test('connections that began together are not authorized again together, and none later than it should be', (t) => {
  const times = Array.from({ length: 1_000 }, reauthorizeInMs);
  t.ok(Math.min(...times) >= reauthorizeAfterMs * 0.8);
  t.ok(Math.max(...times) <= reauthorizeAfterMs);
  for (let second = 24; second < 30; second += 1) {
    const those = times.filter((ms) => ms >= second * 1_000 && ms < (second + 1) * 1_000);
    t.ok(those.length < 300, `${String(those.length)} in one second`);
  }
  t.end();
});
