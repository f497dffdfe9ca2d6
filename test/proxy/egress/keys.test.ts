import t from 'tap';
import { derivedKey } from '../../../src/proxy/egress/keys.js';

const write = { target: 'orders', method: 'POST', path: '/orders/v1?a=b', caller: null, name: 'order-1' };

t.test('a derived key is the same for the same operation, and another for any other', (t) => {
  const key = derivedKey(write);
  t.equal(derivedKey({ ...write }), key);
  t.match(key, /^[A-Za-z0-9_-]{43}$/);
  const others = [
    { ...write, target: 'billing' },
    { ...write, method: 'PUT' },
    { ...write, path: '/orders/v1' },
    { ...write, name: 'order-2' },
    { ...write, caller: 'alice' },
    { ...write, caller: 'bob' },
  ].map(derivedKey);
  t.equal(new Set([key, ...others]).size, others.length + 1);
  t.end();
});
