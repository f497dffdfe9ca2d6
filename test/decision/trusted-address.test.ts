import t from 'tap';
import { createAddressTest, isAddressBlock, plainAddress } from '../../src/decision/trusted-address.js';

const blocks = [
  ...[
    '10.0.0.1', '10.0.0.0/8', '10.1.2.3/8', '0.0.0.0/0', '192.168.1.1/32', '::1', 'fe80::/10', '2001:DB8::/128', '::/0',
  ].map(input => ({ input, expected: true })),
  ...[
    '', '10.0.0', '10.0.0.256', '10.0.0.1/33', '10.0.0.1/', '10.0.0.1/08', '10.0.0.1/-1', '10.0.0.1/8/8', '10.0.0.1 ', '010.0.0.1', 'localhost', '*', '::1/129',
    '::1/1000', 'fe80::1%eth0', '::ffff:10.0.0.1', '::FFFF:10.0.0.0/104', 'g::1', '10.0.0.1\n',
  ].map(input => ({ input, expected: false })),
];

t.test('trust_forwarded takes addresses and CIDR blocks', (t) => {
  for (const { input, expected } of blocks) t.equal(isAddressBlock(input), expected, JSON.stringify(input));
  t.end();
});

const members = [
  { blocks: ['10.0.0.0/8'], address: '10.255.255.255', expected: true },
  { blocks: ['10.0.0.0/8'], address: '11.0.0.0', expected: false },
  { blocks: ['10.0.0.0/8'], address: '9.255.255.255', expected: false },
  { blocks: ['10.0.0.7/8'], address: '10.9.9.9', expected: true },
  { blocks: ['10.0.0.0/8'], address: '::ffff:10.1.2.3', expected: true },
  { blocks: ['10.0.0.0/8'], address: '::FFFF:11.1.2.3', expected: false },
  { blocks: ['10.0.0.1'], address: '10.0.0.1', expected: true },
  { blocks: ['10.0.0.1'], address: '10.0.0.2', expected: false },
  { blocks: ['0.0.0.0/0'], address: '8.8.8.8', expected: true },
  { blocks: ['0.0.0.0/0'], address: '2001:db8::1', expected: false },
  { blocks: ['::/0'], address: '2001:db8::1', expected: true },
  { blocks: ['::1'], address: '::1', expected: true },
  { blocks: ['::1'], address: '0:0:0:0:0:0:0:1', expected: true },
  { blocks: ['fe80::/10'], address: 'fe80::1%eth0', expected: true },
  { blocks: ['fe80::/10'], address: 'fec0::1', expected: false },
  { blocks: ['10.0.0.0/8', '::1'], address: '::1', expected: true },
  { blocks: ['10.0.0.0/8', '::1'], address: '10.0.0.1', expected: true },
  { blocks: ['10.0.0.0/8'], address: '1::ffff:10.1.2.3', expected: false },
  { blocks: [], address: '10.0.0.1', expected: false },
  { blocks: ['nonsense'], address: '10.0.0.1', expected: false },
  { blocks: ['nonsense', '10.0.0.1'], address: '10.0.0.1', expected: true },
  { blocks: ['0.0.0.0/0', '::/0'], address: '', expected: false },
  { blocks: ['0.0.0.0/0', '::/0'], address: 'localhost', expected: false },
  { blocks: ['0.0.0.0/0', '::/0'], address: '10.0.0.1:80', expected: false },
];

t.test('R-06: an address is trusted only where a block holds it', (t) => {
  for (const { blocks, address, expected } of members) t.equal(createAddressTest(blocks)(address), expected, `${address} in ${blocks.join(' ')}`);
  t.end();
});

t.test('addresses are written without mapping and zone', (t) => {
  t.equal(plainAddress('::ffff:127.0.0.1'), '127.0.0.1');
  t.equal(plainAddress('127.0.0.1'), '127.0.0.1');
  t.equal(plainAddress('fe80::1%eth0'), 'fe80::1');
  t.equal(plainAddress('::ffff:7f00:1'), '::ffff:7f00:1');
  t.equal(plainAddress('1::ffff:127.0.0.1'), '1::ffff:127.0.0.1', 'another address that ends alike');
  t.equal(plainAddress('::ffff:127.0.0.1:80'), '::ffff:127.0.0.1:80');
  t.equal(plainAddress(''), '');
  t.end();
});
