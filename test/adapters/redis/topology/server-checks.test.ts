import t from 'tap';
import {
  identityOf,
  parseInfo,
  takesSettlements,
  unfitnessOf,
  wordsOf,
  type FitnessNeeds,
  type ServerFacts,
} from '../../../../src/adapters/redis/topology/server-checks.js';

const fit: ServerFacts = {
  runId: 'run',
  replicationId: 'history',
  majorVersion: 7,
  version: '7.0.15',
  role: 'master',
  evictionPolicy: 'noeviction',
  maxMemory: 0,
  appendOnly: true,
  connectedReplicas: 0,
  loading: false,
  clustered: false,
};
const needs: FitnessNeeds = { replicas: 0, durability: 'verified', clustered: false };

const cases: readonly {
  name: string;
  facts?: Partial<ServerFacts>;
  needs?: Partial<FitnessNeeds>;
  expected: readonly [boolean, RegExp, RegExp][];
}[] = [
  { name: 'a fit server', expected: [] },
  { name: 'the oldest version', facts: { version: '6.2.0' }, expected: [] },
  {
    name: 'the first version that is too old',
    facts: { version: '6.1.9' },
    expected: [[true, /version 6\.1/, /6\.2 or newer, or Valkey/]],
  },
  { name: 'an old major version', facts: { version: '5.9.0' }, expected: [[true, /version 5\.9/, /6\.2/]] },
  { name: 'a much newer version', facts: { version: '10.0.0' }, expected: [] },
  { name: 'no version', facts: { version: null }, expected: [[true, /does not say its version/, /allow INFO/]] },
  {
    name: 'no version that can be read',
    facts: { version: 'seven' },
    expected: [[true, /does not say its version/, /allow INFO/]],
  },
  {
    name: 'a version with something before it',
    facts: { version: 'v7.0.15' },
    expected: [[true, /does not say its version/, /allow INFO/]],
  },
  {
    name: 'a replica',
    facts: { role: 'slave' },
    expected: [[false, /a slave, not a primary/, /point store\.redis at the primary/]],
  },
  {
    name: "a replica without persistence: nobody's problem",
    facts: { role: 'slave', appendOnly: false },
    expected: [[false, /not a primary/, /primary/]],
  },
  { name: 'no role', facts: { role: null }, expected: [[false, /unknown role/, /primary/]] },
  { name: 'loading', facts: { loading: true }, expected: [[false, /loading/, /wait/]] },
  {
    name: 'part of a Cluster, by surprise',
    facts: { clustered: true },
    expected: [[true, /part of a Redis Cluster/, /store\.redis\.cluster/]],
  },
  { name: 'part of a Cluster', facts: { clustered: true }, needs: { clustered: true }, expected: [] },
  { name: 'as many replicas as needed', facts: { connectedReplicas: 2 }, needs: { replicas: 2 }, expected: [] },
  {
    name: 'one replica too few',
    facts: { connectedReplicas: 1 },
    needs: { replicas: 2 },
    expected: [[false, /replicas connected: 1; .* asks for 2/, /connect more replicas/]],
  },
  {
    name: 'replicas untold',
    facts: { connectedReplicas: null },
    needs: { replicas: 1 },
    expected: [[false, /unknown/, /connect more/]],
  },
  {
    name: 'it evicts',
    facts: { evictionPolicy: 'volatile-lru' },
    expected: [[true, /maxmemory-policy is volatile-lru/, /set maxmemory-policy noeviction/]],
  },
  {
    name: 'it evicts, unverified',
    facts: { evictionPolicy: 'allkeys-lru' },
    needs: { durability: 'unverified' },
    expected: [[true, /allkeys-lru/, /noeviction/]],
  },
  {
    name: 'it evicts, and that is written down',
    facts: { evictionPolicy: 'volatile-lru' },
    needs: { durability: 'none' },
    expected: [],
  },
  {
    name: 'no append-only file',
    facts: { appendOnly: false },
    expected: [[true, /no append-only file and no replica/, /set appendonly yes/]],
  },
  {
    name: 'no append-only file, replicas untold',
    facts: { appendOnly: false, connectedReplicas: null },
    expected: [[true, /no append-only/, /appendonly/]],
  },
  { name: 'no append-only file, but a replica', facts: { appendOnly: false, connectedReplicas: 1 }, expected: [] },
  {
    name: 'no append-only file, and that is written down',
    facts: { appendOnly: false },
    needs: { durability: 'none' },
    expected: [],
  },
  {
    name: 'no append-only file, unverified',
    facts: { appendOnly: false },
    needs: { durability: 'unverified' },
    expected: [[true, /no append-only/, /appendonly/]],
  },
  {
    name: 'policy untold',
    facts: { evictionPolicy: null },
    expected: [[true, /does not tell maxmemory_policy/, /durability: unverified/]],
  },
  {
    name: 'policy untold, unverified',
    facts: { evictionPolicy: null },
    needs: { durability: 'unverified' },
    expected: [],
  },
  {
    name: 'append-only file untold',
    facts: { appendOnly: null },
    expected: [[true, /does not tell aof_enabled/, /durability: unverified/]],
  },
  {
    name: 'append-only file untold, unverified',
    facts: { appendOnly: null },
    needs: { durability: 'unverified' },
    expected: [],
  },
  {
    name: 'append-only file and replicas untold',
    facts: { appendOnly: null, connectedReplicas: null },
    expected: [[true, /does not tell aof/, /durab/]],
  },
  { name: 'append-only file untold, but a replica', facts: { appendOnly: null, connectedReplicas: 1 }, expected: [] },
  {
    name: 'several at once',
    facts: { evictionPolicy: 'allkeys-random', appendOnly: false },
    needs: { replicas: 1 },
    expected: [
      [false, /replicas connected: 0/, /connect/],
      [true, /allkeys-random/, /noeviction/],
      [true, /no append-only/, /appendonly/],
    ],
  },
];

t.test('what makes a server unfit, whether that lasts, and how to mend it', (t) => {
  for (const { name, facts, needs: needed, expected } of cases) {
    const found = unfitnessOf({ ...fit, ...facts }, { ...needs, ...needed });
    t.equal(found.length, expected.length, name);
    for (const [index, [lasting, problem, fix]] of expected.entries()) {
      t.match(found[index], { lasting, problem, fix }, name);
    }
  }
  t.end();
});

t.test('INFO is read as servers write it', (t) => {
  const info = [
    '# Server',
    'redis_version:7.0.15',
    'run_id:0123',
    '',
    '# Persistence',
    'loading:0',
    'aof_enabled:1',
    '# Replication',
    'role:master',
    'connected_slaves:3',
    'slave0:ip=10.0.0.1,port=6379,state=online,offset=1,lag=0',
    'slave1:ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0',
    'slave2:ip=10.0.0.3,port=6379,state=online,offset=1,lag=1',
    'master_replid:abcd',
    '# Memory',
    'maxmemory:67108864',
    'maxmemory_policy:noeviction',
    '# Cluster',
    'cluster_enabled:1',
  ].join('\r\n');
  t.same(parseInfo(info), {
    runId: '0123',
    replicationId: 'abcd',
    majorVersion: 7,
    version: '7.0.15',
    role: 'master',
    evictionPolicy: 'noeviction',
    maxMemory: 67_108_864,
    appendOnly: true,
    connectedReplicas: 2,
    loading: false,
    clustered: true,
  });
  t.same(parseInfo(''), {
    runId: null,
    replicationId: null,
    majorVersion: null,
    version: null,
    role: null,
    evictionPolicy: null,
    maxMemory: null,
    appendOnly: null,
    connectedReplicas: null,
    loading: false,
    clustered: false,
  });
  t.match(parseInfo('connected_slaves:2\r\naof_enabled:0\r\nloading:1'), {
    connectedReplicas: 2,
    appendOnly: false,
    loading: true,
  });
  for (const text of ['many', '2x', 'x2', '']) {
    t.match(parseInfo(`connected_slaves:${text}`), { connectedReplicas: null }, text);
  }
  t.match(
    parseInfo('slave0_lag:state=online\r\nold_slave0:state=online\r\nconnected_slaves:0'),
    { connectedReplicas: 0 },
    'no replicas are listed',
  );
  t.end();
});

t.test('settlements go to any primary that has its data', (t) => {
  t.equal(takesSettlements({ ...fit, evictionPolicy: 'volatile-lru', connectedReplicas: 0 }), true);
  t.equal(takesSettlements({ ...fit, role: 'slave' }), false);
  t.equal(takesSettlements({ ...fit, loading: true }), false);
  t.end();
});

t.test('another run or another history is another server', (t) => {
  t.equal(identityOf(fit), identityOf({ ...fit, connectedReplicas: 9 }));
  t.equal(identityOf({ ...fit, runId: null, replicationId: null }), '/', 'what it does not say is empty');
  t.not(identityOf(fit), identityOf({ ...fit, runId: 'other' }));
  t.not(identityOf(fit), identityOf({ ...fit, replicationId: 'other' }));
  t.equal(
    wordsOf([
      { lasting: true, problem: 'a', fix: 'b' },
      { lasting: false, problem: 'c', fix: 'd' },
    ]),
    'a; b; c; d',
  );
  t.end();
});
