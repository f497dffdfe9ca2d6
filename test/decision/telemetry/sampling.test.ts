import t from 'tap';
import {
  sample,
  type SampledRequest,
  type SamplingRules,
  type Sampling,
} from '../../../src/decision/telemetry/sampling.js';

const low = `${'a'.repeat(19)}${'0'.repeat(13)}`;
const half = `${'a'.repeat(19)}8${'0'.repeat(12)}`;
const high = 'f'.repeat(32);

interface Row {
  readonly name: string;
  readonly rules?: Partial<SamplingRules>;
  readonly request?: Partial<SampledRequest>;
  readonly expected: Sampling;
}

const rows: readonly Row[] = [
  { name: 'half, at the threshold', request: { traceId: half }, expected: 'chosen' },
  { name: 'half, below', request: { traceId: `${'f'.repeat(19)}7${'f'.repeat(12)}` }, expected: 'not_sampled' },
  { name: 'none of them', rules: { ratio: 0 }, request: { traceId: high }, expected: 'not_sampled' },
  { name: 'all of them', rules: { ratio: 1 }, request: { traceId: low }, expected: 'chosen' },
  { name: 'a trusted caller traces', request: { parentIsSampled: true, isTrusted: true }, expected: 'followed' },
  {
    name: 'a trusted caller does not',
    rules: { ratio: 1 },
    request: { parentIsSampled: false, isTrusted: true },
    expected: 'not_sampled',
  },
  {
    name: 'nobody is followed: by the trace id',
    rules: { followsParent: false },
    request: { parentIsSampled: true, isTrusted: true, traceId: high },
    expected: 'chosen',
  },
  {
    name: 'a stranger’s flag',
    request: { parentIsSampled: true, traceId: high, random: 0.5 },
    expected: 'not_sampled',
  },
  { name: 'a stranger by chance', request: { parentIsSampled: false, random: 0.49 }, expected: 'chosen' },
];

for (const { name, rules, request, expected } of rows) {
  t.test(name, (t) => {
    const decided = sample(
      { ratio: 0.5, followsParent: true, ...rules },
      { traceId: low, parentIsSampled: null, isTrusted: false, random: 0.9, ...request },
    );
    t.equal(decided, expected);
    t.end();
  });
}
