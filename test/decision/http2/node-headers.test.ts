import t from 'tap';
import { http2Headers } from '../../../src/decision/http2/node-headers.js';

t.test('names and values in turn become the object that node:http2 takes', (t) => {
  const headers = http2Headers([
    'Content-Type',
    'text/plain',
    'Set-Cookie',
    'a=1',
    'set-cookie',
    'b=2',
    'SET-COOKIE',
    'c=3',
    'ETag',
    '"first"',
    'etag',
    '"second"',
    'Connection',
    'close',
    'Transfer-Encoding',
    'chunked',
    ':status',
    '500',
    'X-Blank',
    ' \tin the middle\t ',
    '__proto__',
    'a name like any other',
  ]);
  t.equal(Object.getPrototypeOf(headers), null);
  t.same(Object.entries(headers), [
    ['content-type', 'text/plain'],
    ['set-cookie', ['a=1', 'b=2', 'c=3']],
    ['etag', '"first"'],
    ['x-blank', 'in the middle'],
    ['__proto__', 'a name like any other'],
  ]);
  t.end();
});
