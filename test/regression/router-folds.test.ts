/** The folds that `receiver` knows are those that real routers make. */
import t from 'tap';
import { holdRouter, holdScript } from './router-spellings.js';
import { routers } from './routers.js';
import { scriptServers } from './scripts.js';

t.setTimeout(120_000);

for (const router of routers) {
  const title = `${router.name}: no spelling reaches another operation than the policy matched, but by folds that receiver tells of`;
  t.test(title, async (t) => holdRouter(t, router));
}

for (const server of scriptServers) {
  const title = `${server.name}: no spelling of a script reaches it past its policy, but by folds that receiver tells of`;
  t.test(title, async (t) => holdScript(t, server));
}
