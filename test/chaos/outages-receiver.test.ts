import t from 'tap';
import { receiverOutages } from './outages-receiver.js';
import { startSetup } from './outages-setup.js';
import { outage } from './outages.js';

const setup = await startSetup(t);

for (const row of receiverOutages) {
  t.test(`the upstream ${row.name}`, async (t) => {
    await outage(t, setup, row);
  });
}
