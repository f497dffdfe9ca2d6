import t from 'tap';
import { keyRotation } from './key-rotation.js';

t.test(
  '10,000 requests while the keys of the Core rotate, and none passes once its key has left the set',
  { timeout: 600_000 },
  async (t) => keyRotation(t, { requests: 10_000, keys: 6, toTheEnd: true }),
);
