import t from 'tap';
import { revocationSuite, startFleet } from './revocation.js';

t.setTimeout(120_000);

/** `revocation.long.test.ts` has twenty. */
revocationSuite(t, await startFleet(t, 2), 4);
