/** The measurement of the goals still runs, against HAProxy where it is there, and its table says what is met. */
import t from 'tap';
import { versionOf } from './child.js';
import { goalTable, measureGoals } from './goals.js';

t.setTimeout(120_000);

t.test('loads, handshakes, starts and memory are measured', async (t) => {
  const hasHaproxy = versionOf('haproxy', '-v') !== null;
  const measured = await measureGoals(
    t,
    { seconds: 1, rounds: 1, starts: 1, connections: 2, tokens: 4, wrk: false, nodes: [process.execPath] },
    hasHaproxy ? ['plain', 'fullRsa', 'resumed'] : [],
  );
  t.ok(measured.every(({ value, version }) => value > 0 && `v${version}` === process.version));
  t.same(
    measured.map(({ what }) => what),
    [
      ...(hasHaproxy
        ? [
            'authorized GET, tokens in turn',
            'memory under load, most of all looks',
            'connection and handshake, RSA 2048',
            'connection and resumed handshake',
          ]
        : []),
      'start to ready',
      'memory at rest',
    ],
  );
});

t.test('the table says what is met, and by how much', async (t) => {
  const version = '24.0.0';
  t.match(
    goalTable([
      { what: 'memory at rest', version, value: 84, unit: 'MiB', goal: 70 },
      { what: 'connection and resumed handshake', version, value: 1.234, unit: '× HAProxy with TLS', goal: null },
      { what: 'authorized GET, tokens in turn', version, value: 0.585, unit: '× HAProxy', goal: 0.65 },
    ]),
    `| authorized GET, tokens in turn | 24.0.0 | × HAProxy | 0.58 | ≤ 0.65 | met, 10 % under |
| connection and resumed handshake | 24.0.0 | × HAProxy with TLS | 1.23 |  |  |
| memory at rest | 24.0.0 | MiB | 84 | ≤ 70 | no, 20 % over |`,
  );
});
