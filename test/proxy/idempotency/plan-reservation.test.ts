import t from 'tap';
import type { Principal } from '../../../src/decision/token/principal.js';
import { recordIdOf, scopeOf } from '../../../src/decision/idempotency/scope.js';
import type { ActiveConfig } from '../../../src/proxy/auth/active-config.js';
import type { Admission } from '../../../src/proxy/auth/authorize-request.js';
import {
  isBefore,
  maxReservedBodyBytes,
  planRequest,
  planReservation,
  type Preparation,
} from '../../../src/proxy/idempotency/plan-reservation.js';

const rules = { key: 'required' as 'required' | 'optional' | null, singleUse: false, operation: 'POST /orders' };
const service = {
  kind: 'service',
  issuerName: 'second',
  issuer: 'https://idp',
  subject: 's',
  tokenId: 't',
  issuedAtS: 1_000,
} as const;
const session = { ...service, kind: 'session', issuerName: 'sessions' } as const;
const first = { rules: { name: 'first', issuer: 'https://core', audience: 'receiver', clockSkewS: 30 } };
const second = { rules: { name: 'second', issuer: 'https://idp', audience: 'other', clockSkewS: 5 } };
const earlier = { rules: { ...second.rules, name: 'earlier', audience: 'orders', clockSkewS: 30 } };

interface Case {
  readonly name: string;
  /** `null` where the route reserves nothing. */
  readonly rules?: Partial<typeof rules> | null;
  readonly principal?: Partial<Principal> | null;
  readonly key?: string | null;
  readonly issuers?: readonly object[];
  readonly floorS?: number;
  /** The reason of a refusal, the audience that counts for what is reserved, or `null` where nothing is. */
  readonly expected:
    | { readonly refused: string }
    | { readonly audience: string; readonly key: string | null; readonly tokenId: string | null }
    | null;
}

const both = { singleUse: true };
const tokenOnly = { key: null, singleUse: true };
const cases: readonly Case[] = [
  { name: 'a route that reserves nothing', rules: null, principal: null, expected: null },
  { name: 'nobody', principal: null, expected: { refused: 'internal' } },
  { name: 'nobody, with no issuer', principal: null, issuers: [], expected: { refused: 'internal' } },
  { name: 'a caller of no issuer', principal: { issuerName: 'third' }, expected: { refused: 'internal' } },
  { name: 'a key', key: 'k', expected: { audience: 'other', key: 'k', tokenId: null } },
  { name: 'a key in quotes is the same', key: '"k"', expected: { audience: 'other', key: 'k', tokenId: null } },
  {
    name: 'a key, and a token that has no id',
    key: 'k',
    principal: { tokenId: null },
    expected: { audience: 'other', key: 'k', tokenId: null },
  },
  { name: 'no key', key: null, expected: { refused: 'idempotency_key_missing' } },
  { name: 'no key where it is optional', key: null, rules: { key: 'optional' }, expected: null },
  {
    name: 'an optional key',
    key: 'k',
    rules: { key: 'optional' },
    expected: { audience: 'other', key: 'k', tokenId: null },
  },
  {
    name: 'an optional key that is none',
    key: 'a b',
    rules: { key: 'optional' },
    expected: { refused: 'idempotency_key_malformed' },
  },
  { name: 'a token', rules: tokenOnly, key: null, expected: { audience: 'other', key: null, tokenId: 't' } },
  {
    name: 'a token, with a key that nobody asked for',
    rules: tokenOnly,
    key: 'k',
    expected: { audience: 'other', key: null, tokenId: 't' },
  },
  { name: 'both', rules: both, key: 'k', expected: { audience: 'other', key: 'k', tokenId: 't' } },
  {
    name: 'no optional key, and a token',
    rules: { key: 'optional', ...both },
    key: null,
    expected: { audience: 'other', key: null, tokenId: 't' },
  },
  {
    name: 'the credential comes before the key',
    rules: both,
    key: null,
    principal: { tokenId: null },
    expected: { refused: 'token_id_missing' },
  },
  {
    name: 'issued before the fail-over',
    rules: both,
    key: null,
    floorS: 996,
    expected: { refused: 'issue_time_revoked' },
  },
  {
    name: 'issued after the fail-over, by the skew',
    rules: both,
    key: 'k',
    floorS: 995,
    expected: { audience: 'other', key: 'k', tokenId: 't' },
  },
  {
    name: 'a key minds no fail-over',
    key: 'k',
    floorS: 2_000,
    expected: { audience: 'other', key: 'k', tokenId: null },
  },
  {
    name: 'a key is counted by the first entry with the issuer, whichever accepted the token',
    key: 'k',
    issuers: [first, earlier, second],
    expected: { audience: 'orders', key: 'k', tokenId: null },
  },
  {
    name: 'the skew is that of the entry that accepted',
    rules: both,
    key: 'k',
    issuers: [earlier, second],
    floorS: 995,
    expected: { audience: 'orders', key: 'k', tokenId: 't' },
  },
  {
    name: 'a session has the name of the receiver',
    principal: session,
    key: 'k',
    expected: { audience: 'receiver', key: 'k', tokenId: null },
  },
  {
    name: 'a session where no issuer is',
    principal: session,
    key: 'k',
    issuers: [],
    expected: { audience: '', key: 'k', tokenId: null },
  },
  {
    name: 'a session has no skew',
    principal: session,
    rules: both,
    key: 'k',
    floorS: 1_000,
    expected: { audience: 'receiver', key: 'k', tokenId: 't' },
  },
  {
    name: 'a session before the fail-over',
    principal: session,
    rules: both,
    key: 'k',
    floorS: 1_001,
    expected: { refused: 'issue_time_revoked' },
  },
];

t.test('what a request reserves, and why it may not', (t) => {
  for (const {
    name,
    rules: changed,
    principal: other,
    key: sent = 'k',
    issuers = [first, second],
    floorS = null,
    expected,
  } of cases) {
    const principal = other === null ? null : { ...service, ...other };
    const admission = {
      route: { reservation: changed === null ? null : { ...rules, ...changed } },
      principal,
      headers: { idempotencyKey: sent },
    };
    const prepared = planReservation(
      admission as unknown as Admission,
      { issuers } as unknown as Pick<ActiveConfig, 'issuers'>,
      floorS,
    );
    if (expected === null) {
      t.same(prepared, { ok: true, value: null }, name);
    } else if ('refused' in expected) {
      t.match(prepared, { ok: false, error: { reason: expected.refused } }, name);
    } else {
      const { audience, key, tokenId } = expected;
      const scope = scopeOf({ principal: principal ?? service, audience, operation: rules.operation, key, tokenId });
      t.match(prepared, { ok: true, value: { scope, issuer: { audience }, principal } }, name);
      const value = prepared.ok ? prepared.value : null;
      t.equal(value?.recordId, recordIdOf(scope));
      t.equal(value?.sentKey, key === null ? null : sent, 'as it was sent');
    }
  }
  t.end();
});

t.test('a token is older than a fail-over where nobody can say that it is not', (t) => {
  for (const [issuedAtS, floorS, expected] of [
    [null, null, false],
    [null, 0, true],
    [0, null, false],
    [104, 100, true],
    [105, 100, false],
    [106, 100, false],
  ] as const) {
    const principal = { ...service, issuedAtS } as unknown as Principal;
    t.equal(
      isBefore(principal, { audience: 'a', clockSkewS: 5 }, floorS),
      expected,
      `${String(issuedAtS)} ${String(floorS)}`,
    );
  }
  t.end();
});

t.test('a reserved body is bounded by the route and by what may be held', (t) => {
  for (const [route, reserved] of [
    [1, 2],
    [2, 1],
    [1, 1],
  ] as const) {
    const admission = { route: { maxBodyBytes: route } };
    t.equal(
      maxReservedBodyBytes(
        admission as unknown as Admission,
        { rules: { maxBodyBytes: reserved } } as unknown as Preparation,
      ),
      1,
    );
  }
  t.end();
});

t.test('what becomes of an admitted request: the reservation, then the store, then the size of the body', (t) => {
  const shadow = { route: { reservation: null, maxBodyBytes: 10 }, name: 'without a reservation' };
  const plain = { route: { reservation: null, maxBodyBytes: 10 } };
  const reserved = (changes: object): object => ({
    route: { reservation: { ...rules, maxBodyBytes: 5 }, maxBodyBytes: 10 },
    principal: service,
    headers: { idempotencyKey: '"k"' },
    shadowAdmission: () => null,
    ...changes,
  });
  const keyless = { headers: { idempotencyKey: null } };
  const store = { floorS: () => null };
  const cases: readonly (readonly [string, object, typeof store | null, number, object])[] = [
    ['nothing to reserve', plain, null, 10, { kind: 'forward', admission: plain }],
    ['too large', plain, null, 11, { kind: 'refuse', denial: { reason: 'body_too_large' }, reservationId: null }],
    ['a write', reserved({}), store, 5, { kind: 'reserve', maxBodyBytes: 5, preparation: { sentKey: '"k"' } }],
    [
      'too large to hold',
      reserved({}),
      store,
      6,
      { kind: 'refuse', denial: { reason: 'body_too_large' }, reservationId: /./ },
    ],
    [
      'no store',
      reserved({}),
      null,
      6,
      { kind: 'refuse', denial: { reason: 'store_unavailable' }, reservationId: /./ },
    ],
    [
      'no key',
      reserved(keyless),
      null,
      6,
      { kind: 'refuse', denial: { reason: 'idempotency_key_missing' }, reservationId: null },
    ],
    [
      'no key in shadow mode',
      reserved({ ...keyless, shadowAdmission: () => shadow }),
      null,
      10,
      { kind: 'forward', admission: shadow },
    ],
    [
      'that, too large',
      reserved({ ...keyless, shadowAdmission: () => shadow }),
      store,
      11,
      { kind: 'refuse', denial: { reason: 'body_too_large' } },
    ],
  ];
  for (const [name, admission, opened, bodyBytes, expected] of cases) {
    const plan = planRequest(
      admission as Admission,
      { issuers: [first, second] } as unknown as ActiveConfig,
      opened,
      bodyBytes,
    );
    t.match(plan, expected, name);
  }
  t.end();
});
