import t from 'tap';
import { halfInForce } from '../../../src/app/reload/half-in-force.js';
import { compiled } from '../../proxy/harness.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { binding, dpop, likeCore, memory, read, renamed } from './half-edits.js';

const spire = (binding: string, more: ConfigTree): ConfigTree => ({
  profile: 'spiffe',
  trust_domain: 'shop.example',
  audience: 'orders',
  bundle_url: 'http://127.0.0.1:2',
  binding,
  ...more,
});

/** An entry for the same tokens beside the one that every config has. */
const beside = (word: string): ConfigTree => ({
  issuers: { core: likeCore(word, {}), main: likeCore('require', {}) },
  routes: [read],
});

const ofKind = (binding: string, ...kind: readonly string[]): ConfigTree => ({
  profile: 'oauth',
  issuer: 'https://id.example',
  audience: 'orders',
  jwks_url: 'http://127.0.0.1:2',
  claims: { require: { kind } },
  binding,
});

const kinds: ConfigTree = { web: ofKind('accept', 'web'), bank: ofKind('require', 'bank') };

const rows: readonly {
  readonly name: string;
  readonly opened: ConfigTree;
  readonly wanted: ConfigTree;
  /** `null` where it can be put in force. */
  readonly expected: RegExp | null;
}[] = [
  {
    name: 'proofs of keys for an issuer that has another name',
    opened: { ...memory, ...binding('none') },
    wanted: { ...memory, ...renamed('require'), routes: [read], listen: { dpop } },
    expected: /^issuers\.main\.binding is require/,
  },
  {
    name: 'the same, where a route names it',
    opened: { ...memory, ...binding('accept'), routes: [{ ...read, issuers: ['core'] }] },
    wanted: { ...memory, ...renamed('require'), routes: [{ ...read, issuers: ['main'] }], listen: { dpop } },
    expected: /^issuers\.main\.binding is require/,
  },
  {
    name: 'the same, where its tokens had to be bound',
    opened: { ...memory, ...binding('require') },
    wanted: { ...memory, ...renamed('require'), routes: [read], listen: { dpop } },
    expected: null,
  },
  {
    name: 'the same for tokens of another audience, which nobody took',
    opened: { ...memory, ...binding('none') },
    wanted: { ...memory, ...renamed('require', 'billing'), routes: [read], listen: { dpop } },
    expected: null,
  },
  {
    name: 'the same, where its name is of another audience now',
    opened: { ...memory, ...binding('none') },
    wanted: {
      ...memory,
      issuers: { core: likeCore('none', { audience: 'billing' }), main: likeCore('require', {}) },
      routes: [read],
      listen: { dpop },
    },
    expected: /^issuers\.main\.binding is require/,
  },
  {
    name: "two entries that take each other's names",
    opened: {
      ...memory,
      issuers: { core: likeCore('none', {}), main: likeCore('require', { audience: 'billing' }) },
      routes: [read],
    },
    wanted: {
      ...memory,
      issuers: { core: likeCore('require', { audience: 'billing' }), main: likeCore('none', {}) },
      routes: [read],
      listen: { dpop },
    },
    expected: null,
  },
  {
    name: 'an entry for tokens of another type in the place of one that goes',
    opened: { ...memory, ...binding('none') },
    wanted: {
      ...memory,
      issuers: { core: undefined, main: likeCore('require', { token_type: 'batch' }) },
      routes: [read],
      listen: { dpop },
    },
    expected: null,
  },
  {
    name: 'SPIFFE, where tokens need no issuer and then have to name one',
    opened: { ...memory, issuers: { core: undefined, spire: spire('accept', {}) }, routes: [read] },
    wanted: {
      ...memory,
      issuers: { core: undefined, spire: spire('require', { issuer: 'https://spire.example' }) },
      routes: [read],
      listen: { dpop },
    },
    expected: /^issuers\.spire\.binding is require/,
  },
  {
    name: 'two entries as they were, told apart by a claim',
    opened: { ...memory, issuers: { core: undefined, ...kinds }, routes: [read] },
    wanted: { ...memory, issuers: { core: undefined, ...kinds }, routes: [read], listen: { dpop } },
    expected: null,
  },
  {
    name: 'two entries as they were, told apart by nothing',
    opened: { ...memory, ...beside('none') },
    wanted: { ...memory, ...beside('none'), listen: { dpop } },
    expected: null,
  },
  {
    name: 'a route that goes over to an entry for the same tokens, which is new',
    opened: { ...memory, ...binding('none') },
    wanted: { ...memory, ...beside('none'), routes: [{ ...read, issuers: ['main'] }], listen: { dpop } },
    expected: /^issuers\.main\.binding is require/,
  },
  {
    name: 'the same, which was there',
    opened: { ...memory, ...beside('none'), routes: [{ ...read, issuers: ['core'] }] },
    wanted: { ...memory, ...beside('none'), routes: [{ ...read, issuers: ['main'] }], listen: { dpop } },
    expected: /^issuers\.main\.binding is require/,
  },
  {
    name: 'the same, and the one before asks for proofs, too',
    opened: { ...memory, ...beside('none'), routes: [{ ...read, issuers: ['core'] }] },
    wanted: { ...memory, ...beside('require'), routes: [{ ...read, issuers: ['main'] }], listen: { dpop } },
    expected: /^issuers\.main\.binding is require/,
  },
  {
    name: 'an entry that leaves some of its tokens to another one',
    opened: { ...memory, issuers: { core: undefined, web: ofKind('accept', 'web', 'bank') }, routes: [read] },
    wanted: { ...memory, issuers: { core: undefined, ...kinds }, routes: [read], listen: { dpop } },
    expected: /^issuers\.bank\.binding is require/,
  },
  {
    name: 'another one for the same tokens in front of it',
    opened: { ...memory, issuers: { core: undefined, main: likeCore('none', {}) }, routes: [read] },
    wanted: {
      ...memory,
      issuers: { core: likeCore('require', {}), main: likeCore('none', {}) },
      routes: [read],
      listen: { dpop },
    },
    expected: /^issuers\.core\.binding is require/,
  },
];

t.test('issuers are compared by the tokens that they take, whatever their names are', (t) => {
  for (const { name, opened, wanted, expected } of rows) {
    const found = halfInForce(compiled(opened), compiled(wanted), null);
    if (expected === null) t.equal(found, null, name);
    else t.match(found ?? 'nothing', expected, name);
  }
  t.end();
});
