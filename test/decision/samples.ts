import type { Approval, IssuerRules, Revocations, Route } from '../../src/decision/route/policy.js';
import { absentType } from '../../src/decision/token/profiles.js';
import type { Principal } from '../../src/decision/token/principal.js';

/** The moment at which the tables of decision tests take place. */
export const nowS = 1_750_000_000;
export const nowMs = nowS * 1000;

/** The rules of the issuer that `baseConfig` names, with its defaults. */
export function issuerRules(overrides: Partial<IssuerRules> = {}): IssuerRules {
  return {
    name: 'core',
    profile: 'core',
    issuer: 'https://api.example.com',
    expectedIssuer: 'https://api.example.com',
    audience: 'orders',
    audiences: new Set(['orders']),
    sources: new Set(['microservice']),
    tokenTypes: new Set(['service']),
    algorithms: new Set(['RS256']),
    headerTypes: new Set(['jwt', absentType]),
    claims: { subject: ['sub'], permissions: ['permissions'], require: [] },
    trustDomain: null,
    clockSkewS: 5,
    maxLifetimeS: 7200,
    keyIds: { accept: ['d-*'], reject: [] },
    binding: 'accept',
    ...overrides,
  };
}

export function principal(overrides: Partial<Principal> = {}): Principal {
  return {
    kind: 'service',
    issuerName: 'core',
    issuer: 'https://api.example.com',
    subject: 'checkout',
    permissions: ['orders:read', 'orders:write'],
    tokenId: null,
    keyId: 'd-1',
    expiresAtS: nowS + 300,
    issuedAtS: nowS,
    ...overrides,
  };
}

export function revocations(overrides: Partial<Revocations> = {}): Revocations {
  return {
    issuer: null,
    keyIds: new Set(),
    subjects: new Set(),
    tokenIds: new Set(),
    tokenDigests: new Set(),
    issuedBeforeS: null,
    ...overrides,
  };
}

export function approval(
  subjects: readonly string[],
  permissions: readonly string[],
  prefixes: readonly string[] = [],
): Approval {
  return { subjects: new Set(subjects), prefixes, permissions };
}

export function route(overrides: Partial<Route> = {}): Route {
  return {
    name: 'list-orders',
    methods: new Set(['GET']),
    paths: [{ text: '/orders', segments: [{ kind: 'literal', text: 'orders' }] }],
    access: 'protected',
    mode: 'enforce',
    acceptsService: true,
    session: null,
    approvals: [approval(['checkout'], ['orders:read'])],
    issuers: null,
    isGrpc: false,
    allowsWebSocket: false,
    origins: null,
    allowsBody: false,
    encodedSlashes: false,
    pathParameters: false,
    forwardsAuthorization: false,
    maxBodyBytes: 1_048_576,
    responseTimeoutMs: 30_000,
    reservation: null,
    clientCertificates: null,
    unreservedBecause: null,
    limits: null,
    ...overrides,
  };
}
