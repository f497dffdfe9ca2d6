import t from 'tap';
import { loadComplete, type CompleteConfig } from '../../../src/app/config/load-complete.js';
import { fixedSource } from '../../../src/app/config/config-source.js';
import { halfInForce } from '../../../src/app/reload/half-in-force.js';
import { createReloader, type Reloader } from '../../../src/app/reload/reload.js';
import { localFiles } from '../../../src/adapters/files/files.js';
import { systemClock } from '../../../src/adapters/system/clock.js';
import { validateConfig } from '../../../src/config/load/validate-config.js';
import type { CompiledConfig } from '../../../src/config/types.js';
import { accept, refuse } from '../../../src/lib/result.js';
import { silentLog } from '../../../src/ports/system.js';
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

type ReloadError = ReturnType<Reloader['state']>['lastError'];

const memory: ConfigTree = { store: { memory: {} } };
const dpop = { origins: ['https://orders.example.com'] };
const tls = { cert_file: '/a', key_file: '/b' };
const verifying = { ...tls, client_ca_file: '/c' };
const asking = { ...tls, client_auth: 'request' };
const read = { name: 'read', methods: ['GET'], path: '/read', subjects: ['checkout'], permissions: [] };
const shown = { ...read, client_certificates: ['CN=checkout'] };
const place = { ...read, name: 'place', methods: ['POST'], path: '/place', idempotency: 'required' };
const free = { ...place, idempotency: { mode: 'none', because: 'a test' } };
const shadow = { mode: 'shadow' };
const front = { port: 9000, form: 'caddy' };
const accepting = { ...front, accept: ['unreserved'] };
const revoked = { subjects: ['mallory'] };

function binding(word: string): ConfigTree {
  return { issuers: { core: { binding: word } }, routes: [read] };
}

/** Another issuer beside the one that every config has. */
function another(word: string): ConfigTree {
  const issuer = { issuer: 'https://b.example', audience: 'orders', source: 's', token_type: 't' };
  return { issuers: { other: { ...issuer, jwks_url: 'http://127.0.0.1:2', binding: word } } };
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
    opened: { ...memory, ...binding('accept') },
    wanted: { ...memory, ...binding('require'), listen: { dpop } },
    expected:
      /^issuers\.core\.binding is require, and what takes proofs in listen is opened at start only: restart to put/,
  },
  {
    name: 'proofs of keys, where bound tokens counted as any',
    opened: { ...memory, ...binding('none') },
    wanted: { ...memory, ...binding('accept'), listen: { dpop } },
    expected: /^issuers\.core\.binding is accept/,
  },
  {
    name: 'proofs for another origin',
    opened: { ...memory, ...binding('accept'), listen: { dpop } },
    wanted: {
      ...memory,
      ...binding('require'),
      listen: { dpop: { origins: [...dpop.origins, 'https://b.example'] } },
    },
    expected: /^issuers\.core\.binding is require/,
  },
  {
    name: 'proofs of keys alone, and a revocation',
    opened: { ...memory, ...binding('accept') },
    wanted: { ...memory, ...binding('accept'), listen: { dpop }, revoked },
    expected: null,
  },
  {
    name: 'proofs of keys that every token lacked',
    opened: { ...memory, ...binding('require') },
    wanted: { ...memory, ...binding('require'), listen: { dpop } },
    expected: null,
  },
  {
    name: 'proofs of keys were taken',
    opened: { ...memory, ...binding('accept'), listen: { dpop } },
    wanted: { ...memory, ...binding('require'), listen: { dpop: { ...dpop, max_age: '10s' } } },
    expected: null,
  },
  {
    name: 'proofs of keys for an issuer that comes with them',
    opened: { ...memory, routes: [read] },
    wanted: { ...memory, ...another('require'), routes: [read], listen: { dpop } },
    expected: null,
  },
  {
    name: 'proofs of keys, where routes take other issuers only',
    opened: { ...memory, ...another('accept'), routes: [{ ...read, issuers: ['core'] }] },
    wanted: { ...memory, ...another('require'), routes: [{ ...read, issuers: ['core'] }], listen: { dpop } },
    expected: null,
  },
  {
    name: 'proofs of keys in shadow mode',
    opened: { ...memory, ...binding('accept'), ...shadow },
    wanted: { ...memory, ...binding('require'), ...shadow, listen: { dpop } },
    expected: null,
  },
  {
    name: 'proofs of keys that shadow mode did without',
    opened: { ...memory, ...binding('require'), ...shadow },
    wanted: { ...memory, ...binding('require'), listen: { dpop } },
    expected: /^issuers\.core\.binding is require/,
  },
  {
    name: 'proofs of keys beside certificates that are asked for',
    opened: { ...memory, ...binding('accept'), listen: { tls: asking } },
    wanted: { ...memory, ...binding('require'), listen: { tls: asking, dpop } },
    expected: null,
  },
  {
    name: 'proofs of keys in the place of certificates',
    opened: { ...memory, ...binding('accept'), listen: { tls: asking } },
    wanted: { ...memory, ...binding('require'), listen: { tls, dpop } },
    expected: /^issuers\.core\.binding is require/,
  },
  {
    name: 'certificates to which tokens are bound',
    opened: { ...binding('accept'), listen: { tls } },
    wanted: { ...binding('require'), listen: { tls: asking } },
    expected: /^issuers\.core\.binding is require/,
  },
  {
    name: 'certificates that were asked for',
    opened: { ...binding('accept'), listen: { tls: verifying } },
    wanted: { ...binding('require'), listen: { tls: asking } },
    expected: null,
  },

  {
    name: 'a route for certificates, and who vouches for them',
    opened: { listen: { tls }, routes: [read] },
    wanted: { listen: { tls: verifying }, routes: [shown] },
    expected: /^route "read" asks for certificates, and what verifies them in listen is opened at start only: restart/,
  },
  {
    name: 'the same, where they are asked for and nobody vouches for them',
    opened: { listen: { tls: asking }, routes: [read] },
    wanted: { listen: { tls: verifying }, routes: [shown] },
    expected: /^route "read" asks for certificates/,
  },
  {
    name: 'a route for certificates of whom a proxy tells',
    opened: { routes: [read] },
    wanted: { listen: { client_cert_header: true, trust_forwarded: ['10.0.0.1'] }, routes: [shown] },
    expected: /^route "read" asks for certificates/,
  },
  {
    name: 'a route for certificates in shadow mode',
    opened: { listen: { tls }, routes: [read] },
    wanted: { listen: { tls: verifying }, routes: [{ ...shown, ...shadow }] },
    expected: null,
  },
  {
    name: 'a name less, and another authority',
    opened: { listen: { tls: verifying }, routes: [{ ...shown, client_certificates: ['CN=checkout', 'CN=other'] }] },
    wanted: { listen: { tls: { ...verifying, client_ca_file: '/d' } }, routes: [shown] },
    expected: null,
  },
  {
    name: 'another authority alone, and a revocation',
    opened: { listen: { tls: verifying }, routes: [shown] },
    wanted: { listen: { tls: { ...verifying, client_ca_file: '/d' } }, routes: [shown], revoked },
    expected: null,
  },

  {
    name: 'a write that proxies may let through unreserved, and that it reserves',
    opened: { ...memory, decide: front, routes: [free] },
    wanted: { ...memory, decide: accepting, routes: [place] },
    expected: /^route "place" needs unreserved in decide\.accept, which is opened at start only: restart/,
  },
  {
    name: 'the same, of one of several listeners that changes its place in the list',
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
    name: 'a listener goes, and the next one accepts as before',
    opened: { ...memory, decide: [front, { ...accepting, port: 9001 }], routes: [free] },
    wanted: { ...memory, decide: { ...accepting, port: 9001 }, routes: [place] },
    expected: null,
  },
  {
    name: 'a listener comes that accepts it',
    opened: { ...memory, decide: front, routes: [free] },
    wanted: { ...memory, decide: [{ ...accepting, port: 9001 }, front], routes: [place] },
    expected: null,
  },
  {
    name: 'the same of a new route with tokens that pass once',
    opened: { ...memory, decide: front },
    wanted: { ...memory, decide: { ...front, accept: ['reused_tokens'] }, routes: [{ ...read, single_use: true }] },
    expected: /^route "read" needs reused_tokens in decide\.accept/,
  },
  {
    name: 'a route is enforced from now on',
    opened: { ...memory, decide: front, routes: [{ ...place, ...shadow }] },
    wanted: { ...memory, decide: accepting, routes: [place] },
    expected: /^route "place" needs unreserved in decide\.accept/,
  },
  {
    name: 'the same in shadow mode',
    opened: { ...memory, decide: front, routes: [free] },
    wanted: { ...memory, decide: accepting, routes: [{ ...place, ...shadow }] },
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
    name: 'WebSockets, which were refused as well',
    opened: { decide: front, routes: [read] },
    wanted: {
      decide: { ...front, accept: ['connections'] },
      routes: [{ ...read, websocket: true }],
    },
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
];

t.test('half of an edit is not put in force where it refuses callers', (t) => {
  for (const { name, opened = {}, wanted, expected } of rows) {
    const found = halfInForce(compile(opened), compile(wanted));
    if (expected === null) t.equal(found, null, name);
    else t.match(found ?? 'nothing', expected, name);
  }
  t.end();
});

interface Step {
  readonly config: ConfigTree;
  readonly isTaken: boolean;
}

const sequences: readonly { readonly name: string; readonly steps: readonly [ConfigTree, ...Step[]] }[] = [
  {
    name: 'what is refused in force already keeps no edit out',
    steps: [
      { decide: front, routes: [free] },
      { config: { decide: front, routes: [place] }, isTaken: true },
      { config: { decide: accepting, routes: [place] }, isTaken: true },
      { config: { decide: accepting, routes: [place], revoked }, isTaken: true },
    ],
  },
  {
    name: 'a write that was reserved at the start, and not meanwhile',
    steps: [
      { decide: front, routes: [place] },
      { config: { decide: front, routes: [free] }, isTaken: true },
      { config: { decide: accepting, routes: [place] }, isTaken: false },
      { config: { decide: accepting, routes: [free], revoked }, isTaken: true },
      { config: { decide: accepting, routes: [place], revoked }, isTaken: false },
    ],
  },
  {
    name: 'tokens that had to be bound at the start, and not meanwhile',
    steps: [
      binding('require'),
      { config: binding('accept'), isTaken: true },
      { config: { ...binding('require'), listen: { dpop } }, isTaken: false },
      { config: { ...binding('accept'), listen: { dpop } }, isTaken: true },
      { config: { ...binding('require'), listen: { dpop } }, isTaken: false },
      { config: binding('require'), isTaken: true },
      { config: { ...binding('require'), listen: { dpop } }, isTaken: true },
    ],
  },
];

t.test('an edit is compared with what is in force, not with the start', async (t) => {
  for (const { name, steps } of sequences) {
    const [first, ...edits] = steps;
    const reload = await reloading(first);
    for (const [index, { config, isTaken }] of edits.entries()) {
      const error = await reload(config);
      t.equal(error === null, isTaken, `${name}: edit ${String(index + 1)}: ${JSON.stringify(error)}`);
    }
  }
});

/** Starts with a config, and says why a further one is not taken; `null` where it is. */
async function reloading(first: ConfigTree): Promise<(config: ConfigTree) => Promise<ReloadError>> {
  let tree = first;
  const source = fixedSource(() => Promise.resolve(accept(baseConfig({ ...memory, ...tree }))), {
    name: 'x',
    folder: '/',
  });
  const loaded = await loadComplete(source, { env: {} }, localFiles);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.error.messages));
  let inForce = loaded.value.config;
  const none = (): void => undefined;
  const activator = {
    activeConfig: () => ({ config: inForce }),
    replace: (_: CompleteConfig, config: CompiledConfig) => {
      inForce = config;
      return Promise.resolve();
    },
  };
  const reloader = createReloader(loaded.value, activator, {
    assertions: { use: none },
    source,
    reading: { env: {} },
    files: localFiles,
    clock: systemClock,
    log: silentLog,
    metrics: { configReload: none },
    watchIntervalMs: undefined,
    onReplaced: none,
    useLog: none,
  });
  reloader.start();
  return async (config) => {
    tree = config;
    await reloader.reload();
    return reloader.state().lastError;
  };
}
