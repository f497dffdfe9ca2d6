import fc from 'fast-check';
import t from 'tap';
import { ReplyMeter } from '../../../../src/adapters/redis/client/reply-meter.js';
import { bulk } from '../../../support/fake-redis.js';

const mebibyte = 1024 * 1024;

/** Replies of RESP 2, lists in lists among them. */
const { reply } = fc.letrec<{ reply: string }>((tie) => ({
  reply: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom('+OK\r\n', '-ERR no\r\n', ':-12\r\n', '$-1\r\n', '*-1\r\n', '*0\r\n', '$0\r\n\r\n'),
    fc.string({ unit: 'binary-ascii', maxLength: 20 }).map(bulk),
    fc.array(tie('reply'), { maxLength: 5 }).map((parts) => `*${String(parts.length)}\r\n${parts.join('')}`),
  ),
}));

t.test('whatever replies there are, and however they are cut, they pass', (t) => {
  fc.assert(
    fc.property(fc.array(reply, { maxLength: 6 }), fc.array(fc.nat(400)), (replies, cuts) => {
      const meter = new ReplyMeter(mebibyte);
      const bytes = Buffer.from(replies.join(''));
      let from = 0;
      for (const cut of cuts.sort((a, b) => a - b)) {
        meter.take(bytes.subarray(from, Math.max(from, cut)));
        from = Math.max(from, cut);
      }
      meter.take(bytes.subarray(from));
      // It stands between two replies: what is none does not pass.
      meter.take(Buffer.from('+OK\r\n'));
      t.throws(() => meter.take(Buffer.from('OK')), { message: 'the server sends what is not RESP 2' });
    }),
  );
  t.end();
});

t.test('each reply has its own number of parts', (t) => {
  const meter = new ReplyMeter(mebibyte);
  const list = Buffer.from(`*200000\r\n${':1\r\n'.repeat(200_000)}`);
  for (let count = 0; count < 3; count += 1) meter.take(list);
  t.throws(() => meter.take(Buffer.from(`*2\r\n${String(list)}*100000\r\n`)), {
    message: 'the server sends a reply without an end',
  });
  t.end();
});

t.test('what no reply can be is told before room is set aside for it', (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['*1000000000\r\n', /without an end/],
    ['*262145\r\n', /without an end/],
    ['*3\r\n*131072\r\n'.repeat(2), /without an end/],
    ['*9999999999999999999999\r\n', /without an end/],
    ['$1048577\r\n', /without an end/],
    ['*1\r\n'.repeat(17), /not RESP 2/],
    ['HTTP/1.1 400 Bad Request\r\n', /not RESP 2/],
    ['220 smtp.example.com ESMTP\r\n', /not RESP 2/],
    ['>2\r\n', /not RESP 2/],
    ['%1\r\n', /not RESP 2/],
    ['*a\r\n', /not RESP 2/],
    ['$ 1\r\n', /not RESP 2/],
  ];
  for (const [sent, message] of cases) {
    for (const size of [1, 3, 1_000]) {
      const meter = new ReplyMeter(mebibyte);
      const bytes = Buffer.from(sent);
      t.throws(
        () => {
          for (let at = 0; at < bytes.length; at += size) meter.take(bytes.subarray(at, at + size));
        },
        { message },
        sent.slice(0, 30),
      );
    }
  }
  const most = new ReplyMeter(4 * mebibyte);
  most.take(Buffer.from(`*262144\r\n${':1\r\n'.repeat(262_144)}$${String(mebibyte)}\r\n`));
  t.end();
});
