import type { KeyObject } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import { maxTokenBytes } from '../../../src/decision/token/compact-jws.js';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import type { IssuerRules } from '../../../src/decision/route/policy.js';
import type { Principal } from '../../../src/decision/token/principal.js';
import { readHeaders } from '../../../src/decision/http/request-headers.js';
import type { KeyLookup } from '../../../src/ports/auth.js';
import { verifyCredential } from '../../../src/proxy/auth/credentials/service-token.js';
import type { ActiveIssuer } from '../../../src/proxy/auth/active-config.js';
import {
  createVerifiedTokens,
  entryBytes,
  permissionBytes,
  subjectBytes,
  type VerifiedTokens,
} from '../../../src/proxy/auth/verified-token-cache.js';
import { rsaKey } from '../../support/keys.js';
import { mintToken, type Claims } from '../../support/tokens.js';
import { issuerRules } from '../../decision/samples.js';

const nowMs = 1_800_000_000_000;
const nowS = nowMs / 1000;
const key = rsaKey();

const rules = issuerRules();

/** An issuer whose key the test exchanges. */
function issuerOf(
  first: KeyObject | null,
  change: Partial<IssuerRules> = {},
): ActiveIssuer & { use: (key: KeyObject | null) => void; asked: () => number } {
  let current = first;
  let asked = 0;
  const find = (keyId: string): KeyLookup => {
    asked += 1;
    return current === null ? { kind: 'unknown' } : { kind: 'found', key: { keyId, algorithm: 'RS256', key: current } };
  };
  return {
    rules: { ...rules, ...change },
    keys: {
      find,
      state: () => {
        throw new Error('not asked here');
      },
    },
    use: (next) => {
      current = next;
    },
    asked: () => asked,
  };
}

const principal: Principal = {
  kind: 'service',
  issuerName: 'core',
  issuer: rules.issuer,
  keyId: 'd-1',
  subject: 'checkout',
  permissions: [],
  tokenId: null,
  issuedAtS: nowS,
  expiresAtS: nowS + 300,
};

function token(claims: Claims = {}, signer = key): string {
  return mintToken({ key: signer, claims, nowMs });
}

function verify(
  encoded: string,
  issuers: readonly ActiveIssuer[],
  atMs: number,
  verified: VerifiedTokens | null,
): unknown {
  return verifyCredential(encoded, issuers, atMs, verified);
}

t.test('a token that comes again is the same principal, without another signature', (t) => {
  const issuer = issuerOf(key.publicKey);
  const verified = createVerifiedTokens(1_000_000);
  const encoded = token();
  const first = verify(encoded, [issuer], nowMs, verified);
  t.match(first, { ok: true, value: { subject: 'checkout' } });
  t.equal(verified.size(), 1);
  t.equal(verified.find(encoded, nowMs), (first as { value: unknown }).value);
  t.same(verify(encoded, [issuer], nowMs, verified), first);
  t.equal(verified.find(`${encoded.slice(0, -4)}AAAA`, nowMs), null, 'another signature is another token');
  t.end();
});

t.test('accepted tokens are counted, over one version of the config and the next, and refused ones are not', (t) => {
  const issuer = issuerOf(key.publicKey);
  const lookups = { hits: 0, misses: 0 };
  const first = createVerifiedTokens(1_000_000, lookups);
  const encoded = token();
  for (let i = 0; i < 3; i += 1) verify(encoded, [issuer], nowMs, first);
  verify('x', [issuer], nowMs, first);
  verify(encoded, [issuer], nowMs, createVerifiedTokens(1_000_000, lookups));
  t.same(lookups, { hits: 2, misses: 2 });
  t.end();
});

t.test('only what was accepted is remembered', (t) => {
  const issuer = issuerOf(key.publicKey);
  const verified = createVerifiedTokens(1_000_000);
  for (const bad of [
    'x',
    token({ aud: 'other' }),
    token({ exp: nowS - 10 }),
    token({}, rsaKey('d-2')),
    `${token()}A`,
  ]) {
    t.match(verify(bad, [issuer], nowMs, verified), { ok: false });
  }
  t.equal(verified.size(), 0);
  t.equal(verified.bytes(), 0);
  t.end();
});

t.test('an entry ends at exp and skew, with its key, and rests while the clock is before its verification', (t) => {
  const issuer = issuerOf(key.publicKey);
  const verified = createVerifiedTokens(1_000_000);
  const encoded = token({ exp: nowS + 60 });
  const keep = (): void => void verify(encoded, [issuer], nowMs, verified);
  keep();
  t.ok(verified.find(encoded, nowMs + 64_999));
  t.equal(verified.find(encoded, nowMs + 65_000), null);
  t.equal(verified.size(), 0, 'what is over takes no room');
  keep();
  t.equal(verified.find(encoded, nowMs - 1), null);
  t.ok(verified.find(encoded, nowMs));
  issuer.use(rsaKey('d-2').publicKey);
  t.equal(verified.find(encoded, nowMs), null, 'another key under the same kid');
  t.equal(verified.size(), 0);
  issuer.use(key.publicKey);
  keep();
  issuer.use(null);
  t.equal(verified.find(encoded, nowMs), null, 'a key that left the set');
  t.match(verify(encoded, [issuer], nowMs, verified), { ok: false, error: { reason: 'key_unknown' } });
  t.end();
});

t.test('where several issuers accept the kid, nothing is remembered: their keys settle it each time', (t) => {
  const verified = createVerifiedTokens(1_000_000);
  const issuers = [issuerOf(null, { name: 'a' }), issuerOf(key.publicKey, { name: 'b' })];
  t.match(verify(token(), issuers, nowMs, verified), { value: { issuerName: 'b' } });
  t.equal(verified.size(), 0);
  issuers[0]?.use(key.publicKey);
  t.match(verify(token(), issuers, nowMs, verified), { value: { issuerName: 'a' } });
  t.end();
});

t.test("it stays within its bytes, and a flood of one subject evicts that subject's tokens", (t) => {
  const issuer = issuerOf(key.publicKey);
  const verified = createVerifiedTokens(40_000);
  const others = ['a', 'b', 'c'].map((sub) => token({ sub }));
  for (const other of others) verify(other, [issuer], nowMs, verified);
  const flood = Array.from({ length: 100 }, (_, i) => token({ sub: 'flood', jti: `j${i}` }));
  for (const encoded of flood) {
    verify(encoded, [issuer], nowMs, verified);
    t.ok(verified.bytes() <= 40_000);
  }
  t.ok(verified.size() > 20, 'while nobody else wants the room, it is used');
  for (const other of others) t.ok(verified.find(other, nowMs), 'another subject keeps its place');
  t.ok(verified.find(flood.at(-1) ?? '', nowMs));
  t.equal(verified.find(flood[0] ?? '', nowMs), null);
  // Another subject takes from what is over the share, the oldest first; what is used is passed by.
  const oldest = flood.find((encoded) => verified.find(encoded, nowMs) !== null) ?? '';
  for (let i = 0; i < 6; i += 1) {
    verify(token({ sub: `new-${i}` }), [issuer], nowMs, verified);
    t.ok(verified.find(oldest, nowMs), 'used since, so spared');
    t.ok(verified.bytes() <= 40_000);
  }
  for (const other of others) t.ok(verified.find(other, nowMs));
  t.end();
});

t.test('a cache that is full of used tokens still takes a new one', (t) => {
  const issuer = issuerOf(key.publicKey);
  const verified = createVerifiedTokens(30_000);
  for (let i = 0; i < 200; i += 1) {
    const encoded = token({ sub: `s${i}` });
    verify(encoded, [issuer], nowMs, verified);
    t.ok(verified.find(encoded, nowMs));
  }
  t.ok(verified.bytes() <= 30_000);
  const small = createVerifiedTokens(1_000);
  verify(token(), [issuer], nowMs, small);
  t.equal(small.size(), 0, 'what is larger than all of it is not kept');
  t.end();
});

t.test('what it evicts is what a list would that is read from its beginning each time', (t) => {
  const [maxBytes, maxSpared] = [20_000, 8];
  const grants = ['orders:read', 'orders:write'];
  const size = entryBytes + 300 + permissionBytes * grants.length;
  const issuer = issuerOf(key.publicKey);
  const perSubject = subjectBytes + `${issuer.rules.name} s0`.length;
  const step = fc.record({
    is: fc.constantFrom('keep', 'keep', 'keep', 'find', 'expire'),
    subject: fc.integer({ min: 0, max: 3 }),
    nth: fc.integer({ min: 0, max: 40 }),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 40, maxLength: 300 }), (steps) => {
      const verified = createVerifiedTokens(maxBytes);
      let list: { readonly encoded: string; readonly subject: number; isUsed: boolean }[] = [];
      const bytesWith = (added: readonly number[]): number => {
        const subjects = [...list.map((entry) => entry.subject), ...added];
        return subjects.length * size + new Set(subjects).size * perSubject;
      };
      const evict = (subject: number): void => {
        const own = list.filter((entry) => entry.subject === subject);
        const isGreedy = own.length * size > maxBytes / 4;
        for (let spared = 0; ; spared += 1) {
          const oldest = list.find((entry) => !isGreedy || entry.subject === subject);
          if (oldest === undefined) return;
          list = list.filter((entry) => entry !== oldest);
          if (!oldest.isUsed || spared === maxSpared) return;
          list.push({ ...oldest, isUsed: false });
        }
      };
      for (const { is, subject, nth } of steps) {
        const encoded = `${subject} ${nth} `.padEnd(300, 'x');
        const known = list.find((entry) => entry.encoded === encoded);
        if (is === 'keep') {
          list = list.filter((entry) => entry !== known);
          while (bytesWith([subject]) > maxBytes) evict(subject);
          list.push({ encoded, subject, isUsed: false });
          verified.keep(encoded, {
            principal: { ...principal, subject: `s${subject}`, permissions: grants },
            issuer,
            key: key.publicKey,
            atMs: nowMs,
          });
        } else if (is === 'find') {
          if (known !== undefined) known.isUsed = true;
          const isFound = verified.find(encoded, nowMs) !== null;
          if (isFound !== (known !== undefined)) throw new Error(`${encoded.trimEnd()}: found: ${String(isFound)}`);
        } else {
          list = list.filter((entry) => entry !== known);
          verified.find(encoded, nowMs + 10 ** 9);
        }
        if (verified.size() !== list.length || verified.bytes() !== bytesWith([])) {
          throw new Error(`${verified.size()} for ${list.length}`);
        }
      }
    }),
    { numRuns: 500 },
  );
  t.pass('500 runs');
  t.end();
});

t.test('of a config that is no longer in force nothing is remembered', (t) => {
  const issuer = issuerOf(key.publicKey);
  const verified = createVerifiedTokens(30_000);
  const [kept, late] = [token({ sub: 'a' }), token({ sub: 'b' })];
  verify(kept, [issuer], nowMs, verified);
  t.ok(verified.find(kept, nowMs));
  verified.close();
  t.equal(verified.find(kept, nowMs), null);
  verify(late, [issuer], nowMs, verified);
  t.equal(verified.find(late, nowMs), null, 'what a request verifies that began under it');
  t.same([verified.bytes(), verified.size()], [0, 0]);
  t.end();
});

t.test('with and without it every decision is the same, whatever happens to keys and clock', (t) => {
  const keys = [key.publicKey, rsaKey('d-2').publicKey];
  const tokens = [
    token(),
    token({ sub: 'other' }),
    token({ exp: nowS + 30 }),
    token({ nbf: nowS + 20 }),
    token({ iat: nowS + 3 }),
    token({ exp: nowS + 7_200, iat: undefined }),
    token({ aud: 'other' }),
    token({}, rsaKey('d-2')),
    'x.y.z',
  ];
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant('ask' as const), token: fc.nat({ max: tokens.length - 1 }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('key' as const), key: fc.constantFrom(0, 0, 1, null) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('time' as const),
        ms: fc.constantFrom(1, 999, 5_000, 20_000, 30_000, 3_600_000, -1, -10_000),
      }),
    },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const issuer = issuerOf(key.publicKey);
      const verified = createVerifiedTokens(5_000);
      let now = nowMs;
      for (const next of steps) {
        if (next.kind === 'key') issuer.use(next.key === null ? null : (keys[next.key] ?? null));
        else if (next.kind === 'time') now += next.ms;
        else {
          const encoded = tokens[next.token] ?? '';
          const [fresh, remembered] = [verify(encoded, [issuer], now, null), verify(encoded, [issuer], now, verified)];
          if (JSON.stringify(fresh) !== JSON.stringify(remembered)) {
            throw new Error(`${JSON.stringify(remembered)} instead of ${JSON.stringify(fresh)}`);
          }
        }
      }
    }),
    { numRuns: 300 },
  );
  t.pass('300 runs');
  t.end();
});

t.test('it knows a token by its field, in the usual spelling alone, and reads a header as it is read without', (t) => {
  const issuer = issuerOf(key.publicKey);
  const verified = createVerifiedTokens(1_000_000);
  const [good, bad] = [token(), token({ aud: 'other' })];
  const digest = verified.digestOfHeader(`Bearer ${good}`);
  t.type(digest, 'string');
  t.equal(verified.has(digest ?? ''), false, 'before it was verified');
  t.match(verifyCredential(good, [issuer], nowMs, verified, null, digest), { ok: true });
  verify(bad, [issuer], nowMs, verified);
  t.equal(verified.has(digest ?? ''), true);
  t.equal(verified.has(verified.digestOfHeader(`Bearer ${bad}`) ?? ''), false, 'one that was refused');
  t.match(verified.find(good, nowMs), { subject: 'checkout' }, 'found by its text as well');
  t.match(verified.find(good, nowMs, digest), { subject: 'checkout' });
  for (const other of [
    '',
    good,
    `bearer ${good}`,
    `Basic ${good}`,
    ` Bearer ${good}`,
    `Bearer\t${good}`,
    `Bearer ${'a'.repeat(maxTokenBytes + 1)}`,
  ]) {
    t.equal(verified.digestOfHeader(other), null, other.slice(0, 10));
  }
  t.type(verified.digestOfHeader(`Bearer ${'a'.repeat(maxTokenBytes)}`), 'string', 'the longest');

  const headerRules = createHeaderRules({ identityNames: [], underscoreFields: 'drop', http10: 'refuse' });
  const judged = (field: string, remembered: VerifiedTokens | null): unknown => {
    const read = readHeaders(
      { method: 'GET', target: '/', httpVersion: '1.1', rawHeaders: ['Host', 'a', 'Authorization', field] },
      headerRules,
      remembered,
    );
    return read.ok ? { ...read, value: { ...read.value, bearerDigest: null } } : read;
  };
  const edit = fc.record({
    at: fc.nat({ max: good.length + 8 }),
    take: fc.nat({ max: 2 }),
    put: fc.string({ unit: 'binary-ascii', maxLength: 2 }),
  });
  fc.assert(
    fc.property(fc.constantFrom('Bearer ', 'bearer ', ''), fc.array(edit, { maxLength: 2 }), (scheme, edits) => {
      const field = edits.reduce(
        (text, { at, take, put }) => text.slice(0, at) + put + text.slice(at + take),
        scheme + good,
      );
      t.same(judged(field, verified), judged(field, null));
    }),
    { numRuns: 500 },
  );
  t.end();
});
