/** The section that says how a stop goes. */
import { reloaded } from '../schema/key-changes.js';
import { duration, map } from '../schema/scalars.js';
import { section } from '../schema/section.js';

const shutdownSchema = map({
  delay: duration('0ms', '10m')
    .prefault('5s')
    .describe('How long the listener stays open after `/readyz` has begun to fail, so that load balancers notice.'),
  grace: duration('0ms', '1h').prefault('25s').describe('How long requests in flight may then take to end.'),
});
export const shutdown = section({
  schema: shutdownSchema.prefault({}).describe('How a stop goes. `/readyz` fails from its beginning.'),
  compile: ({ delay, grace }) => ({ shutdown: { delayMs: delay, graceMs: grace } }),
  keys: { delay: reloaded, grace: reloaded },
});
