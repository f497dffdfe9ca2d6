/** The measurement of decisions still works. */
import t from 'tap';
import { decideTable, measureDecide } from './decide.js';
import { hasNginxLua } from './nginx-lua.js';

t.setTimeout(120_000);

t.test('each way is asked and allows', { timeout: 120_000 }, async (t) => {
  const measured = await measureDecide(t, { seconds: 0.5, rounds: 1, connections: 4, wrk: false });
  t.equal(measured.length, hasNginxLua() ? 6 : 4);
  t.ok(measured.some(({ name }) => name === 'a decision alone, over gRPC'));
  for (const { name, cpuUs, ownUs } of measured) {
    t.ok(cpuUs > 0, name);
    t.equal(ownUs > 0, !name.includes('Lua'), name);
  }
  t.match(decideTable(measured), /^\| way \|.*\n.*\n\| sidecar: judged and forwarded \| \d+ \| \d+ \| 1\.00 \|/);
});
