import t from 'tap';
import {
  createAddressTest,
  createClientFinder,
  holdEveryAddress,
  isAddressBlock,
  isLoopback,
  clientNetworks,
  plainAddress,
} from '../../src/lib/ip-ranges.js';

const blocks = [
  ...[
    '10.0.0.1',
    '10.0.0.0/8',
    '10.1.2.3/8',
    '0.0.0.0/0',
    '192.168.1.1/32',
    '::1',
    'fe80::/10',
    '2001:DB8::/128',
    '::/0',
  ].map((input) => ({ input, expected: true })),
  ...[
    '',
    '10.0.0',
    '10.0.0.256',
    '10.0.0.1/33',
    '10.0.0.1/',
    '10.0.0.1/08',
    '10.0.0.1/-1',
    '10.0.0.1/8/8',
    '10.0.0.1 ',
    '010.0.0.1',
    'localhost',
    '*',
    '::1/129',
    '::1/1000',
    'fe80::1%eth0',
    '::ffff:10.0.0.1',
    '::FFFF:10.0.0.0/104',
    'g::1',
    '10.0.0.1\n',
  ].map((input) => ({ input, expected: false })),
];

t.test('trust_forwarded takes addresses and CIDR blocks', (t) => {
  for (const { input, expected } of blocks) t.equal(isAddressBlock(input), expected, JSON.stringify(input));
  t.end();
});

const hosts = [
  ...['localhost', 'LOCALHOST', '127.0.0.1', '127.255.0.9', '[127.0.0.1]', '::1', '[::1]', '0:0:0:0:0:0:0:1'].map(
    (host) => ({ host, expected: true }),
  ),
  ...['::ffff:127.0.0.1', '::FFFF:7f00:1', '::1%lo'].map((host) => ({ host, expected: true })),
  ...['', 'localhost.example.com', 'localhost.', '127.1', '127.0.0.1.example.com', '128.0.0.1'].map((host) => ({
    host,
    expected: false,
  })),
  ...['0.0.0.0', '::', '::2', '::ffff:128.0.0.1', '::127.0.0.1', '[::1'].map((host) => ({ host, expected: false })),
];

t.test('a host that is this machine alone', (t) => {
  for (const { host, expected } of hosts) t.equal(isLoopback(host), expected, JSON.stringify(host));
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

t.test('an address is trusted only where a block holds it', (t) => {
  for (const { blocks, address, expected } of members) {
    t.equal(createAddressTest(blocks)(address), expected, `${address} in ${blocks.join(' ')}`);
  }
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

const proxies = ['10.0.0.0/8', '2001:db8:1::/48'];

/** As many characters as an address can have: with a zone behind it the system reads it no more. */
const longest = '0000:0000:0000:0000:0000:ffff:255.255.255.255';

const forwarded = [
  { name: 'one client', input: '203.0.113.7', expected: '203.0.113.7' },
  { name: 'the client behind two proxies', input: '203.0.113.7, 10.0.0.9, 10.0.0.8', expected: '203.0.113.7' },
  {
    name: 'what the client itself wrote counts for nothing',
    input: '198.51.100.1, 203.0.113.7',
    expected: '203.0.113.7',
  },
  { name: 'even where it names a proxy', input: '10.0.0.1, 203.0.113.7, 10.0.0.9', expected: '203.0.113.7' },
  { name: 'proxies only: the first of them', input: '10.0.0.9, 10.0.0.8', expected: '10.0.0.9' },
  { name: 'without blanks, and with many', input: '203.0.113.7,\t 10.0.0.9  ', expected: '203.0.113.7' },
  { name: 'with a port', input: '203.0.113.7:4711', expected: '203.0.113.7' },
  { name: 'IPv6, in its one form', input: '2001:DB8:2:0:0:0:0:1', expected: '2001:db8:2::1' },
  { name: 'IPv6 of a proxy', input: '203.0.113.7, 2001:db8:1::5', expected: '203.0.113.7' },
  { name: 'IPv6 in brackets', input: '[2001:db8:2::1]', expected: '2001:db8:2::1' },
  { name: 'IPv6 with a port', input: '[2001:db8:2::1]:443', expected: '2001:db8:2::1' },
  { name: 'IPv6 with a zone', input: 'fe80::1%eth0', expected: 'fe80::1' },
  { name: 'the longest with a zone', input: `${longest}%a`, expected: '255.255.255.255' },
  {
    name: 'the longest with a zone, of a client',
    input: `${longest.replace('0000', '2001')}%a, 10.0.0.9`,
    expected: '2001::ffff:ffff:ffff',
  },
  { name: 'IPv4 mapped into IPv6', input: '::ffff:203.0.113.7', expected: '203.0.113.7' },
  { name: 'mapped in hexadecimal digits, of a proxy', input: '203.0.113.7, ::FFFF:0a00:0009', expected: '203.0.113.7' },
  ...[
    'unknown',
    '_hidden',
    '203.0.113.7.example',
    '010.0.0.1',
    '256.0.0.1',
    '203.0.113.7:',
    '203.0.113.7:port',
    '[203.0.113.7]',
    '"203.0.113.7"',
    '',
    ' ',
    '203.0.113.7 198.51.100.1',
    '203.0.113.7\n',
    '<script>',
    '2001:db8:2::1]:443',
    '2001:db8:2::1%',
    '2001:db8:2::1%eth0%eth1',
    '2001:db8:2::g',
    '1:2:3:4:5:6:7:8:9',
    `${longest}0`,
    '1.2.3',
    ':',
    'a%b',
  ].flatMap((input) => [
    { name: `${JSON.stringify(input)} is no address: the peer`, input, expected: '192.0.2.1' },
    {
      name: `${JSON.stringify(input)} behind a proxy: that proxy`,
      input: `203.0.113.7, ${input}, 10.0.0.9`,
      expected: '10.0.0.9',
    },
  ]),
];

t.test('the client is the address furthest to the right that is no proxy', (t) => {
  const find = createClientFinder(proxies);
  for (const { name, input, expected } of forwarded) {
    t.equal(find('::ffff:192.0.2.1', input), expected, name);
    t.equal(find('192.0.2.1', input), expected, `${name}, once more`);
  }
  t.end();
});

t.test('of a long list only the end is looked at', (t) => {
  const find = createClientFinder(['10.0.0.0/8']);
  const list = Array.from({ length: 4_000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
  t.equal(find('192.0.2.1', list.join(', ')), list.at(-32));
  t.end();
});

t.test('a client is found however many others were looked for', (t) => {
  const find = createClientFinder(proxies);
  for (let i = 0; i < 2_000; i++) {
    if (find('192.0.2.1', `198.51.100.${i & 255}, 10.0.${i >> 8}.9`) !== `198.51.100.${i & 255}`) t.fail(`client ${i}`);
  }
  t.pass('2,000 clients');
  t.end();
});

t.test('an address is counted by what one client has, and by what one customer of a provider may have', (t) => {
  const rows: { address: string; own: string; site?: string }[] = [
    { address: '192.0.2.1', own: '192.0.2.1' },
    { address: '::ffff:192.0.2.1', own: '192.0.2.1' },
    { address: '', own: '' },
    { address: 'unix', own: 'unix' },
    { address: '::1', own: '0:0:0:0::/64' },
    { address: '::', own: '0:0:0:0::/64' },
    { address: '2001:db8::1', own: '2001:db8:0:0::/64', site: '2001:db8:0::/48' },
    { address: '2001:DB8:0:0:1::1', own: '2001:db8:0:0::/64', site: '2001:db8:0::/48' },
    { address: '2001:db8:0:00a0::1', own: '2001:db8:0:a0::/64', site: '2001:db8:0::/48' },
    { address: '2001:db8:1:2:3:4:5:6', own: '2001:db8:1:2::/64', site: '2001:db8:1::/48' },
    { address: '2001:db8:1:2::', own: '2001:db8:1:2::/64', site: '2001:db8:1::/48' },
    { address: '3fff:1:2:3::1', own: '3fff:1:2:3::/64', site: '3fff:1:2::/48' },
    { address: '2::4:5:6:7:8', own: '2:0:0:4::/64' },
    { address: '1:2::4:5:6:7:8', own: '1:2:0:4::/64' },
    { address: '1::3:4:5:6:192.0.2.1', own: '1:0:3:4::/64' },
    { address: '64:ff9b::192.0.2.1', own: '192.0.2.1' },
    { address: '64:ff9b::c000:201', own: '192.0.2.1' },
    { address: '64:ff9b:1::c000:201', own: '64:ff9b:1:0::/64' },
    { address: 'fd00:1:2:3::1', own: 'fd00:1:2:3::/64' },
    { address: 'fe80::1%eth0', own: 'fe80:0:0:0::/64' },
  ];
  for (const { address, own, site = own } of rows) t.same(clientNetworks(address), { own, site }, address);
  t.end();
});

t.test('blocks that together are everybody', (t) => {
  const rows: { blocks: string[]; expected: boolean }[] = [
    { blocks: [], expected: false },
    { blocks: ['unix'], expected: false },
    { blocks: ['10.0.0.1', '10.0.0.0/8', '127.0.0.1', '::1', 'fd00::/8'], expected: false },
    { blocks: ['0.0.0.0/0'], expected: true },
    { blocks: ['10.0.0.0/8', '192.0.2.1/0'], expected: true },
    { blocks: ['::/0'], expected: true },
    { blocks: ['0.0.0.0/1'], expected: false },
    { blocks: ['0.0.0.0/1', '128.0.0.0/1'], expected: true },
    { blocks: ['0.0.0.0/1', '8000::/1'], expected: false },
    { blocks: ['128.0.0.0/2', '192.0.0.0/3', '64.0.0.0/2', '1.0.0.0/8', '2.0.0.0/7', '4.0.0.0/6'], expected: false },
    {
      blocks: ['128.0.0.0/2', '192.0.0.0/3', '64.0.0.0/2', '1.0.0.0/8', '2.0.0.0/7', '4.0.0.0/6', '8.0.0.0/5'].concat([
        '16.0.0.0/4',
        '32.0.0.0/3',
      ]),
      expected: true,
    },
    { blocks: ['::/1', '8000::/1'], expected: true },
    { blocks: ['2000::/4', '3000::/4'], expected: true },
    { blocks: ['2000::/4', '3000::/5'], expected: false },
    { blocks: ['2000::/4', '3000::/5', '3800::/6', '3c00::/7', '3e00::/8', '3f01::/16'], expected: false },
  ];
  for (const { blocks, expected } of rows) t.equal(holdEveryAddress(blocks), expected, blocks.join(' '));
  t.end();
});
