/** The same for longer, and with what takes more to install. `SALLYPORT_REQUESTS` is how many requests each gets, 25,000 unless given. */
import t from 'tap';
import { holdReceiver } from './receivers/scene.js';
import { largeReceivers, realReceivers } from './receivers/start.js';

const requests = Number(process.env['SALLYPORT_REQUESTS'] ?? 25_000);

t.setTimeout(4 * 3_600_000);

for (const receiver of [...largeReceivers, ...realReceivers]) {
  t.test(`${receiver.name}: each caller gets its own answers, and no write runs twice`, async (t) => holdReceiver(t, receiver, { requests }));
}
