/** docs/bound-tokens.md: what the sender of a token has to prove. From its words alone. */

/** What came with a token, by how it was made. */
export interface Sent {
  readonly cnf: unknown;
  readonly binding: 'none' | 'accept' | 'require';
  readonly scheme: 'Bearer' | 'DPoP';
  /** Whose proof it is; a thief has a key of its own. */
  readonly proof: 'own' | 'thief' | 'none';
  /**
   * How many minutes ago its nonce was made, and with which key; `null` where it has none. `likened`: with the first,
   * of characters that are those of a nonce in their last byte alone. `cut`: the first characters of one.
   */
  readonly nonce: { readonly minutes: number; readonly key: 'first' | 'second' | 'unknown' | 'likened' | 'cut' } | null;
  readonly certificate: 'own' | 'thief' | 'none';
  /** Whether `listen.dpop` is there, and whether it names a file with keys of nonces. */
  readonly dpop: 'without' | 'with' | 'with nonces';
  /** What the store says of the `jti`. */
  readonly store: 'new' | 'used' | 'unavailable' | 'rejects';
  /** Of which key a proof was shown before, where the request is authorized again. */
  readonly proved: 'own' | 'thief' | 'none' | null;
}

/** The digests of those who send. */
export interface Own {
  readonly key: string;
  readonly thiefsKey: string;
  readonly certificate: string;
}

/** What becomes of it: let through, or with what it is refused. */
export function judgePossession(sent: Sent, own: Own): 200 | 401 | 503 {
  const { cnf, binding, scheme, proved, store } = sent;
  if (binding === 'none') return 200;
  if (cnf === undefined) return binding === 'require' || scheme === 'DPoP' ? 401 : 200;
  if (typeof cnf !== 'object' || cnf === null || Array.isArray(cnf)) return 401;
  const members = Object.entries(cnf);
  if (members.length === 0 || !members.every(([name, value]) => isKnown(name, value))) return 401;
  const { jkt, 'x5t#S256': thumbprint } = Object.fromEntries(members) as Readonly<Record<string, string>>;
  if (thumbprint !== undefined && !(sent.certificate === 'own' && thumbprint === own.certificate)) return 401;
  if (jkt === undefined) return scheme === 'DPoP' ? 401 : 200;
  const keyOf = { own: own.key, thief: own.thiefsKey, none: null };
  if (proved !== null) return keyOf[proved] === jkt ? 200 : 401;
  if (scheme === 'Bearer' || sent.dpop === 'without') return 401;
  if (keyOf[sent.proof] !== jkt) return 401;
  if (sent.dpop === 'with nonces' && !isOurs(sent.nonce)) return 401;
  return store === 'new' ? 200 : store === 'used' ? 401 : 503;
}

function isKnown(name: string, value: unknown): boolean {
  return ['jkt', 'x5t#S256'].includes(name) && typeof value === 'string' && isSha256(value);
}

function isSha256(text: string): boolean {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.length === 32 && bytes.toString('base64url') === text;
}

/** Five minutes; at a sixth, and a minute ahead, clocks and steps decide: neither is drawn. */
function isOurs(nonce: Sent['nonce']): boolean {
  return nonce !== null && ['first', 'second'].includes(nonce.key) && nonce.minutes >= 0 && nonce.minutes <= 5;
}
