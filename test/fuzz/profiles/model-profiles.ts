/** docs/issuers.md, the table of profiles: what each takes where the config is silent, and what a header may say. */
import type { Json } from '../model-json.js';
import type { PolicyIssuer, ProfileName } from '../model-policy.js';
import { isVisible } from '../model-text.js';

type Members = ReadonlyMap<string, Json>;

interface Standard {
  readonly algorithms: readonly string[];
  readonly types: readonly string[];
  readonly keyIds: readonly string[];
  readonly permissions: string | null;
}

const standards: Readonly<Record<ProfileName, Standard>> = {
  core: { algorithms: ['RS256'], types: ['JWT', 'absent'], keyIds: ['d-*'], permissions: 'permissions' },
  oauth: { algorithms: ['RS256', 'ES256'], types: ['at+jwt'], keyIds: ['*'], permissions: 'scope' },
  kubernetes: { algorithms: ['RS256', 'ES256'], types: ['JWT', 'absent'], keyIds: ['*'], permissions: null },
  spiffe: {
    algorithms: ['RS256', 'ES256', 'ES384'],
    types: ['JWT', 'JOSE', 'absent'],
    keyIds: ['*'],
    permissions: null,
  },
};

export function standardOf({ profile = 'core' }: Pick<PolicyIssuer, 'profile'>): Standard {
  return standards[profile];
}

export function algorithmsOf(issuer: Pick<PolicyIssuer, 'profile' | 'algorithms'>): readonly string[] {
  return issuer.algorithms ?? standardOf(issuer).algorithms;
}

/** What the receiver is told in the place of `iss`, which a JWT-SVID need not have. */
export function issuerTextOf({ issuer, trust_domain: trustDomain = '' }: PolicyIssuer): string {
  return issuer ?? `spiffe://${trustDomain}`;
}

/** Members that change how a token is read or bring a key along. */
const refusedAlways = ['crit', 'b64', 'jku', 'jwk', 'x5u', 'x5c', 'enc', 'zip'];

/** Whether tokens of this issuer may have such a header. */
export function fitsHeader(header: Members, issuer: PolicyIssuer): boolean {
  const [algorithm, keyId] = [header.get('alg'), header.get('kid')];
  if (typeof algorithm !== 'string' || !algorithmsOf(issuer).includes(algorithm)) return false;
  if (typeof keyId !== 'string' || !isVisible(keyId, 256) || !acceptsKey(issuer, keyId)) return false;
  const others = [...header.keys()].filter((name) => !['alg', 'kid', 'typ'].includes(name));
  if (issuer.profile === 'oauth' ? others.some((name) => refusedAlways.includes(name)) : others.length > 0) {
    return false;
  }
  return fitsType(header.get('typ'), issuer);
}

function fitsType(type: Json | undefined, issuer: PolicyIssuer): boolean {
  const types = issuer.token_typ ?? standardOf(issuer).types;
  if (type === undefined) return types.includes('absent');
  if (typeof type !== 'string') return false;
  // The Core's is compared to the letter.
  if ((issuer.profile ?? 'core') === 'core') return type === 'JWT';
  return types.some((wanted) => wanted !== 'absent' && mediaType(wanted) === mediaType(type));
}

/** RFC 7515 §4.1.9: without regard to case; `application/` may be left out. */
export function mediaType(type: string): string {
  const lower = type.toLowerCase();
  return lower.startsWith('application/') ? lower.slice('application/'.length) : lower;
}

function acceptsKey(issuer: PolicyIssuer, keyId: string): boolean {
  const { accept = standardOf(issuer).keyIds, reject = [] } = issuer.key_ids ?? {};
  const fits = (pattern: string): boolean =>
    pattern.endsWith('*') ? keyId.startsWith(pattern.slice(0, -1)) : keyId === pattern;
  return accept.some(fits) && !reject.some(fits);
}
