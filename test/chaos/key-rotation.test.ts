import t from 'tap';
import { keyRotation } from './key-rotation.js';

t.test('requests while the keys of the Core rotate', async (t) =>
  keyRotation(t, { requests: 500, keys: 2, toTheEnd: false }),
);
