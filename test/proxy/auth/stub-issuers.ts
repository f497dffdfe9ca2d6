/** Issuers whose keys a test hands out, and what is found out about a token of theirs. */
import type { KeyObject } from 'node:crypto';
import type { Denial } from '../../../src/decision/denial.js';
import type { IssuerRules } from '../../../src/decision/route/policy.js';
import type { Principal } from '../../../src/decision/token/principal.js';
import type { Result } from '../../../src/lib/result.js';
import type { KeyLookup, KeySource } from '../../../src/ports/auth.js';
import { verifyCredential } from '../../../src/proxy/auth/credentials/service-token.js';
import type { ActiveIssuer } from '../../../src/proxy/auth/active-config.js';
import { issuerRules, nowMs } from '../../decision/samples.js';
import { rsaKey } from '../../support/keys.js';
import { keyState } from '../../support/key-state.js';

type Verdict = Result<Principal, Denial>;

export const key = rsaKey('d-1');
export const otherKey = rsaKey('d-2');

export const found = (publicKey: KeyObject, keyId = 'd-1'): KeyLookup => ({
  kind: 'found',
  key: { keyId, algorithm: 'RS256', key: publicKey },
});
export const unknown: KeyLookup = { kind: 'unknown' };
export const unavailable: KeyLookup = { kind: 'unavailable' };

interface StubSource extends KeySource {
  readonly asked: string[];
}

export function source(answer: (keyId: string) => KeyLookup | Promise<KeyLookup>): StubSource {
  const asked: string[] = [];
  return {
    asked,
    find: (keyId) => {
      asked.push(keyId);
      return answer(keyId);
    },
    state: () => keyState({ issuer: 'stub' }),
  };
}

export function issuer(
  answer: KeyLookup | Promise<KeyLookup>,
  rules: Partial<IssuerRules> = {},
): ActiveIssuer & { readonly keys: StubSource } {
  return { rules: issuerRules(rules), keys: source(() => answer) };
}

export const other: Partial<IssuerRules> = { name: 'other', issuer: 'https://other.example.com' };
export const never = new Promise<KeyLookup>(() => undefined);
export const later = (lookup: KeyLookup): Promise<KeyLookup> =>
  new Promise((resolve) =>
    setImmediate(() => {
      resolve(lookup);
    }),
  );

export function outcomeOf(verdict: Verdict): string {
  return verdict.ok ? `accepted by ${verdict.value.issuerName}` : verdict.error.reason;
}

/** Fails where the answer is a promise: the fast path has to stay one. */
export function atOnce(token: string, issuers: readonly ActiveIssuer[]): string {
  const verdict = verifyCredential(token, issuers, nowMs);
  return verdict instanceof Promise ? 'a promise' : outcomeOf(verdict);
}
