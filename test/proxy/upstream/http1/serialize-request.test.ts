import t from 'tap';
import { serializeRequest, statedLength } from '../../../../src/proxy/upstream/http1/serialize-request.js';

const host = ['Host', 'a.example'];

t.test('a head goes out in one form, with the framing of its body', (t) => {
  const start = 'Host: a.example\r\nConnection: keep-alive\r\n';
  const stated = 'Host: a.example\r\nContent-Length: 5\r\nConnection: keep-alive\r\n';
  const cases = [
    { method: 'GET', headers: host, length: 0, text: `GET /a?b HTTP/1.1\r\n${start}\r\n` },
    { method: 'DELETE', headers: host, length: 0, text: `DELETE /a?b HTTP/1.1\r\n${start}\r\n` },
    { method: 'POST', headers: host, length: 0, text: `POST /a?b HTTP/1.1\r\n${start}Content-Length: 0\r\n\r\n` },
    { method: 'PUT', headers: host, length: 0, text: `PUT /a?b HTTP/1.1\r\n${start}Content-Length: 0\r\n\r\n` },
    { method: 'PATCH', headers: host, length: 0, text: `PATCH /a?b HTTP/1.1\r\n${start}Content-Length: 0\r\n\r\n` },
    { method: 'POST', headers: host, length: 5, text: `POST /a?b HTTP/1.1\r\n${start}Content-Length: 5\r\n\r\n` },
    { method: 'GET', headers: host, length: 5, text: `GET /a?b HTTP/1.1\r\n${start}Content-Length: 5\r\n\r\n` },
    {
      method: 'POST',
      headers: [...host, 'Content-Length', '5'],
      length: 5,
      text: `POST /a?b HTTP/1.1\r\n${stated}\r\n`,
    },
    {
      method: 'GET',
      headers: host,
      length: null,
      text: `GET /a?b HTTP/1.1\r\n${start}Transfer-Encoding: chunked\r\n\r\n`,
    },
    {
      method: 'M-SEARCH',
      headers: [...host, 'X', ''],
      length: 0,
      text: 'M-SEARCH /a?b HTTP/1.1\r\nHost: a.example\r\nX: \r\nConnection: keep-alive\r\n\r\n',
    },
  ];
  for (const { method, headers, length, text } of cases) {
    t.equal(serializeRequest({ method, target: '/a?b', headers }, length), text);
  }
  t.end();
});

t.test('what would be more or less than one head is not sent', (t) => {
  const whole = { method: 'GET', target: '/', headers: host };
  const cases = [
    { name: 'a line end in a value', parts: { ...whole, headers: [...host, 'A', 'b\r\nC: d'] } },
    { name: 'a carriage return in a value', parts: { ...whole, headers: [...host, 'A', 'b\rc'] } },
    { name: 'a line feed in a value', parts: { ...whole, headers: [...host, 'A', 'b\nc'] } },
    { name: 'a NUL in a value', parts: { ...whole, headers: [...host, 'A', 'b\0'] } },
    { name: 'DEL in a value', parts: { ...whole, headers: [...host, 'A', '\x7f'] } },
    { name: 'what is no byte in a value', parts: { ...whole, headers: [...host, 'A', '\u010a'] } },
    { name: 'a line end in a name', parts: { ...whole, headers: [...host, 'A: b\r\nC', 'd'] } },
    { name: 'a blank in a name', parts: { ...whole, headers: [...host, 'A ', 'b'] } },
    { name: 'a colon in a name', parts: { ...whole, headers: [...host, 'A:', 'b'] } },
    { name: 'no name', parts: { ...whole, headers: [...host, '', 'b'] } },
    { name: 'a blank in the target', parts: { ...whole, target: '/ HTTP/1.1' } },
    { name: 'a line end in the target', parts: { ...whole, target: '/\r\nA:b' } },
    { name: 'a byte above ASCII in the target', parts: { ...whole, target: '/\xe9' } },
    { name: 'no target', parts: { ...whole, target: '' } },
    { name: 'a blank in the method', parts: { ...whole, method: 'GET /a' } },
    { name: 'a method in lower case', parts: { ...whole, method: 'get' } },
    { name: 'no method', parts: { ...whole, method: '' } },
    { name: 'a Connection of its own', parts: { ...whole, headers: [...host, 'connection', 'close'] } },
    { name: 'a Transfer-Encoding of its own', parts: { ...whole, headers: [...host, 'Transfer-encoding', 'chunked'] } },
  ];
  t.not(serializeRequest(whole, 0), null);
  for (const { name, parts } of cases) {
    for (const length of [0, null]) t.equal(serializeRequest(parts, length), null, name);
  }
  t.end();
});

t.test('a head that says another length than the body has is not sent', (t) => {
  const cases = [
    { stated: ['5'], length: 5, isSent: true },
    { stated: ['05'], length: 5, isSent: true },
    { stated: ['0'], length: 0, isSent: true },
    { stated: ['5'], length: 4, isSent: false },
    { stated: ['5'], length: 6, isSent: false },
    { stated: ['5'], length: 0, isSent: false },
    { stated: ['0'], length: 5, isSent: false },
    { stated: ['5'], length: null, isSent: false },
    { stated: ['5', '5'], length: 5, isSent: false },
    { stated: ['5', '6'], length: 5, isSent: false },
    { stated: ['5, 5'], length: 5, isSent: false },
    { stated: ['+5'], length: 5, isSent: false },
    { stated: ['0x5'], length: 5, isSent: false },
    { stated: ['5e0'], length: 5, isSent: false },
    { stated: [''], length: 0, isSent: false },
    { stated: ['x'], length: NaN, isSent: false },
    { stated: ['9007199254740991'], length: Number.MAX_SAFE_INTEGER, isSent: true },
    { stated: ['90071992547409910'], length: 90071992547409910, isSent: false },
  ];
  for (const { stated, length, isSent } of cases) {
    const fields = [...host, ...stated.flatMap((value, i) => [i === 0 ? 'Content-Length' : 'content-length', value])];
    t.equal(
      serializeRequest({ method: 'POST', target: '/', headers: fields }, length) !== null,
      isSent,
      `${stated.join(' and ')}, ${String(length)}`,
    );
  }
  t.end();
});

t.test('the length that fields give a body', (t) => {
  t.equal(statedLength(host), null);
  t.equal(statedLength([...host, 'content-LENGTH', '12']), 12);
  t.equal(statedLength(['Content-Lengths', '5', 'X', 'Content-Length']), null);
  for (const value of ['', ' 5', '5, 5', '-1', '1e3', '0x10']) {
    t.ok(Number.isNaN(statedLength(['Content-Length', value])), JSON.stringify(value));
  }
  t.end();
});

t.test('RFC 9110 §7.8: a request to switch protocols says so, once, and nothing of the connection besides', (t) => {
  const upgrade = 'websocket';
  t.equal(
    serializeRequest({ method: 'GET', target: '/live', headers: host, upgrade }, 0, true),
    'GET /live HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
  );
  for (const name of ['upgrade', 'Upgrade', 'connection']) {
    t.equal(
      serializeRequest({ method: 'GET', target: '/', headers: [...host, name, 'h2c'], upgrade }, 0, true),
      null,
      name,
    );
  }
  t.equal(serializeRequest({ method: 'GET', target: '/', headers: host, upgrade: 'a\r\nX: y' }, 0, true), null);
  t.end();
});
