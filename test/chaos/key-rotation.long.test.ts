import t from 'tap';
import { keyRotation } from './key-rotation.js';

// That of the file, which is half a minute otherwise, as well as that of its tests.
t.setTimeout(600_000);

t.test(
  '10,000 requests while the keys of the Core rotate, and none passes once its key has left the set',
  { timeout: 600_000 },
  async (t) => keyRotation(t, { requests: 10_000, keys: 6, toTheEnd: true }),
);
