import t from 'tap';
import { headerBytes } from '../../../src/decision/http/request-head.js';

const cases = [
  { name: 'no fields', method: 'GET', target: '/', rawHeaders: [], wire: 'GET / HTTP/1.1\r\n\r\n' },
  {
    name: 'one field',
    method: 'GET',
    target: '/a',
    rawHeaders: ['Host', 'a'],
    wire: 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n',
  },
  {
    name: 'an empty value',
    method: 'POST',
    target: '/a?b',
    rawHeaders: ['Host', 'a', 'X', ''],
    wire: 'POST /a?b HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n',
  },
  {
    name: 'one byte for each latin1 character',
    method: 'GET',
    target: '/',
    rawHeaders: ['X', '\u00e9'],
    wire: 'GET / HTTP/1.1\r\nX: \u00e9\r\n\r\n',
  },
];

t.test('max_header_bytes counts the request line and the header section together', (t) => {
  for (const { name, method, target, rawHeaders, wire } of cases) {
    t.equal(headerBytes({ method, target, httpVersion: '1.1', rawHeaders }), wire.length, name);
  }
  t.end();
});
