import t from 'tap';
import { checkInShadow, suiteNames } from './shadow-suite.js';

t.setTimeout(1_800_000);

t.test('the conformance suite in shadow mode', async (t) => {
  const { passed, refused, allowed } = await checkInShadow(t, suiteNames());
  t.ok(
    passed > 600 && refused > 450 && allowed > 450,
    `${String(passed)} passed, ${String(refused)} refused alike, ${String(allowed)} allowed alike`,
  );
});
