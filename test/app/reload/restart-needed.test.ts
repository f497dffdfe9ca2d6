import t from 'tap';
import { restartNeeded, withOpened } from '../../../src/app/reload/restart-needed.js';
import { compiled } from '../../proxy/harness.js';
import type { ConfigTree } from '../../support/proxy-process.js';

const tls = { cert_file: '/a', key_file: '/b', client_ca_file: '/c' };

const sentinel = { name: 'main', nodes: ['127.0.0.1:1'] };

function redis(settings: ConfigTree = {}): ConfigTree {
  return { store: { redis: { url: 'redis://127.0.0.1:1', ...settings } } };
}

const rows: readonly { name: string; opened?: ConfigTree; wanted: ConfigTree; keys: readonly string[] }[] = [
  { name: 'nothing', wanted: {}, keys: [] },
  {
    name: 'what is reloaded',
    wanted: { upstream: { url: 'http://127.0.0.1:1' }, shutdown: { delay: '1s' }, log: { level: 'warn' } },
    keys: [],
  },
  { name: 'the address', wanted: { listen: { host: '127.0.0.2', port: 1 } }, keys: ['listen.host', 'listen.port'] },
  {
    name: 'TLS',
    wanted: { listen: { tls } },
    keys: ['listen.tls.cert_file', 'listen.tls.key_file', 'listen.tls.client_ca_file', 'listen.tls.client_auth'],
  },
  {
    name: 'another certificate file',
    opened: { listen: { tls } },
    wanted: { listen: { tls: { ...tls, cert_file: '/d' } } },
    keys: ['listen.tls.cert_file'],
  },
  {
    name: 'no TLS any more',
    opened: { listen: { tls: { cert_file: '/a', key_file: '/b' } } },
    wanted: {},
    keys: ['listen.tls.cert_file', 'listen.tls.key_file'],
  },
  { name: 'who ends TLS', wanted: { listen: { tls_terminated_by: 'istio' } }, keys: ['listen.tls_terminated_by'] },
  {
    name: 'trusted addresses',
    wanted: { listen: { trust_forwarded: ['10.0.0.0/8'] } },
    keys: ['listen.trust_forwarded'],
  },
  {
    name: 'limits',
    wanted: {
      listen: {
        max_header_bytes: '8KiB',
        max_target: '4KiB',
        header_timeout: '1s',
        body_idle_timeout: '1s',
        body_min_rate: 0,
        max_in_flight: 1,
      },
    },
    keys: [
      'listen.max_header_bytes',
      'listen.max_target',
      'listen.header_timeout',
      'listen.body_idle_timeout',
      'listen.body_min_rate',
      'listen.max_in_flight',
    ],
  },
  {
    name: 'how long idle connections are kept',
    wanted: { listen: { keep_alive_timeout: '620s' } },
    keys: ['listen.keep_alive_timeout'],
  },
  {
    name: 'WebSockets',
    wanted: { listen: { max_websockets: 1, websocket_idle_timeout: '1s' } },
    keys: ['listen.max_websockets', 'listen.websocket_idle_timeout'],
  },
  {
    name: 'how fields are read',
    wanted: { listen: { underscore_fields: 'allow', http_1_0: 'allow' } },
    keys: ['listen.underscore_fields', 'listen.http_1_0'],
  },
  { name: 'admin', wanted: { admin: { host: '127.0.0.2', port: 1 } }, keys: ['admin.host', 'admin.port'] },
  { name: 'probes', wanted: { probes: { host: '127.0.0.1', port: 1 } }, keys: ['probes.host', 'probes.port'] },
  {
    name: 'probes of the receiver',
    opened: { probes: { app: { live: '/a' } } },
    wanted: { probes: { app: { live: '/b' } } },
    keys: ['probes.app'],
  },
  {
    name: 'the same probes of the receiver',
    opened: { probes: { app: { a: '/a', b: '/b' } } },
    wanted: { probes: { app: { b: '/b', a: '/a' } } },
    keys: [],
  },
  { name: 'a store', wanted: redis(), keys: ['store'] },
  { name: 'no store any more', opened: redis(), wanted: {}, keys: ['store'] },
  { name: 'another kind of store', opened: { store: { memory: {} } }, wanted: redis(), keys: ['store'] },
  { name: 'memory as before', opened: { store: { memory: {} } }, wanted: { store: { memory: {} } }, keys: [] },
  { name: 'Redis as before', opened: redis(), wanted: redis({ url: 'redis://127.0.0.1:1/0' }), keys: [] },
  {
    name: 'another database',
    opened: redis(),
    wanted: redis({ url: 'redis://127.0.0.1:1/1' }),
    keys: ['store.redis.url'],
  },
  {
    name: 'TLS towards Redis',
    opened: redis(),
    wanted: redis({ url: 'rediss://127.0.0.1:1' }),
    keys: ['store.redis.url'],
  },
  {
    name: 'authorities of Redis',
    opened: redis({ url: 'rediss://127.0.0.1:1' }),
    wanted: redis({ url: 'rediss://127.0.0.1:1', tls: { ca_file: '/ca' } }),
    keys: ['store.redis.tls'],
  },
  {
    name: 'Sentinel',
    opened: redis(),
    wanted: redis({ url: null, sentinel }),
    keys: ['store.redis.url', 'store.redis.sentinel'],
  },
  {
    name: 'a Cluster',
    opened: redis({ url: null, sentinel }),
    wanted: redis({ url: null, cluster: { nodes: ['127.0.0.1:1'] } }),
    keys: ['store.redis.sentinel', 'store.redis.cluster'],
  },
  {
    name: 'everything else of Redis',
    opened: redis(),
    wanted: redis({
      username: 'a',
      password_file: '/p',
      prefix: 'x',
      replicas: 1,
      reserve_timeout: '1s',
      settle_timeout: '2s',
      start_without_revocations: true,
      kept_per_caller: '1GiB',
      durability: 'unverified',
    }),
    keys: [
      'username',
      'password_file',
      'prefix',
      'replicas',
      'reserve_timeout',
      'settle_timeout',
      'start_without_revocations',
      'kept_per_caller',
      'durability',
    ].map((key) => `store.redis.${key}`),
  },
  {
    name: 'no probes any more',
    opened: { probes: { host: '127.0.0.1', port: 1 } },
    wanted: {},
    keys: ['probes.host', 'probes.port'],
  },
];

for (const { name, opened = {}, wanted, keys } of rows) {
  t.test(`a restart is needed for ${name === 'nothing' ? 'no change' : name}: ${String(keys.length > 0)}`, (t) => {
    const before = compiled(opened);
    const after = compiled(wanted);
    t.same(restartNeeded(before, after), keys);
    const activeConfig = withOpened(after, before);
    t.same(restartNeeded(before, activeConfig), [], 'what comes into force has what is open');
    const open = { listen: null, admin: null, probes: null, store: null, table: null };
    t.same({ ...activeConfig, ...open }, { ...after, ...open }, 'and else what is new');
    t.end();
  });
}
