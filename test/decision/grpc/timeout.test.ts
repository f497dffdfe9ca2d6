import t from 'tap';
import { longestGrpcTimeoutMs, readGrpcTimeout } from '../../../src/decision/grpc/timeout.js';

const rows: readonly (readonly [readonly string[], number | null | 'refused'])[] = [
  [[], null],
  [['1H'], 3_600_000],
  [['2M'], 120_000],
  [['3S'], 3_000],
  [['100m'], 100],
  [['1500u'], 2],
  [['1n'], 1],
  [['0S'], 0],
  [['00000010m'], 10],
  [['99999999m'], longestGrpcTimeoutMs],
  [['24H'], longestGrpcTimeoutMs],
  [['99999999H'], longestGrpcTimeoutMs],
  [['86399999m'], longestGrpcTimeoutMs - 1],
  [['100000000n'], 'refused'],
  [['S'], 'refused'],
  [[''], 'refused'],
  [['1'], 'refused'],
  [['1s'], 'refused'],
  [['1h'], 'refused'],
  [['-1S'], 'refused'],
  [['+1S'], 'refused'],
  [['1.5S'], 'refused'],
  [['1 S'], 'refused'],
  [[' 1S'], 'refused'],
  [['1S '], 'refused'],
  [['1SS'], 'refused'],
  [['١S'], 'refused'],
  [['1S, 2S'], 'refused'],
  [['1S', '1S'], 'refused'],
];

for (const [values, expected] of rows) {
  t.test(`grpc-timeout ${JSON.stringify(values)}`, (t) => {
    const read = readGrpcTimeout(values);
    if (expected === 'refused') t.same(read, { ok: false, error: { reason: 'field_malformed' } });
    else t.same(read, { ok: true, value: expected });
    t.end();
  });
}
