/** The policy that the rows are explained by, its keys, and credentials for it. */
import { keyState } from '../../support/key-state.js';
import { decideOnly } from '../../../src/policy-test/simulate/offline-config.js';
import type { Reason } from '../../../src/decision/denial.js';
import { accept, refuse } from '../../../src/lib/result.js';
import type { KeyLookup, KeySource, SessionRefusal } from '../../../src/ports/auth.js';
import type { ActiveConfig } from '../../../src/proxy/auth/active-config.js';
import { compiled } from '../../proxy/harness.js';
import { rsaKey } from '../../support/keys.js';
import { mintToken, signToken, type Claims } from '../../support/tokens.js';
import type { ConfigTree } from '../../support/proxy-process.js';

export const key = rsaKey();
export const nowMs = Date.now();
export const nowS = Math.floor(nowMs / 1_000);

const routes = [
  {
    name: 'orders',
    methods: ['GET'],
    path: '/orders',
    subjects: ['checkout'],
    permissions: ['orders:read', 'orders:list'],
  },
  {
    name: 'write',
    methods: ['POST'],
    path: '/orders',
    subjects: ['checkout'],
    permissions: [],
    max_body: '10B',
    single_use: true,
    idempotency: { mode: 'required', max_body: '10B' },
  },
  { name: 'calls', grpc: 'shop.Orders', subjects: ['checkout'], permissions: [], idempotency: 'none' },
  {
    name: 'me',
    methods: ['GET', 'DELETE'],
    path: '/me',
    accept: ['session'],
    session: { claims: { role: 'support' } },
  },
  {
    name: 'both',
    methods: ['GET'],
    path: '/both',
    accept: ['service', 'session'],
    subjects: ['checkout'],
    permissions: [],
    session: { claims: {} },
  },
  {
    name: 'feed',
    methods: ['GET'],
    path: '/feed',
    subjects: ['checkout'],
    permissions: [],
    websocket: true,
    origins: ['https://app.example.com'],
  },
  { name: 'self', methods: ['GET'], path: '/self/@me', access: 'public' },
  { name: 'eu', methods: ['GET'], path: '/eu', subjects: ['checkout'], permissions: [], issuers: ['eu'] },
];

const rules = { audience: 'orders', source: 'microservice', token_type: 'service' };
const config: ConfigTree = {
  routes,
  store: { memory: {} },
  receiver: { case_sensitive: true, strict_slash: true },
  listen: { max_target: '100B', max_header_bytes: '4KiB', underscore_fields: 'refuse' },
  issuers: {
    core: { issuer: 'https://api.example.com', ...rules, key_ids: { accept: ['d-*'], reject: ['d-old'] } },
    eu: { issuer: 'https://eu.example.com', ...rules, audience: 'eu', key_ids: { accept: ['eu-*'] } },
    idp: {
      issuer: 'https://idp.example.com',
      profile: 'oauth',
      audience: ['orders', 'api'],
      key_ids: { accept: ['idp-*'] },
      algorithms: ['RS256', 'ES256'],
      token_typ: ['at+jwt', 'JWT'],
      jwks_file: '/idp.json',
      claims: { permissions: 'realm.roles', require: { tenant: 'acme', 'plan.level': [1, 2] } },
    },
    cluster: {
      issuer: 'https://k8s.example.com',
      profile: 'kubernetes',
      audience: 'orders',
      key_ids: { accept: ['k8s-*'] },
      jwks_file: '/k8s.json',
    },
    bound: { issuer: 'https://bound.example.com', ...rules, key_ids: { accept: ['bound-*'] }, binding: 'require' },
    spire: {
      profile: 'spiffe',
      trust_domain: 'shop.example',
      audience: 'orders',
      key_ids: { accept: ['spire-*', 'd-shared'] },
      bundle_file: '/bundle.json',
    },
  },
  sessions: { core_url: 'http://127.0.0.1:3567', api_domain: 'https://api.example.com' },
  revoked: {
    key_ids: ['d-revoked'],
    subjects: ['mallory'],
    token_ids: ['stolen'],
    issued_before: '2020-01-01T00:00:00Z',
  },
};

const found: KeyLookup = { kind: 'found', key: { keyId: 'd-1', algorithm: 'RS256', key: key.publicKey } };
const lookups: Readonly<Record<string, KeyLookup>> = {
  'd-1': found,
  'eu-1': found,
  'bound-1': found,
  'idp-1': found,
  'k8s-1': found,
  'spire-1': found,
  'd-shared': found,
  'd-revoked': found,
  'd-other': { kind: 'found', key: { keyId: 'd-other', algorithm: 'RS256', key: rsaKey('d-2').publicKey } },
  'd-away': { kind: 'unavailable' },
};
const source: KeySource = {
  find: (keyId) => lookups[keyId] ?? { kind: 'unknown' },
  state: () => keyState({ lastError: 'ECONNREFUSED', keys: [{ keyId: 'd-1', ageMs: 0, accepted: true }] }),
};
/** Knows none of the keys that other issuers have ids for, too. */
const ownSource: KeySource = {
  find: (keyId) => (keyId === 'spire-1' ? found : { kind: 'unknown' }),
  state: source.state,
};

/** The policy, and a Core whose answer to every session is this. */
export function policy(sdk: SessionRefusal | null, overrides: ConfigTree = {}): ActiveConfig {
  const settings = compiled({ ...config, ...overrides });
  const { sessions } = settings;
  const activeConfig =
    sessions === null
      ? null
      : {
          settings: sessions,
          keys: source,
          verifier: {
            verify: () =>
              Promise.resolve(
                sdk === null ? accept({ userId: 'u-1', claims: { role: 'user' }, renewed: null }) : refuse(sdk),
              ),
          },
        };
  return decideOnly(settings, ({ rules: { name } }) => (name === 'spire' ? ownSource : source), activeConfig);
}

/** A request, the reason that it is refused for, and what is said of it. */
export interface Row {
  readonly reason: Reason;
  readonly name?: string;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly (readonly [string, string])[];
  /** A token; without one a good one, `null` for none at all. */
  readonly token?: string | null;
  readonly sdk?: SessionRefusal;
  readonly body?: string;
  /** What is said besides the reason itself. */
  readonly says: readonly RegExp[];
}

/** In the place of a line: there is no further one, but for what is known of the credential. */
export const none = /^$/;

export const service = (claims: Claims = {}, header: Claims = {}): string => mintToken({ key, nowMs, claims, header });
const sessionClaims = {
  iss: 'https://api.example.com/auth',
  sub: 'u-1',
  iat: nowS,
  exp: nowS + 300,
  sessionHandle: 'h-secret',
  refreshTokenHash1: 'r-secret',
  antiCsrfToken: null,
};
export const session = (claims: Claims = {}, header: Claims = {}): string =>
  signToken(
    JSON.stringify({ alg: 'RS256', kid: 'd-1', typ: 'JWT', version: '5', ...header }),
    JSON.stringify({ ...sessionClaims, ...claims }),
    key.privateKey,
  );
export const upgrade: NonNullable<Row['headers']> = [
  ['Upgrade', 'websocket'],
  ['Connection', 'Upgrade'],
];
