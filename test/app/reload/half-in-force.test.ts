import t from 'tap';
import { halfInForce } from '../../../src/app/reload/half-in-force.js';
import { compiled } from '../../proxy/harness.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import {
  memory,
  dpop,
  tls,
  verifying,
  asking,
  told,
  read,
  everybodys,
  shown,
  wide,
  one,
  two,
  deeper,
  far,
  place,
  free,
  shadow,
  front,
  accepting,
  revoked,
  binding,
  another,
  both,
  settled,
  application,
} from './half-edits.js';

interface Row {
  readonly name: string;
  readonly opened?: ConfigTree;
  readonly wanted: ConfigTree;
  /** `null` where it can be put in force. */
  readonly expected: RegExp | null;
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
    name: 'the same, where whoever came to a public route did without',
    opened: { ...memory, routes: [everybodys] },
    wanted: { ...memory, ...another('require'), routes: [{ ...read, issuers: ['other'] }], listen: { dpop } },
    expected: /^route "read" asks for bound tokens of issuers\.other/,
  },
  {
    name: 'the same in shadow mode',
    opened: { ...memory, routes: [read], ...shadow },
    wanted: { ...memory, ...another('require'), routes: [{ ...read, issuers: ['other'] }], listen: { dpop } },
    expected: /^route "read" asks for bound tokens of issuers\.other/,
  },
  {
    name: 'the same, and tokens count unbound, too',
    opened: { ...memory, routes: [everybodys] },
    wanted: { ...memory, ...another('accept'), routes: [{ ...read, issuers: ['other'] }], listen: { dpop } },
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
    expected:
      /^route "read" asks for bound tokens of issuers\.core, and what takes proofs in listen is opened at start only: restart/,
  },
  {
    name: 'the same, where they are taken unbound, too',
    opened: { ...memory, ...binding('accept'), ...shadow },
    wanted: { ...memory, ...binding('accept'), listen: { dpop }, revoked },
    expected: null,
  },
  {
    name: 'proofs of keys, which whoever came to a public route did without',
    opened: { ...memory, ...binding('require'), routes: [everybodys] },
    wanted: { ...memory, ...binding('require'), listen: { dpop } },
    expected: /^route "read" asks for bound tokens of issuers\.core/,
  },
  {
    name: 'the same, where they are taken unbound, too',
    opened: { ...memory, ...binding('accept'), routes: [everybodys] },
    wanted: { ...memory, ...binding('accept'), listen: { dpop }, revoked },
    expected: null,
  },
  {
    name: 'proofs of keys for a route that took no tokens of the issuer',
    opened: { ...memory, ...both('accept'), routes: [{ ...read, issuers: ['other'] }] },
    wanted: { ...memory, ...both('require'), routes: [{ ...read, issuers: ['core'] }], listen: { dpop } },
    expected: null,
  },
  {
    name: 'proofs of keys for a new route',
    opened: { ...memory, ...binding('accept'), routes: [free] },
    wanted: { ...memory, ...binding('require'), listen: { dpop } },
    expected: null,
  },
  {
    name: 'proofs of keys for a route that has another name',
    opened: { ...memory, ...binding('accept'), routes: [{ ...read, name: 'old' }] },
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
    name: 'the same, where a proxy asks, to which no certificate is shown',
    opened: { ...memory, ...binding('accept'), listen: { tls: asking }, decide: front },
    wanted: { ...memory, ...binding('require'), listen: { tls: asking, dpop }, decide: front },
    expected: /^issuers\.core\.binding is require/,
  },
  {
    name: 'the same, where a proxy asked',
    opened: { ...memory, ...binding('accept'), listen: { tls: asking }, decide: front },
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
    wanted: { ...told, routes: [shown] },
    expected: /^route "read" asks for certificates/,
  },
  {
    name: 'a new route for certificates',
    opened: { listen: { tls }, routes: [free] },
    wanted: { listen: { tls: verifying }, routes: [shown] },
    expected: null,
  },
  {
    name: 'a new route for certificates, where what had no route went on',
    opened: { listen: { tls }, routes: [free], ...shadow },
    wanted: { listen: { tls: verifying }, routes: [shown] },
    expected: /^route "read" asks for certificates/,
  },
  {
    name: 'a route for certificates of what a wider one took',
    opened: { listen: { tls }, routes: [{ ...read, name: 'wide', path: '/{x}' }] },
    wanted: { listen: { tls: verifying }, routes: [shown] },
    expected: /^route "read" asks for certificates/,
  },
  {
    name: 'a route for certificates of what a narrower one took',
    opened: { listen: { tls }, routes: [read] },
    wanted: { listen: { tls: verifying }, routes: [wide] },
    expected: /^route "wide" asks for certificates/,
  },
  {
    name: 'a route for certificates of what is below a wider one',
    opened: { listen: { tls }, routes: [{ ...read, name: 'all', path: '/**' }] },
    wanted: {
      listen: { tls: verifying },
      routes: [
        { ...read, name: 'one', path: '/{x}' },
        { ...shown, name: 'rest', path: '/**' },
      ],
    },
    expected: /^route "rest" asks for certificates/,
  },
  {
    name: 'the same, where only its name is another',
    opened: { listen: { tls }, routes: [one, { ...read, name: 'all', path: '/api/**' }] },
    wanted: { listen: { tls: verifying }, routes: [one, { ...shown, name: 'rest', path: '/api/**' }] },
    expected: /^route "rest" asks for certificates/,
  },
  {
    name: 'the same, where narrower ones of each length take what is below, but for the slash at the end',
    opened: { listen: { tls }, routes: [one, { ...read, name: 'all', path: '/api/**' }, deeper] },
    wanted: { listen: { tls: verifying }, routes: [one, { ...shown, name: 'rest', path: '/api/**' }, deeper] },
    expected: /^route "rest" asks for certificates/,
  },
  {
    name: 'the same between paths that are far longer and far shorter',
    opened: { listen: { tls }, routes: [one, two, { ...read, name: 'all', path: '/api/**' }, far] },
    wanted: { listen: { tls: verifying }, routes: [one, two, { ...shown, name: 'rest', path: '/api/**' }, far] },
    expected: /^route "rest" asks for certificates/,
  },
  {
    name: 'a route for certificates below one that takes a segment alone',
    opened: { listen: { tls }, routes: [one] },
    wanted: { listen: { tls: verifying }, routes: [one, { ...shown, name: 'rest', path: '/api/**' }] },
    expected: null,
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
    name: 'a new write, which proxies may let through unreserved',
    opened: { ...memory, decide: front, routes: [read] },
    wanted: { ...memory, decide: accepting, routes: [read, place], revoked },
    expected: null,
  },
  {
    name: 'the same at the place of another one',
    opened: { ...memory, decide: front, routes: [{ ...free, name: 'old' }] },
    wanted: { ...memory, decide: accepting, routes: [place] },
    expected: /^route "place" needs unreserved in decide\.accept/,
  },
  {
    name: 'the same at the place of another one, beside its own',
    opened: { ...memory, decide: front, routes: [place, { ...free, name: 'free', path: '/p2' }] },
    wanted: { ...memory, decide: accepting, routes: [{ ...place, path: ['/place', '/p2'] }] },
    expected: /^route "place" needs unreserved in decide\.accept/,
  },
  {
    name: 'the same for a method that nobody named',
    opened: { ...memory, decide: front, routes: [{ ...free, name: 'old', methods: ['*'] }] },
    wanted: { ...memory, decide: accepting, routes: [{ ...place, methods: ['POST', 'PUT'] }] },
    expected: /^route "place" needs unreserved in decide\.accept/,
  },
  {
    name: 'the same of tokens that pass once',
    opened: { ...memory, decide: front, routes: [read] },
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
    const found = halfInForce(compiled(opened), compiled(wanted), null);
    if (expected === null) t.equal(found, null, name);
    else t.match(found ?? 'nothing', expected, name);
  }
  t.end();
});

t.test('what an application never opens is no reason', (t) => {
  const asks: Pick<Row, 'opened' | 'wanted'> = {
    opened: { ...memory, ...binding('accept') },
    wanted: { ...memory, ...binding('require'), listen: { dpop } },
  };
  const inSidecar: ConfigTree = { ...memory, decide: front, routes: [free] };
  for (const [name, row, verifies, expected] of [
    ['decide', { opened: inSidecar, wanted: { ...memory, decide: accepting, routes: [place] } }, false, null],
    ['TLS', { opened: { routes: [read] }, wanted: { listen: { tls: verifying }, routes: [shown] } }, true, null],
    [
      'certificates of whom a proxy tells',
      { opened: { routes: [read] }, wanted: { ...told, routes: [shown] } },
      false,
      /^route "read" asks/,
    ],
    [
      'the same, which it verifies itself',
      { opened: { routes: [read] }, wanted: { ...told, routes: [shown] } },
      true,
      null,
    ],
    ['proofs of keys', asks, false, /^issuers\.core\.binding is require/],
    ['proofs of keys beside certificates that it verifies', asks, true, null],
  ] as const) {
    const found = halfInForce(compiled(row.opened ?? {}), compiled(row.wanted), application(verifies));
    if (expected === null) t.equal(found, null, name);
    else t.match(found ?? 'nothing', expected, name);
  }
  t.end();
});
