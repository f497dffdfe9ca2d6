import { echoMethod } from './grpc.js';
import type { DevIssuerProfile } from '../../../core-emulator/dev-issuer.js';

/** Whose tokens `dev` has to do with. */
export const devProfiles = ['core', 'oauth', 'kubernetes', 'spiffe'] as const;
export type DevProfile = (typeof devProfiles)[number];

/** Of the SPIFFE IDs of callers and of the demo. */
const devTrustDomain = 'dev.example';

/** What tokens of the issuers that are no Core say in `aud`. */
export function devAudience(profile: DevIssuerProfile): string {
  return profile === 'spiffe' ? `spiffe://${devTrustDomain}/demo` : 'demo';
}

/** What the demo client may ask the token endpoint of `oauth` for: what the demo routes ask of a caller. */
export const devScopes = ['orders:read', 'orders:write', 'read', 'write'] as const;

/** What a token of the Core has to say, whatever name the config gives the issuer. */
export function devClaims(issuerName: string): {
  readonly audience: string;
  readonly source: string;
  readonly tokenType: string;
} {
  return { audience: `dev-${issuerName}`, source: 'sallyport-dev', tokenType: 'service' };
}

/** An issuer of the config, as it would be written for a real one of this profile. */
export function issuerSection(profile: DevProfile, url: string, name: string): object {
  switch (profile) {
    case 'core': {
      const { audience, source, tokenType } = devClaims(name);
      return { issuer: url, audience, source, token_type: tokenType };
    }
    case 'oauth':
      return { profile, issuer: url, audience: devAudience(profile) };
    case 'kubernetes':
      // Without it the keys are asked of the cluster that the proxy is in.
      return {
        profile,
        issuer: url,
        discovery_url: `${url}/.well-known/openid-configuration`,
        audience: devAudience(profile),
      };
    case 'spiffe':
      return {
        profile,
        trust_domain: devTrustDomain,
        bundle_url: `${url}/bundle`,
        audience: devAudience(profile),
      };
  }
}

/** The subject of a caller of that name, as tokens of the profile have it. */
export function devSubject(profile: DevProfile, name: string): string {
  switch (profile) {
    case 'core':
    case 'oauth':
      return name;
    case 'kubernetes':
      return `shop/${name}`;
    case 'spiffe':
      return `spiffe://${devTrustDomain}/${name}`;
  }
}

/** Routes of the demo upstream. */
export function demoRoutes(profile: DevProfile): string {
  const { subjects, permissions } = textsOf(profile);
  return `
routes:
  - name: list-orders
    methods: [GET]
    path: /orders
    subjects: ${subjects('checkout')}
    permissions: ${permissions('orders:read')}
  - name: read-order
    methods: [GET]
    path: /orders/{id}
    subjects: ${subjects('checkout')}
    permissions: ${permissions('orders:read')}
  - name: create-order
    methods: [POST]
    path: /orders
    subjects: ${subjects('checkout')}
    permissions: ${permissions('orders:write')}
    idempotency: required
  - name: read-report
    methods: [GET]
    path: /reports/{id}
    subjects: ${subjects('reporting')}
    permissions: ${permissions('reports:read')}
`;
}

/** Routes of the demo service of gRPC. */
export function grpcRoutes(profile: DevProfile): string {
  const { subjects, permissions } = textsOf(profile);
  return `
routes:
  - name: say
    grpc: ${echoMethod}
    subjects: ${subjects('checkout')}
    permissions: ${permissions('read')}
    idempotency: { mode: none, because: it reads }
`;
}

/** Routes for an upstream of which nothing is known. */
export function anyServiceRoutes(profile: DevProfile): string {
  const { subjects, permissions } = textsOf(profile);
  return `
routes:
  - name: read
    methods: [GET, HEAD]
    path: [/, /**]
    subjects: ${subjects('checkout')}
    permissions: ${permissions('read')}
  - name: write
    methods: [POST, PUT, PATCH, DELETE]
    path: [/, /**]
    subjects: ${subjects('checkout')}
    permissions: ${permissions('write')}
    idempotency: { mode: none, because: this is development }
`;
}

/** Lists of YAML. Tokens of Kubernetes and SPIFFE grant nothing by themselves: who calls is all that they say. */
function textsOf(profile: DevProfile): Readonly<Record<'subjects' | 'permissions', (name: string) => string>> {
  const hasPermissions = profile === 'core' || profile === 'oauth';
  return {
    subjects: (name) => `[${devSubject(profile, name)}]`,
    permissions: (name) => (hasPermissions ? `[${name}]` : '[]'),
  };
}
