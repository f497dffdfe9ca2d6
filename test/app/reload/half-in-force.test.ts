import t from 'tap';
import { neverOpened } from '../../../src/app/reload/restart-needed.js';
import { validateConfig } from '../../../src/config/load/validate-config.js';
import type { CompiledConfig } from '../../../src/config/types.js';
import { refuse } from '../../../src/lib/result.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';

function compile(config: ConfigTree): CompiledConfig {
  const { config: compiled, problems } = validateConfig(baseConfig(config), {
    file: 'x',
    folder: '/',
    env: {},
    readFile: () => refuse('none'),
  });
  if (compiled === null) throw new Error(JSON.stringify(problems));
  return compiled;
}

interface Row {
  readonly name: string;
  readonly opened?: ConfigTree;
  readonly wanted: ConfigTree;
  /** `null` where it can be put in force. */
  readonly expected: RegExp | null;
}

const memory: ConfigTree = { store: { memory: {} } };
const dpop = { origins: ['https://orders.example.com'] };
const tls = { cert_file: '/a', key_file: '/b' };
const verifying = { ...tls, client_ca_file: '/c' };
const read = { name: 'read', methods: ['GET'], path: '/read', subjects: ['checkout'], permissions: [] };
const shown = { ...read, client_certificates: ['CN=checkout'] };
const place = { ...read, name: 'place', methods: ['POST'], path: '/place', idempotency: 'required' };
const free = { ...place, idempotency: { mode: 'none', because: 'a test' } };
const health = {
  name: 'health',
  methods: ['POST'],
  path: '/grpc.health.v1.Health/{x}',
  access: 'public',
  idempotency: free.idempotency,
};
const front = { port: 9000, form: 'caddy' };
const accepting = { ...front, accept: ['unreserved'] };

function binding(word: string): ConfigTree {
  return { issuers: { core: { binding: word } } };
}

function settled(timeout: string, grace: string): ConfigTree {
  return {
    store: { redis: { url: 'redis://127.0.0.1:1', settle_timeout: timeout } },
    shutdown: { grace },
  };
}

const rows: readonly Row[] = [
  { name: 'nothing', wanted: {}, expected: null },

  {
    name: 'proofs of keys, and tokens that need one',
    opened: memory,
    wanted: { ...memory, ...binding('require'), listen: { dpop } },
    expected: /^issuers\.core\.binding is require, and listen\.dpop, .* is opened at start only: restart to put/,
  },
  {
    name: 'proofs of keys, where bound tokens counted as any',
    opened: { ...memory, ...binding('none') },
    wanted: { ...memory, ...binding('accept'), listen: { dpop } },
    expected: /^issuers\.core\.binding is accept, and listen\.dpop/,
  },
  { name: 'proofs of keys alone', opened: memory, wanted: { ...memory, listen: { dpop } }, expected: null },
  {
    name: 'proofs of keys that every token lacked',
    opened: { ...memory, ...binding('require') },
    wanted: { ...memory, ...binding('require'), listen: { dpop } },
    expected: null,
  },
  {
    name: 'proofs of keys were taken',
    opened: { ...memory, listen: { dpop } },
    wanted: { ...memory, ...binding('require'), listen: { dpop: { ...dpop, max_age: '10s' } } },
    expected: null,
  },
  {
    name: 'certificates to which tokens are bound',
    opened: { listen: { tls } },
    wanted: { ...binding('require'), listen: { tls: { ...tls, client_auth: 'request' } } },
    expected: /^issuers\.core\.binding is require, and what asks callers for certificates in listen is/,
  },
  {
    name: 'certificates of whom a proxy tells, to which tokens are bound',
    wanted: { ...binding('require'), listen: { client_cert_header: true, trust_forwarded: ['10.0.0.1'] } },
    expected: /^issuers\.core\.binding is require, and what asks/,
  },
  {
    name: 'certificates that were asked for',
    opened: { listen: { tls: { ...tls, client_auth: 'request' } } },
    wanted: { ...binding('require'), listen: { tls: { ...tls, client_auth: 'request' } } },
    expected: null,
  },

  {
    name: 'a route for certificates, and who vouches for them',
    opened: { listen: { tls }, routes: [read] },
    wanted: { listen: { tls: verifying }, routes: [shown] },
    expected: /^route "read" asks for certificates, and what verifies them in listen is opened at start only: restart/,
  },
  {
    name: 'a route for certificates of another authority',
    opened: { listen: { tls: verifying }, routes: [shown] },
    wanted: {
      listen: { tls: { ...verifying, client_ca_file: '/d' } },
      routes: [{ ...shown, client_certificates: ['CN=other'] }],
    },
    expected: /^route "read" asks for certificates/,
  },
  {
    name: 'a route for certificates of whom another proxy tells',
    opened: { listen: { client_cert_header: true, trust_forwarded: ['10.0.0.1'] }, routes: [read] },
    wanted: { listen: { client_cert_header: true, trust_forwarded: ['10.0.0.2'] }, routes: [shown] },
    expected: /^route "read" asks for certificates/,
  },
  {
    name: 'a route for certificates that are verified already',
    opened: { listen: { tls: verifying }, routes: [read] },
    wanted: { listen: { tls: { ...verifying, client_auth: 'optional' } }, routes: [shown] },
    expected: null,
  },
  {
    name: 'another authority alone',
    opened: { listen: { tls: verifying }, routes: [shown] },
    wanted: { listen: { tls: { ...verifying, client_ca_file: '/d' } }, routes: [shown] },
    expected: null,
  },
  {
    name: 'all callers show a certificate, and a route asks for none any more',
    opened: { listen: { tls: { ...verifying, client_auth: 'optional' } }, routes: [shown] },
    wanted: { listen: { tls: verifying }, routes: [read] },
    expected: /^route "read" asks for certificates no more, and listen\.tls, .* is opened at start only: restart/,
  },
  {
    name: 'a route asks for no certificate any more',
    opened: { listen: { tls: verifying }, routes: [shown] },
    wanted: { listen: { tls: verifying }, routes: [read] },
    expected: null,
  },

  {
    name: 'a write that proxies may let through unreserved, and that it reserves',
    opened: { ...memory, decide: front, routes: [free] },
    wanted: { ...memory, decide: accepting, routes: [place] },
    expected: /^route "place" needs unreserved in decide\.accept, which is opened at start only: restart/,
  },
  {
    name: 'the same, of one of several listeners that moves',
    opened: { ...memory, decide: [{ ...front, port: 9001 }, front], routes: [free] },
    wanted: { ...memory, decide: [accepting, { ...front, port: 9001 }], routes: [place] },
    expected: /^route "place" needs unreserved in decide\.accept/,
  },
  {
    name: 'the same, where the listener moves',
    opened: { ...memory, decide: front, routes: [free] },
    wanted: { ...memory, decide: { ...accepting, port: 9001 }, routes: [place] },
    expected: /^route "place" needs unreserved in decide\.accept/,
  },
  {
    name: 'the same of a new route with tokens that pass once',
    opened: { ...memory, decide: front },
    wanted: { ...memory, decide: { ...front, accept: ['reused_tokens'] }, routes: [{ ...read, single_use: true }] },
    expected: /^route "read" needs reused_tokens in decide\.accept/,
  },
  {
    name: 'a route is enforced from now on',
    opened: { ...memory, decide: front, routes: [{ ...place, mode: 'shadow' }] },
    wanted: { ...memory, decide: accepting, routes: [place] },
    expected: /^route "place" needs unreserved in decide\.accept/,
  },
  {
    name: 'the same in shadow mode',
    opened: { ...memory, decide: front, routes: [free] },
    wanted: { ...memory, decide: accepting, routes: [{ ...place, mode: 'shadow' }] },
    expected: null,
  },
  {
    name: 'a write that was refused before, and will not be',
    opened: { ...memory, decide: front, routes: [place] },
    wanted: { ...memory, decide: accepting, routes: [place] },
    expected: null,
  },
  {
    name: 'a write that is refused after a restart as well',
    opened: { ...memory, decide: front, routes: [free] },
    wanted: { ...memory, decide: front, routes: [place] },
    expected: null,
  },
  {
    name: 'a listener comes, another goes',
    opened: { ...memory, decide: [front, { ...front, port: 9001 }], routes: [free] },
    wanted: { ...memory, decide: { ...accepting, port: 9001 }, routes: [free] },
    expected: null,
  },
  {
    name: 'an assertion that a listener does not give yet',
    opened: { decide: front },
    wanted: {
      decide: { ...front, accept: ['assertion'] },
      identity: { assertion: { key_file: '/k', issuer: 'https://s.example', audience: 'a' } },
    },
    expected: /^identity\.assertion needs assertion in decide\.accept, which is opened at start only: restart/,
  },

  {
    name: 'probes that are answered here, and no route for them',
    opened: { routes: [health] },
    wanted: { listen: { http2: true, grpc_health: 'answer' }, routes: [read] },
    expected:
      /^no route takes grpc\.health\.v1\.Health any more, and listen\.grpc_health is opened at start only: restart/,
  },
  {
    name: 'probes that are answered here, and the route as before',
    opened: { routes: [health] },
    wanted: { listen: { http2: true, grpc_health: 'answer' }, routes: [health] },
    expected: null,
  },
  {
    name: 'probes that are answered here, and that nobody let through',
    opened: { routes: [read] },
    wanted: { listen: { http2: true, grpc_health: 'answer' }, routes: [read] },
    expected: null,
  },

  {
    name: 'less time for results, and for a stop',
    opened: settled('10s', '30s'),
    wanted: settled('1s', '4s'),
    expected: /^store\.redis\.settle_timeout, .*, stays 10000ms, more than half of shutdown\.grace: restart/,
  },
  {
    name: 'less time for a stop, and none for results',
    opened: settled('10s', '30s'),
    wanted: { ...memory, shutdown: { grace: '4s' } },
    expected: /^store\.redis\.settle_timeout/,
  },
  {
    name: 'more time for results, and less for a stop',
    opened: settled('1s', '30s'),
    wanted: settled('2s', '4s'),
    expected: null,
  },

  {
    name: 'the upstream is to take the port of the sidecar',
    opened: { listen: { port: 8080 } },
    wanted: { listen: { port: 8081 }, upstream: { url: 'http://127.0.0.1:8080' } },
    expected: /^upstream\.url is where Sallyport itself listens, and its listeners are opened at start only: restart/,
  },
  {
    name: 'the upstream is to take the port of a proxy that asks',
    opened: { decide: front },
    wanted: { upstream: { url: 'http://localhost:9000' } },
    expected: /^upstream\.url is where Sallyport listens for proxies that ask/,
  },
  {
    name: 'the upstream moves',
    opened: { listen: { port: 8080 } },
    wanted: { listen: { port: 8081 }, upstream: { url: 'http://127.0.0.1:8082' } },
    expected: null,
  },
];

t.test('half of an edit is not put in force where it refuses callers, or guards less', (t) => {
  for (const { name, opened = {}, wanted, expected } of rows) {
    const found = neverOpened(compile(opened), compile(wanted));
    if (expected === null) t.equal(found, null, name);
    else t.match(found ?? 'nothing', expected, name);
  }
  t.end();
});
