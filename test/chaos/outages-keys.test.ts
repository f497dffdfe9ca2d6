import t from 'tap';
import { keysOutages } from './outages-keys.js';
import { startSetup } from './outages-setup.js';
import { outage } from './outages.js';

const setup = await startSetup(t);

for (const row of keysOutages) {
  t.test(`the source of the keys ${row.name}`, async (t) => {
    await outage(t, setup, row);
  });
}
