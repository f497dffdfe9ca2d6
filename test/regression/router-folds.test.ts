/** The folds that `receiver` knows are those that real routers make. */
import t from 'tap';
import { holdRouter } from './router-spellings.js';
import { routers } from './routers.js';

t.setTimeout(120_000);

for (const router of routers) {
  const title = `${router.name}: no spelling reaches another operation than the policy matched, but by folds that receiver tells of`;
  t.test(title, async (t) => holdRouter(t, router));
}
