import t from 'tap';
import { readRedirection } from '../../../../src/adapters/redis/topology/discovery.js';

const asked = { host: 'asked', port: 7_000 };

function reply(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

const cases: readonly { readonly name: string; readonly error: unknown; readonly expected: object | null }[] = [
  {
    name: 'moved',
    error: reply('MOVED 3999 10.0.0.7:6381'),
    expected: { kind: 'moved', address: { host: '10.0.0.7', port: 6_381 } },
  },
  { name: 'handed over', error: reply('ASK 0 node:1'), expected: { kind: 'ask', address: { host: 'node', port: 1 } } },
  {
    name: 'IPv6',
    error: reply('MOVED 1 ::1:6380'),
    expected: { kind: 'moved', address: { host: '::1', port: 6_380 } },
  },
  {
    name: 'the host that was asked',
    error: reply('MOVED 1 :6380'),
    expected: { kind: 'moved', address: { host: 'asked', port: 6_380 } },
  },
  {
    name: 'a host that nobody knows',
    error: reply('ASK 1 ?:6380'),
    expected: { kind: 'ask', address: { host: 'asked', port: 6_380 } },
  },
  { name: 'no port', error: reply('MOVED 1 node'), expected: null },
  { name: 'a port that is no number', error: reply('MOVED 1 node:a'), expected: null },
  { name: 'more than a port', error: reply('MOVED 1 node:6380 now'), expected: null },
  { name: 'no slot', error: reply('MOVED node:6380'), expected: null },
  { name: 'a slot that is no number', error: reply('MOVED one node:6380'), expected: null },
  { name: 'a word before the slot', error: reply('MOVED to 1 node:6380'), expected: null },
  { name: 'another refusal', error: reply('TRYAGAIN 1 node:6380'), expected: null },
  { name: 'not the server’s words', error: new Error('MOVED 1 node:6380'), expected: null },
  { name: 'no error', error: 'MOVED 1 node:6380', expected: null },
];

t.test('where a node of a Cluster says that keys are served', (t) => {
  for (const { name, error, expected } of cases) t.same(readRedirection(error, asked), expected, name);
  t.end();
});
