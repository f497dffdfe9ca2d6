import t from 'tap';
import { endOfLifeNotice } from '../../src/cli/node-eol.js';

const cases: readonly { name: string; node: string; at: string; expected: RegExp | null }[] = [
  { name: 'the last day of a line', node: '20.20.2', at: '2026-04-30T12:00:00Z', expected: null },
  {
    name: 'the day after',
    node: '20.20.2',
    at: '2026-05-01T00:00:00Z',
    expected:
      /^Node\.js 20 has had no security fixes since 2026-04-30; use Node\.js 24, or set SALLYPORT_NODE_EOL_WARNING=off$/,
  },
  { name: 'a line that is looked after', node: '24.1.0', at: '2026-05-01T00:00:00Z', expected: null },
  { name: 'a line to come', node: '26.0.0', at: '2030-01-01T00:00:00Z', expected: null },
];

for (const { name, node, at, expected } of cases) {
  t.test(name, (t) => {
    const notice = endOfLifeNotice(node, Date.parse(at), {});
    t.equal(
      endOfLifeNotice(node, Date.parse(at), { SALLYPORT_NODE_EOL_WARNING: 'off' }),
      null,
      'nothing for who knows',
    );
    t.equal(
      endOfLifeNotice(node, Date.parse(at), { SALLYPORT_NODE_EOL_WARNING: 'on' }),
      notice,
      'no other value counts',
    );
    if (expected === null) t.equal(notice, null);
    else t.match(notice, expected);
    t.end();
  });
}
