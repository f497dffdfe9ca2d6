/**
 * Credentials for requests that nobody sent: signed with a key of this process's own, which only the policy under test
 * knows.
 */
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { acceptsKeyId } from '../../decision/token/kid-filter.js';
import type { KeyIdRules, Revocations } from '../../decision/route/policy.js';
import type { JsonObject } from '../../lib/strict-json.js';
import type { KeySource } from '../../ports/auth.js';
import type { CompiledConfig } from '../../config/types.js';
import { readPayload } from '../../decision/token/compact-jws.js';
import { accept, refuse } from '../../lib/result.js';
import { parseSessionToken } from '../../decision/session/token.js';
import type { SessionsInForce } from '../../proxy/auth/verify-session.js';

/** What stands in for every issuer's keys. */
export interface AssumedKeys {
  /** Finds the one key under any id. */
  readonly source: KeySource;
  /** A service token with these claims. */
  readonly token: (keyId: string, claims: JsonObject) => string;
  /** An access token of a session with these claims. */
  readonly sessionToken: (keyId: string, claims: JsonObject) => string;
  /** A token of good form whose signature is another one's. */
  readonly forgedToken: (keyId: string) => string;
}

/** The least that is accepted: it is made anew each time, and nobody outside may use it. */
const modulusLength = 2048;

/** Of the access tokens that the Core makes. */
const sessionVersion = '5';

/** Candidates for an id that the patterns accept and no rule withdraws. */
const maxCandidates = 100;

interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

/** The process's one pair: to make one takes a tenth of a second and more. */
let made: KeyPair | null = null;

function pair(): KeyPair {
  return (made ??= generateKeyPairSync('rsa', { modulusLength }));
}

/** Makes the key when it is first asked for. */
export function createAssumedKeys(): AssumedKeys {
  const signed = (keyId: string, claims: JsonObject, header: JsonObject = {}): string => {
    const input = `${encode({ alg: 'RS256', kid: keyId, typ: 'JWT', ...header })}.${encode(claims)}`;
    return `${input}.${sign('RSA-SHA256', Buffer.from(input), pair().privateKey).toString('base64url')}`;
  };
  return {
    source: {
      find: (keyId) => ({ kind: 'found', key: { keyId, key: pair().publicKey } }),
      state: () => ({
        issuer: '',
        usable: true,
        stale: false,
        ageMs: 0,
        servesForMs: null,
        stalePart: null,
        keys: [],
        withdrawn: [],
        emptySet: null,
        lastError: null,
        waiting: 0,
      }),
    },
    token: (keyId, claims) => signed(keyId, claims),
    sessionToken: (keyId, claims) => signed(keyId, claims, { version: sessionVersion }),
    forgedToken: (keyId) => {
      const [header = '', payload = ''] = signed(keyId, { sub: 'forged' }).split('.');
      const [, , signature = ''] = signed(keyId, { sub: 'another' }).split('.');
      return `${header}.${payload}.${signature}`;
    },
  };
}

/** A key id that the rules accept and that is not revoked, where there is one. */
export function acceptedKeyId(rules: KeyIdRules, revoked: Revocations): string {
  const candidates = rules.accept.flatMap((pattern) =>
    pattern.endsWith('*') ? namesBeginning(pattern.slice(0, -1)) : [pattern],
  );
  const accepted = candidates.filter((keyId) => acceptsKeyId(rules, keyId));
  return accepted.find((keyId) => !revoked.keyIds.has(keyId)) ?? accepted[0] ?? 'd-assumed';
}

function namesBeginning(start: string): readonly string[] {
  return Array.from({ length: maxCandidates }, (_, index) =>
    index === 0 ? `${start}assumed` : `${start}assumed-${index}`,
  );
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** Stands in for the Core and its SDK: vouches for every session that the assumed key signed. */
export function assumedSessions({ sessions: settings }: CompiledConfig, keys: AssumedKeys): SessionsInForce | null {
  if (settings === null) return null;
  return {
    settings,
    keys: keys.source,
    verifier: {
      verify: (accessToken) => {
        const token = parseSessionToken(accessToken);
        const payload = token.ok ? readPayload(token.value) : token;
        const userId = payload.ok ? payload.value['sub'] : undefined;
        return Promise.resolve(
          payload.ok && typeof userId === 'string'
            ? accept({ userId, claims: payload.value, renewed: null })
            : refuse('refused'),
        );
      },
    },
  };
}
