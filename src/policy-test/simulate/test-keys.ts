/**
 * Credentials for requests that nobody sent: signed with a key of this process's own, which only the policy under test
 * knows.
 */
import { constants, generateKeyPair, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { acceptsKeyId } from '../../decision/token/kid-filter.js';
import { absentType, type Algorithm } from '../../decision/token/profiles.js';
import type { IssuerRules, KeyIdRules, Revocations } from '../../decision/route/policy.js';
import type { JsonObject } from '../../lib/strict-json.js';
import type { KeySource } from '../../ports/auth.js';
import type { CompiledConfig } from '../../config/types.js';
import { readPayload } from '../../decision/token/compact-jws.js';
import { accept, refuse } from '../../lib/result.js';
import { parseSessionToken } from '../../decision/session/token.js';
import type { ActiveSessions } from '../../proxy/auth/credentials/session.js';

/** What stands in for every issuer's keys. */
export interface AssumedKeys {
  /** Finds the one key under any id: for sessions, and for Cores. */
  readonly source: KeySource;
  /** The same for an issuer, with a key for one of its algorithms. */
  readonly sourceOf: (issuer: { readonly rules: SigningRules }) => KeySource;
  /** A service token with these claims, by the Core unless rules are given. */
  readonly token: (keyId: string, claims: JsonObject, rules?: SigningRules) => string;
  /** An access token of a session with these claims. */
  readonly sessionToken: (keyId: string, claims: JsonObject) => string;
  /** A token of good form whose signature is another one's. */
  readonly forgedToken: (keyId: string, rules?: SigningRules) => string;
}

/** The least that is accepted: it is made anew each time, and nobody outside may use it. */
const modulusLength = 2048;

/** Of the access tokens that the Core makes. */
const sessionVersion = '5';

/** Candidates for an id that the patterns accept and no rule revokes. */
const maxCandidates = 100;

interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

/** The part of an issuer's rules that says how its tokens are signed. */
type SigningRules = Pick<IssuerRules, 'profile' | 'algorithms' | 'headerTypes' | 'issuer' | 'expectedIssuer'>;

const coreSigning: SigningRules = {
  profile: 'core',
  algorithms: new Set(['RS256']),
  headerTypes: new Set(['jwt']),
  issuer: '',
  expectedIssuer: '',
};

/** The process's pairs: to make one of RSA takes a tenth of a second and more. */
const made = new Map<string, KeyPair>();

function pairOf(rules: SigningRules): KeyPair {
  const { make } = pairKinds[algorithmOf(rules)];
  const name = pairName(rules);
  const known = made.get(name) ?? make();
  made.set(name, known);
  return known;
}

/**
 * Issuers share a pair: by `iss` one takes no token of another. An issuer that takes any `iss` has one of its own, or
 * it would take what others are said to have made.
 */
function pairName(rules: SigningRules): string {
  const { name } = pairKinds[algorithmOf(rules)];
  return rules.expectedIssuer === null ? `${name} of ${rules.issuer}` : name;
}

interface PairKind {
  readonly name: string;
  readonly make: () => KeyPair;
}

const rsaPair: PairKind = { name: 'RSA', make: () => generateKeyPairSync('rsa', { modulusLength }) };

function ecPair(namedCurve: string): PairKind {
  return { name: namedCurve, make: () => generateKeyPairSync('ec', { namedCurve }) };
}

const pairKinds: Readonly<Record<Algorithm, PairKind>> = {
  RS256: rsaPair,
  RS384: rsaPair,
  RS512: rsaPair,
  PS256: rsaPair,
  PS384: rsaPair,
  PS512: rsaPair,
  ES256: ecPair('P-256'),
  ES384: ecPair('P-384'),
  ES512: ecPair('P-521'),
  EdDSA: { name: 'Ed25519', make: () => generateKeyPairSync('ed25519') },
};

/**
 * Makes the pairs for these issuers' tokens, and for sessions, away from the event loop: one of RSA takes long enough
 * to be noticed by callers of a proxy that serves.
 */
export async function prepareAssumedKeys(issuers: readonly { readonly rules: SigningRules }[]): Promise<void> {
  for (const rules of [coreSigning, ...issuers.map((issuer) => issuer.rules)]) {
    const name = pairName(rules);
    if (pairKinds[algorithmOf(rules)] !== rsaPair || made.has(name)) continue;
    made.set(
      name,
      await new Promise<KeyPair>((resolve, reject) => {
        generateKeyPair('rsa', { modulusLength }, (error, publicKey, privateKey) => {
          if (error === null) resolve({ publicKey, privateKey });
          else reject(error);
        });
      }),
    );
  }
}

function signatureOf(input: string, rules: SigningRules): string {
  const algorithm = algorithmOf(rules);
  const key = pairOf(rules).privateKey;
  const hash = algorithm === 'EdDSA' ? null : `sha${algorithm.slice(2)}`;
  const options = algorithm.startsWith('PS')
    ? { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
    : { key, dsaEncoding: 'ieee-p1363' as const };
  return sign(hash, Buffer.from(input), options).toString('base64url');
}

/** RS256 where it counts, for one pair is enough then; a pair of its own is made sooner for a curve. */
function algorithmOf({ algorithms, expectedIssuer }: SigningRules): Algorithm {
  const [first = 'RS256', ...others] = algorithms;
  if (expectedIssuer === null) return [first, ...others].find((name) => pairKinds[name] !== rsaPair) ?? first;
  return algorithms.has('RS256') ? 'RS256' : first;
}

function typeOf({ profile, headerTypes }: SigningRules): JsonObject {
  if (profile === 'core') return { typ: 'JWT' };
  const [named] = [...headerTypes].filter((type) => type !== absentType);
  return headerTypes.has(absentType) || named === undefined ? {} : { typ: named };
}

/** Makes the key when it is first asked for. */
export function createAssumedKeys(): AssumedKeys {
  const signed = (keyId: string, claims: JsonObject, rules: SigningRules, header: JsonObject = {}): string => {
    const algorithm = algorithmOf(rules);
    const input = `${encode({ alg: algorithm, kid: keyId, ...typeOf(rules), ...header })}.${encode(claims)}`;
    return `${input}.${signatureOf(input, rules)}`;
  };
  const sourceOf: AssumedKeys['sourceOf'] = ({ rules }) => {
    const algorithm = algorithmOf(rules);
    return {
      find: (keyId) => ({ kind: 'found', key: { keyId, algorithm, key: pairOf(rules).publicKey } }),
      state: () => ({
        issuer: '',
        usable: true,
        stale: false,
        ageMs: 0,
        servesForMs: null,
        nextFetchMs: null,
        stalePart: null,
        keys: [],
        withdrawn: [],
        emptySet: null,
        lastError: null,
        waiting: 0,
        metadata: null,
      }),
    };
  };
  return {
    source: sourceOf({ rules: coreSigning }),
    sourceOf,
    token: (keyId, claims, rules = coreSigning) => signed(keyId, claims, rules),
    sessionToken: (keyId, claims) => signed(keyId, claims, coreSigning, { version: sessionVersion }),
    forgedToken: (keyId, rules = coreSigning) => {
      const [header = '', payload = ''] = signed(keyId, { sub: 'forged' }, rules).split('.');
      const [, , signature = ''] = signed(keyId, { sub: 'another' }, rules).split('.');
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
export function assumedSessions({ sessions: settings }: CompiledConfig, keys: AssumedKeys): ActiveSessions | null {
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
