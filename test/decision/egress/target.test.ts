import t from 'tap';
import { outgoingTarget, targetOf } from '../../../src/decision/egress/target.js';

const orders = { prefix: '/orders', basePath: '' };
const bills = { prefix: '/bills/eu', basePath: '/api' };
const targets = [orders, bills];

const rows = [
  { target: '/orders/7', of: orders, goesOut: '/7' },
  { target: '/orders', of: orders, goesOut: '/' },
  { target: '/orders?a=1', of: orders, goesOut: '/?a=1' },
  { target: '/orders/', of: orders, goesOut: '/' },
  { target: '/orders/a%2Fb?x=/bills/eu', of: orders, goesOut: '/a%2Fb?x=/bills/eu' },
  { target: '/bills/eu/1', of: bills, goesOut: '/api/1' },
  { target: '/bills/eu', of: bills, goesOut: '/api/' },
  { target: '/orders//evil.example/', of: orders, goesOut: '//evil.example/' },
  { target: '/ordersx', of: null, goesOut: '' },
  { target: '/%6frders/7', of: null, goesOut: '' },
  { target: '/Orders/7', of: null, goesOut: '' },
  { target: '/bills', of: null, goesOut: '' },
  { target: 'http://elsewhere/orders/7', of: null, goesOut: '' },
  { target: '*', of: null, goesOut: '' },
];

t.test('a request goes to the target of its prefix, spelt as it is, without it', (t) => {
  for (const { target, of, goesOut } of rows) {
    const found = targetOf(targets, target);
    t.equal(found, of, target);
    if (found !== null) t.equal(outgoingTarget(found, target), goesOut, target);
  }
  t.end();
});
