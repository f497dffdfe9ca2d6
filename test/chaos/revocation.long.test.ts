import t from 'tap';
import { revocationSuite, startFleet } from './revocation.js';

t.setTimeout(900_000);

revocationSuite(t, await startFleet(t, 20), 20);
