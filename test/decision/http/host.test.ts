import t from 'tap';
import { isHost } from '../../../src/decision/http/header-values.js';
import { badHosts } from '../../support/attacks/hosts.js';

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
/** The last ones only a value can be: on the wire they are another one, or other bytes. */
const malformed = [...badHosts, ' a', 'a\n', '[::1]\n', 'a\t', '\u2488com', 'b\u00fccher.example'];

t.test('a Host is uri-host with or without a port', (t) => {
  for (const text of sound) t.equal(isHost(text), true, JSON.stringify(text));
  t.end();
});

t.test('commas, semicolons, user information, escapes and kin are no Host', (t) => {
  for (const text of malformed) t.equal(isHost(text), false, JSON.stringify(text));
  t.end();
});
