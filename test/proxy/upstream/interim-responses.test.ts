import { Socket } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import { InterimResponses } from '../../../src/proxy/upstream/interim-responses.js';

/** What a client reads of these bytes, in these portions, after it sent a request. */
function readThrough(portions: readonly string[], expects = true): string {
  const socket = new Socket();
  const left = portions.map((text) => Buffer.from(text, 'latin1'));
  socket.read = () => left.shift() ?? null;
  const interim = new InterimResponses();
  interim.watch(socket);
  if (expects) interim.expect();
  let seen = '';
  for (let chunk: unknown = socket.read(); chunk instanceof Buffer; chunk = socket.read()) {
    seen += chunk.toString('latin1');
  }
  return seen;
}

const continues = 'HTTP/1.1 100 Continue\r\n\r\n';
const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';
const final = 'HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n';

t.test('100 becomes 102 wherever a head is expected, and nothing else changes', (t) => {
  const cases = [
    { sent: continues + final, read: continues.replace('100', '102') + final },
    { sent: continues + continues + final, read: (continues + continues).replaceAll('100', '102') + final },
    { sent: hints + continues + final, read: hints + continues.replace('100', '102') + final },
    { sent: final + continues, read: final + continues },
    { sent: continues + final + continues, read: continues.replace('100', '102') + final + continues },
    { sent: 'HTTP/1.1 100', read: 'HTTP/1.1 102' },
    { sent: 'HTTP/1.1 1000\r\n\r\n', read: 'HTTP/1.1 1020\r\n\r\n' },
    { sent: 'HTTP/1.1  100 Continue\r\n\r\n', read: 'HTTP/1.1  100 Continue\r\n\r\n' },
    { sent: 'garbage', read: 'garbage' },
    { sent: 'HTTP/1.1 100 A\nX: 1\n\nHTTP/1.1 100 B\r\n\r\n', read: 'HTTP/1.1 102 A\nX: 1\n\nHTTP/1.1 102 B\r\n\r\n' },
  ];
  for (const { sent, read } of cases) {
    t.equal(readThrough([sent]), read);
    t.equal(readThrough(Array.from(sent)), read, 'byte by byte');
    t.equal(readThrough([sent], false), sent, 'nothing is changed where no answer is expected');
  }
  t.end();
});

t.test('however the bytes are cut, the same is read', (t) => {
  const heads = fc.array(
    fc.constantFrom(continues, hints, 'HTTP/1.1 100 C\r\nX: y\r\n\r\n', 'HTTP/1.1 102 Processing\r\n\r\n'),
    { maxLength: 4 },
  );
  fc.assert(
    fc.property(heads, fc.array(fc.nat(200)), (interim, cuts) => {
      const sent = interim.join('') + final + continues;
      const places = [...new Set(cuts.map((cut) => cut % sent.length))].sort((a, b) => a - b);
      const portions = [0, ...places].map((start, i) => sent.slice(start, places[i] ?? sent.length));
      const expected = interim.map((head) => head.replace(' 100 ', ' 102 ')).join('') + final + continues;
      return readThrough(portions) === expected;
    }),
  );
  t.end();
});
