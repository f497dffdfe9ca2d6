import t from 'tap';
import {
  readCompleted,
  readMarked,
  readReleased,
  readReserved,
  readReserveTime,
  readResolved,
  readShown,
  UnexpectedReply,
} from '../../../../src/adapters/redis/scripts/replies.js';

const time = '1800000000000';
const bytes = (...parts: readonly (string | null | Buffer)[]): readonly unknown[] =>
  parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part));

t.test('what the reserve script answers', (t) => {
  t.same(readReserved(bytes(time, 'acquired', '1800000000123', '0')), {
    kind: 'acquired',
    fence: 1_800_000_000_123,
    takenOver: false,
  });
  t.same(readReserved(bytes(time, 'acquired', '1800000000123', '1')), {
    kind: 'acquired',
    fence: 1_800_000_000_123,
    takenOver: true,
  });
  t.same(readReserved(bytes(time, 'in_progress', '17')), { kind: 'in_progress', retryAfterMs: 17 });
  t.same(readReserved(bytes(time, 'tombstone', '0')), { kind: 'tombstone', status: 0 });
  t.same(readReserved(bytes(time, 'replayed', '200', '["ETag","\\"1\\""]', Buffer.from([0xff, 0]))), {
    kind: 'replayed',
    response: { status: 200, headers: ['ETag', '"1"'], body: Buffer.from([0xff, 0]) },
  });
  t.same(
    readReserved(bytes(time, 'replayed', '200', '{"fields":["ETag","\\"1\\""],"trailers":["grpc-status","0"]}', '')),
    {
      kind: 'replayed',
      response: { status: 200, headers: ['ETag', '"1"'], trailers: ['grpc-status', '0'], body: Buffer.alloc(0) },
    },
    'with trailers',
  );
  for (const status of ['200', '599', '999']) {
    t.match(readReserved(bytes(time, 'replayed', status, '[]', '')), {
      kind: 'replayed',
      response: { status: Number(status) },
    });
  }
  for (const kind of ['unknown', 'mismatch', 'token_replayed', 'unsupported']) {
    t.same(readReserved(bytes(time, kind)), { kind });
  }
  t.end();
});

t.test('the time that comes with it', (t) => {
  t.equal(readReserveTime(bytes(time, 'token_replayed')), 1_800_000_000_000);
  for (const reply of [
    null,
    Buffer.from(time),
    [],
    bytes(''),
    bytes('-1'),
    bytes('1e3'),
    bytes('12345678901234567'),
    bytes(null),
  ]) {
    t.equal(readReserveTime(reply), null);
  }
  t.end();
});

t.test('what no script of ours answers is refused', (t) => {
  const replies: readonly { name: string; reply: unknown }[] = [
    { name: 'no list', reply: Buffer.from('acquired') },
    { name: 'nothing', reply: null },
    { name: 'an empty list', reply: [] },
    { name: 'no time', reply: bytes('acquired', '1800000000123', '0') },
    { name: 'a time that is no number', reply: bytes('1e3', 'acquired', '1800000000123', '0') },
    { name: 'another word', reply: bytes(time, 'granted') },
    { name: 'no fence', reply: bytes(time, 'acquired') },
    { name: 'an empty fence', reply: bytes(time, 'acquired', '', '0') },
    { name: 'a fence that is no number', reply: bytes(time, 'acquired', '1e3', '0') },
    { name: 'a fence too large to be exact', reply: bytes(time, 'acquired', '9007199254740993', '0') },
    { name: 'no status', reply: bytes(time, 'replayed', '', '[]', '') },
    { name: 'a status nobody sends', reply: bytes(time, 'replayed', '0', '[]', '') },
    { name: 'an interim status', reply: bytes(time, 'replayed', '199', '[]', '') },
    { name: 'a status beyond all', reply: bytes(time, 'replayed', '1000', '[]', '') },
    { name: 'headers that are no JSON', reply: bytes(time, 'replayed', '200', '[', '') },
    { name: 'headers that are no list', reply: bytes(time, 'replayed', '200', '{"a":"b"}', '') },
    { name: 'headers that are null', reply: bytes(time, 'replayed', '200', 'null', '') },
    { name: 'headers without their trailers', reply: bytes(time, 'replayed', '200', '{"fields":[]}', '') },
    {
      name: 'a member of a later version',
      reply: bytes(time, 'replayed', '200', '{"fields":[],"trailers":[],"hints":[]}', ''),
    },
    { name: 'trailers that are no list', reply: bytes(time, 'replayed', '200', '{"fields":[],"trailers":{}}', '') },
    { name: 'a trailer without a value', reply: bytes(time, 'replayed', '200', '{"fields":[],"trailers":["a"]}', '') },
    { name: 'headers that are not text', reply: bytes(time, 'replayed', '200', '["a",1]', '') },
    { name: 'a header without a value', reply: bytes(time, 'replayed', '200', '["a"]', '') },
    { name: 'no body', reply: bytes(time, 'replayed', '200', '[]', null) },
  ];
  for (const { name, reply } of replies) t.throws(() => readReserved(reply), name);
  t.equal(new UnexpectedReply('reserve').name, 'UnexpectedReply');
  t.end();
});

t.test('the words of the other scripts, and no others', (t) => {
  for (const word of ['completed', 'repaired', 'fenced', 'unsupported']) {
    t.equal(readCompleted(Buffer.from(word)), word);
  }
  for (const word of ['released', 'kept', 'unsupported']) t.equal(readReleased(Buffer.from(word)), word);
  for (const word of ['unknown', 'kept', 'unsupported']) t.equal(readMarked(Buffer.from(word)), word);
  for (const word of ['resolved', 'absent', 'not_in_doubt', 'unsupported']) {
    t.equal(readResolved(Buffer.from(word)), word);
  }
  for (const read of [readCompleted, readReleased, readMarked, readResolved]) {
    for (const reply of [Buffer.from('other'), '', null, 1, []]) t.throws(() => read(reply));
  }
  t.end();
});

t.test('a shown record', (t) => {
  t.equal(readShown(bytes('1800000000000')), null);
  const parts = [
    '1800000000000',
    '1',
    'completed',
    'f',
    'mine',
    '7',
    '1799999999000',
    '1800000009000',
    '200',
    '[]',
    'body',
    '1',
    'create-order',
    '5000',
  ];
  t.same(readShown(bytes(...parts)), {
    nowMs: 1_800_000_000_000,
    record: {
      version: 1,
      state: 'completed',
      fingerprint: 'f',
      route: 'create-order',
      owner: 'mine',
      fence: 7,
      takenOver: true,
      createdAtMs: 1_799_999_999_000,
      leaseEndsAtMs: 1_800_000_009_000,
      response: { status: 200, headers: [], body: Buffer.from('body') },
      expiresAtMs: 1_800_000_005_000,
    },
  });
  const pending = bytes(...parts.slice(0, 2), 'pending', ...parts.slice(3, 8), null, null, null, null, null, '5000');
  t.match(readShown(pending), { record: { state: 'pending', route: null, takenOver: false, response: null } });
  for (const state of ['pending', 'completed', 'tombstone', 'unknown']) {
    t.equal(readShown(bytes(...parts.slice(0, 2), state, ...parts.slice(3)))?.record.state, state);
  }
  t.throws(() => readShown(bytes(...parts.slice(0, 2), 'done', ...parts.slice(3))), 'an unknown state');
  for (const reply of [null, [], bytes('now')]) t.throws(() => readShown(reply));
  t.end();
});
