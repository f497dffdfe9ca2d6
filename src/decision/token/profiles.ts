/** Which kinds of issuers there are, and what each one's tokens and keys are held to. Data only. */

/** What the rules for an issuer's tokens come from: the contract of the Core, RFC 9068, Kubernetes, or SPIFFE. */
export const profileNames = ['core', 'oauth', 'kubernetes', 'spiffe'] as const;

export type Profile = (typeof profileNames)[number];

/** The signature algorithms (RFC 7518 §3.1, RFC 8037 §3.1) that can be allowed: none with a shared secret. */
export const algorithmNames = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;

export type Algorithm = (typeof algorithmNames)[number];

/** In the place of a `typ` stands that a token's header has none. */
export const absentType = 'absent';

/** Which keys of an issuer's set count. */
export interface KeyRules {
  /** A key verifies one of these: the one that its `kty`, `crv` and `alg` say, or the only one that fits them. */
  readonly algorithms: ReadonlySet<Algorithm>;
  /** What `use` has to say: `sig` may be left out (RFC 7517 §4.2), `jwt-svid` may not (JWT-SVID §4). */
  readonly use: 'sig' | 'jwt-svid';
}

/** Of the Core, and of sessions. */
export const coreKeyRules: KeyRules = { algorithms: new Set(['RS256']), use: 'sig' };

/** Names from the payload inwards: `["realm_access", "roles"]`. */
export type ClaimPath = readonly string[];

/** A further claim that has to be there. */
interface RequiredClaim {
  readonly path: ClaimPath;
  /** The claim is exactly one of these; nothing is converted. */
  readonly values: readonly (string | number | boolean)[];
}

/** Where a profile's tokens say what the policy asks for. */
export interface ClaimRules {
  readonly subject: ClaimPath;
  /** `null` where tokens bear no permissions. */
  readonly permissions: ClaimPath | null;
  readonly require: readonly RequiredClaim[];
}

/** What a profile takes where the config names nothing else. */
interface ProfileDefaults {
  readonly algorithms: readonly Algorithm[];
  /** `typ` of the header as written, without `application/`; `absent` for none. */
  readonly tokenTypes: readonly string[];
  readonly permissions: string | null;
  /** Which `kid`s count. */
  readonly keyIds: readonly string[];
}

/**
 * RFC 9068 §4 has every server take RS256; EC keys of P-256 are the next most common. SPIRE makes keys of RSA, P-256
 * and P-384. No list has two algorithms for one kind of key, so that a key without `alg` verifies exactly one.
 */
export const profileDefaults: Readonly<Record<Profile, ProfileDefaults>> = {
  core: { algorithms: ['RS256'], tokenTypes: ['JWT', absentType], permissions: 'permissions', keyIds: ['d-*'] },
  oauth: { algorithms: ['RS256', 'ES256'], tokenTypes: ['at+jwt'], permissions: 'scope', keyIds: ['*'] },
  kubernetes: {
    algorithms: ['RS256', 'ES256'],
    tokenTypes: ['JWT', absentType],
    permissions: null,
    keyIds: ['*'],
  },
  spiffe: {
    algorithms: ['RS256', 'ES256', 'ES384'],
    tokenTypes: ['JWT', 'JOSE', absentType],
    permissions: null,
    keyIds: ['*'],
  },
};
