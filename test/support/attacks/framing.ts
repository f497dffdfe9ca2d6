/** Messages that two readers may end at different places (RFC 9112 §6 and §7.1). */

/** Values of Content-Length that readers differ about: a lenient one makes so many bytes of each, or another number. */
export function badLengths(bytes: number): readonly string[] {
  const n = String(bytes);
  return [
    '',
    `+${n}`,
    `-${n}`,
    `0x${n}`,
    `0x${n}0`,
    `${n}a`,
    'a',
    `${n}.0`,
    `${n}e0`,
    `${n}e2`,
    `${n} ${n}`,
    `${n}, ${n}`,
    `${n},${n}`,
    `${n};${n}`,
    n.padStart(17, '0'),
    n.padStart(22, '0'),
    '9007199254740992',
    '99999999999999999999',
    // 2^64 + n: what wraps around is n.
    String(2n ** 64n + BigInt(bytes)),
    '9'.repeat(400),
  ];
}

/** Values of Transfer-Encoding that some reader takes for chunks, and another one does not. */
export const badCodings: readonly string[] = [
  '',
  'identity',
  'gzip',
  'x',
  'xchunked',
  'gzip, chunked',
  'chunked, gzip',
  'identity, chunked',
  'chunked, identity',
  'chunked, chunked',
  ',chunked',
  'chunked,',
  'chunked;a',
  'chunked;q=1',
  '"chunked"',
  '\x0bchunked',
  'chunked\0',
];

/** Lines of a head that are one field to some reader and another, or none, to another one. */
export function brokenFramingLines(bytes: number): readonly string[] {
  const n = String(bytes);
  return [
    `Content-Length: ${n}\r\nContent-Length: ${n}`,
    `Content-Length: ${n}\r\nContent-Length: ${String(bytes + 1)}`,
    `Content-Length : ${n}`,
    ` Content-Length: ${n}`,
    `Content-Length:\r\n ${n}`,
    `Content-Length: ${n}\n`,
    `Content-Length: ${n}\0`,
    `Connection: Content-Length\r\nContent-Length: ${n}`,
    'Transfer-Encoding\t: chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
    'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding:\r\n chunked',
    'Transfer-Encoding\r\n: chunked',
    'X: y\nTransfer-Encoding: chunked',
    'X: y\rTransfer-Encoding: chunked',
    'X: y\r\n\tTransfer-Encoding: chunked',
    'Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked',
  ];
}

/** Bodies in chunks of which none is sound. */
export const brokenChunks: readonly string[] = [
  'zz\r\nhello\r\n0\r\n\r\n',
  'g\r\nhello\r\n0\r\n\r\n',
  '-1\r\nhello\r\n0\r\n\r\n',
  '+5\r\nhello\r\n0\r\n\r\n',
  '0x5\r\nhello\r\n0\r\n\r\n',
  '5_0\r\nhello\r\n0\r\n\r\n',
  ' 5\r\nhello\r\n0\r\n\r\n',
  '5\0\r\nhello\r\n0\r\n\r\n',
  'fffffffffffffffff\r\nhello\r\n0\r\n\r\n',
  '2\r\nhello\r\n0\r\n\r\n',
  '5\r\nhelloXX0\r\n\r\n',
  '5\r\nhello0\r\n\r\n',
  '5\nhello\r\n0\r\n\r\n',
  '5\r\nhello\n0\r\n\r\n',
  '5;\nhello\r\n0\r\n\r\n',
  '5\r\r\nhello\r\n0\r\n\r\n',
  '5\r\nhello\r\n-0\r\n\r\n',
  '5\r\nhello\r\n\r\n0\r\n\r\n',
  '\r\n5\r\nhello\r\n0\r\n\r\n',
  '5\r\nhello\r\n0\r\nbad trailer\r\n\r\n',
  '5\r\nhello\r\n0\r\nX Y: z\r\n\r\n',
];
