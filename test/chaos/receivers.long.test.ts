/**
 * The same for longer, and with what takes more to install. `SALLYPORT_REQUESTS` is how many requests each gets, 25,000
 * unless given; `SALLYPORT_RECEIVER` names the only one that is sent any.
 */
import t from 'tap';
import { faultyReceiver } from './receivers/faulty.js';
import { largeReceivers } from './receivers/large.js';
import { holdReceiver } from './receivers/hold-receiver.js';
import { realReceivers } from './receivers/start.js';

const requests = Number(process.env['SALLYPORT_REQUESTS'] ?? 25_000);
const only = process.env['SALLYPORT_RECEIVER'];

t.setTimeout(4 * 3_600_000);

for (const receiver of [faultyReceiver, ...largeReceivers, ...realReceivers].filter(
  ({ name }) => only === undefined || name === only,
)) {
  t.test(`${receiver.name}: each caller gets its own responses, and no write runs twice`, async (t) =>
    holdReceiver(t, receiver, { requests, mayFail: receiver === faultyReceiver }),
  );
}
