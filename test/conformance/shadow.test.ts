/**
 * docs/contract.md 3.6: files of this folder with a proxy in shadow mode beside theirs. `shadow.long.test.ts` takes all
 * of them.
 */
import t from 'tap';
import { checkInShadow } from './shadow-suite.js';

t.setTimeout(120_000);

t.test('in shadow mode what would be refused is forwarded as nobody, and everything else is as ever', async (t) => {
  const { passed, refused, allowed } = await checkInShadow(t, ['credentials', 'routes']);
  t.ok(
    passed > 50 && refused > 10 && allowed > 20,
    `${String(passed)} passed, ${String(refused)} refused alike, ${String(allowed)} allowed alike`,
  );
});
