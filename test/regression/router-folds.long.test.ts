/** The same with what takes more to install. */
import t from 'tap';
import { largeRouters } from './large-routers.js';
import { holdRouter } from './router-spellings.js';

t.setTimeout(120_000);

for (const router of largeRouters) {
  const title = `${router.name}: no spelling reaches another operation than the policy matched, but by folds that receiver tells of`;
  t.test(title, async (t) => holdRouter(t, router));
}
