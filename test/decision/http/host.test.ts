import t from 'tap';
import { isHost } from '../../../src/decision/http/header-values.js';

const sound = [
  'a',
  'localhost',
  'orders.example.com',
  'ORDERS.example.com',
  'orders.example.com.',
  'my_service',
  'a~b',
  'xn--bcher-kva.example',
  '127.0.0.1',
  'localhost:3000',
  'a:0',
  'a:65535',
  '127.0.0.1:80',
  '[::1]',
  '[::1]:8443',
  '[2001:DB8::1]:1',
  '[::ffff:1.2.3.4]',
  '[::]',
];
const malformed = [
  '',
  ':80',
  'a:',
  'a:b',
  'a:65536',
  'a:99999',
  'a:100000',
  'a:-1',
  'a:+1',
  'a: 80',
  'a :80',
  'a b',
  ' a',
  'a,b',
  'a, b',
  'a;b',
  'a@b',
  'user:pw@a',
  'a/b',
  'a\\b',
  'a?b',
  'a#b',
  'a%41',
  'a"b',
  "a'b",
  '(a)',
  'a=b',
  'a:80:80',
  '::1',
  '1:2:3:4:5:6:7:8',
  '[]',
  '[::1',
  '::1]',
  '[::1]a',
  '[::1]:',
  '[::1]:a',
  '[a]',
  '[127.0.0.1]',
  '[1:2]',
  '[fe80::1%25eth0]',
  '[fe80::1%eth0]',
  '[v1.a]',
  '[::1]:65536',
  'b\u00fccher.example',
  'a\u0000',
  'a\n',
  '[::1]\n',
  'a\t',
  '\u2488com',
  'a]b',
];

t.test('a Host is uri-host with or without a port', (t) => {
  for (const text of sound) t.equal(isHost(text), true, JSON.stringify(text));
  t.end();
});

t.test('commas, semicolons, user information, escapes and kin are no Host', (t) => {
  for (const text of malformed) t.equal(isHost(text), false, JSON.stringify(text));
  t.end();
});
