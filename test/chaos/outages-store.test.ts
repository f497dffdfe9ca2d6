import t from 'tap';
import { startSetup } from './outages-setup.js';
import { storeOutages } from './outages-store.js';
import { outage } from './outages.js';

const setup = await startSetup(t);

for (const row of storeOutages) {
  t.test(`Redis ${row.name}`, async (t) => {
    await outage(t, setup, row);
  });
}
