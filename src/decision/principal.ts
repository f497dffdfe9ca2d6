/** Who a verified credential speaks for. */
export interface Principal {
  /** What kind of credential it was. */
  readonly kind: 'service' | 'session';
  /** Name of the issuer in the config. */
  readonly issuerName: string;
  /** The `iss` claim. */
  readonly issuer: string;
  /** The `sub` claim: visible ASCII. */
  readonly subject: string;
  /** Permissions in the order of the token; RFC 6749 §3.3 scope-tokens. */
  readonly permissions: readonly string[];
  /** The `jti` claim, where there is one. */
  readonly tokenId: string | null;
  /** The `kid` of the key that verified it. */
  readonly keyId: string;
  /** Seconds since the epoch. */
  readonly expiresAtS: number;
  /** Seconds since the epoch, where the token has an `iat`. */
  readonly issuedAtS: number | null;
}
