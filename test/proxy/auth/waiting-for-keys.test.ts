import t from 'tap';
import type { KeyAsker, KeyLookup } from '../../../src/ports/auth.js';
import { verifyCredential } from '../../../src/proxy/auth/credentials/service-token.js';
import type { ActiveIssuer } from '../../../src/proxy/auth/active-config.js';
import { issuerRules, nowMs } from '../../decision/samples.js';
import { rsaKey } from '../../support/keys.js';
import { mintToken } from '../../support/tokens.js';
import { keyState } from '../../support/key-state.js';
import {
  atOnce,
  found,
  issuer,
  key,
  later,
  never,
  other,
  otherKey,
  outcomeOf,
  source,
  unavailable,
  unknown,
} from './stub-issuers.js';

t.test("one issuer's trouble is no other's: a good token waits for no other key server", async (t) => {
  const mine = found(key.publicKey);
  const token = mintToken({ key, nowMs });
  t.equal(
    atOnce(token, [issuer(never, other), issuer(mine)]),
    'accepted by core',
    'a server that never answers, beside a known key',
  );
  t.equal(
    outcomeOf(await verifyCredential(token, [issuer(never, other), issuer(later(mine))], nowMs)),
    'accepted by core',
    'beside a slow one',
  );
  const last = issuer(mine, other);
  t.equal(atOnce(token, [issuer(mine), last]), 'accepted by core');
  t.same(last.keys.asked, [], 'and who comes after the one that accepted is not asked');
});

t.test('a thousand mixed tokens at once, sources that hang, fail and rotate: each gets its own answer', async (t) => {
  const keys = [key, otherKey];
  let lookups = 0;
  const moody = source(async (keyId) => {
    lookups += 1;
    const turn = lookups % 4;
    if (turn === 0) await later(unknown);
    if (turn === 1) return unavailable;
    if (turn === 2) throw new TypeError('a bug');
    const known = keys.find((candidate) => candidate.keyId === keyId);
    return known === undefined ? unknown : found(known.publicKey, keyId);
  });
  const hanging = {
    rules: issuerRules({ ...other, keyIds: { accept: ['hang-*'], reject: [] } }),
    keys: source(() => never),
  };
  const issuers = [hanging, { rules: issuerRules(), keys: moody }];
  const verdicts = await Promise.all(
    Array.from({ length: 1000 }, async (_, index) => {
      const signer = keys[index % 2] ?? key;
      const forged = index % 5 === 0;
      const hand = forged ? { ...signer, privateKey: rsaKey('forger').privateKey } : signer;
      const token = mintToken({ key: hand, nowMs, claims: { sub: `caller-${String(index)}` } });
      return { index, forged, keyId: signer.keyId, verdict: await verifyCredential(token, issuers, nowMs) };
    }),
  );
  let accepted = 0;
  for (const { index, forged, keyId, verdict } of verdicts) {
    if (!verdict.ok) {
      if (!['keys_unavailable', 'signature_invalid'].includes(verdict.error.reason)) {
        t.fail(`${String(index)}: ${verdict.error.reason}`);
      }
      continue;
    }
    accepted += 1;
    if (forged || verdict.value.subject !== `caller-${String(index)}` || verdict.value.keyId !== keyId) {
      t.fail(`${String(index)} got another's answer`);
    }
  }
  t.equal(accepted > 0, true, 'where the key was found and the signature held');
});

t.test('a token that ends while its key is waited for is refused', async (t) => {
  const token = mintToken({ key, nowMs });
  const asked: unknown[] = [];
  const waitingUntil = (endMs: number): KeyAsker => ({
    address: () => '',
    hasAuthenticated: () => false,
    isGone: () => false,
    now: () => endMs,
  });
  const slow: ActiveIssuer = {
    rules: issuerRules(),
    keys: {
      find: async (_keyId, patience) => {
        asked.push(patience);
        return later(found(key.publicKey));
      },
      state: () => keyState(),
    },
  };
  const endMs = nowMs + 305_000;
  const [late, last] = [waitingUntil(endMs), waitingUntil(endMs - 1)];
  t.equal(outcomeOf(await verifyCredential(token, [slow], nowMs, null, late)), 'token_expired');
  t.equal(outcomeOf(await verifyCredential(token, [slow], nowMs, null, last)), 'accepted by core');
  t.equal(outcomeOf(await verifyCredential(token, [slow], nowMs)), 'accepted by core');
  t.same(asked, [late, last, 'fetch']);
});

t.test("where one issuer's key is known and accepts, no other issuer is asked to fetch", async (t) => {
  const token = mintToken({ key, nowMs });
  const asked: unknown[] = [];
  const ignorant: ActiveIssuer = {
    rules: issuerRules(other),
    keys: {
      find: (_keyId, patience) => {
        asked.push(patience);
        return patience === 'now' ? unknown : later(unknown);
      },
      state: () => keyState(),
    },
  };
  t.equal(atOnce(token, [ignorant, issuer(found(key.publicKey))]), 'accepted by core');
  t.same(asked, ['now']);
  t.equal(outcomeOf(await verifyCredential(token, [ignorant, issuer(unknown)], nowMs)), 'key_unknown');
  t.same(asked, ['now', 'now', 'fetch']);
});

t.test("whoever waits for one issuer's key is gone when another issuer has accepted", async (t) => {
  const token = mintToken({ key, nowMs });
  const waiting: KeyAsker[] = [];
  const asker: KeyAsker = {
    address: () => '192.0.2.1',
    hasAuthenticated: () => true,
    isGone: () => false,
    now: () => nowMs,
  };
  const slow: ActiveIssuer = {
    rules: issuerRules(other),
    keys: {
      find: (_keyId, patience) => {
        if (typeof patience === 'object') waiting.push(patience);
        return patience === 'now' ? unknown : never;
      },
      state: () => keyState(),
    },
  };
  const soon: ActiveIssuer = {
    rules: issuerRules(),
    keys: {
      find: (_keyId, patience) => (patience === 'now' ? unknown : later(found(key.publicKey))),
      state: () => keyState(),
    },
  };
  const verdict = verifyCredential(token, [slow, soon], nowMs, null, asker);
  t.same(
    waiting.map((each) => [each.isGone(), each.address(), each.hasAuthenticated(), each.now()]),
    [[false, '192.0.2.1', true, nowMs]],
  );
  t.equal(outcomeOf(await verdict), 'accepted by core');
  t.same(
    waiting.map((each) => each.isGone()),
    [true],
  );
});

t.test('too many that wait are 503, and say so before keys that are unknown elsewhere', async (t) => {
  const token = mintToken({ key, nowMs });
  const full: KeyLookup = { kind: 'busy' };
  t.equal(atOnce(token, [issuer(full)]), 'overloaded');
  t.equal(outcomeOf(await verifyCredential(token, [issuer(later(full)), issuer(unknown, other)], nowMs)), 'overloaded');
  t.equal(atOnce(token, [issuer(full), issuer(unavailable, other)]), 'keys_unavailable');
});
