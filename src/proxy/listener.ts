/** Certificates of the listener, as PEM texts. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  /** The CA of client certificates, or `null` where none are asked for. */
  readonly clientCa: string | null;
  /** A certificate that does not verify is refused in both modes. */
  readonly clientAuth: 'require' | 'optional';
}
