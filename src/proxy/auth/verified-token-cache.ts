import type { KeyObject } from 'node:crypto';
import { bearerDigest, headerDigest, usualScheme, type RememberedTokens } from '../../decision/token/credential.js';
import { maxTokenBytes } from '../../decision/token/compact-jws.js';
import type { Principal } from '../../decision/token/principal.js';
import type { TokenLookups } from '../../ports/auth.js';
import type { ActiveIssuer } from './active-config.js';

/** Remembers which tokens were verified, so that one that comes again costs a digest instead of a signature. */
export interface VerifiedTokens extends RememberedTokens {
  /**
   * Whom the token speaks for, or `null` where it has to be verified (again). `digest` is `digestOfHeader`, where that
   * is known.
   */
  readonly find: (token: string, nowMs: number, digest?: string | null) => Principal | null;
  /** Takes in what verifying the token came to. */
  readonly keep: (token: string, verified: VerifiedToken, digest?: string | null) => void;
  /** Forgets everything, and remembers nothing from now on. */
  readonly close: () => void;
  /** Bytes that the entries take, about. */
  readonly bytes: () => number;
  readonly size: () => number;
}

/** A token whose signature and claims held. */
export interface VerifiedToken {
  readonly principal: Principal;
  /** The only issuer that may accept the token, by its header and by whom it says that it is from. */
  readonly issuer: ActiveIssuer;
  /** The key that verified it. */
  readonly key: KeyObject;
  /** When the claims were judged, milliseconds since the epoch. */
  readonly atMs: number;
}

interface Entry extends VerifiedToken {
  readonly endsAtMs: number;
  readonly bytes: number;
  readonly holder: Holder;
  /** Whether it was asked for since eviction last passed it by. */
  isUsed: boolean;
}

/** The entries of one subject, oldest first. */
interface Holder {
  readonly name: string;
  readonly digests: Set<string>;
  readonly oldest: Cursor;
  bytes: number;
  /** Of the subject itself, while it has entries. */
  readonly ownBytes: number;
}

/**
 * Returns the next key, oldest first; `undefined` where there is none. Each key that it returns has to be removed, or
 * put behind all others.
 */
type Cursor = () => string | undefined;

/**
 * An entry without its strings: objects, two map entries and the digest; what each permission takes beside its
 * characters; and a subject beside its name. Measured on Node 20, rounded up. The characters of an entry are counted as
 * its token's, which has all of them.
 */
export const entryBytes = 700;
export const permissionBytes = 40;
export const subjectBytes = 500;

/** Where there is no room left, a subject that holds more than this share makes room by itself. */
const fairShare = 1 / 4;

/** Entries that were used and are passed by before one is evicted all the same. */
const maxSpared = 8;

/**
 * Keeps verified tokens within `maxBytes`. Only accepted ones get in, under a digest of the scheme and the whole token,
 * so that no token stays in memory and no comparison tells how far a guess was right. An entry counts as long as a
 * fresh verification would say the same: its key is still the issuer's, and the clock is between the verification and
 * the end of `exp` and skew. Until then the claims hold as they did at first, because every other limit in time only
 * gets wider. Policy and revocation are judged for each request. A cache belongs to one version of the config: a reload
 * begins with an empty one and closes this one, which a request that began before may hold for hours; `lookups` counts
 * on.
 */
export function createVerifiedTokens(maxBytes: number, lookups: TokenLookups = { hits: 0, misses: 0 }): VerifiedTokens {
  const entries = new Map<string, Entry>();
  const holders = new Map<string, Holder>();
  const oldest = createCursor(() => entries.keys());
  let bytes = 0;
  let isClosed = false;

  return {
    digestOfHeader: (authorization) => {
      const mayHoldToken =
        authorization.startsWith(usualScheme) && authorization.length <= usualScheme.length + maxTokenBytes;
      return mayHoldToken ? headerDigest(authorization) : null;
    },
    has: (digest) => entries.has(digest),
    find: (token, nowMs, known = null) => {
      const digest = known ?? bearerDigest(token);
      const entry = entries.get(digest);
      if (entry === undefined) return null;
      if (nowMs >= entry.endsAtMs || !isStillKey(entry)) {
        remove(digest, entry);
        return null;
      }
      // A clock that was set back may be before `nbf` again.
      if (nowMs < entry.atMs) return null;
      entry.isUsed = true;
      lookups.hits += 1;
      return entry.principal;
    },
    keep: (token, verified, given = null) => {
      // Counted here: what is refused would not have been found in any cache.
      lookups.misses += 1;
      const { principal, issuer, key, atMs } = verified;
      const holder = holderOf(`${issuer.rules.name} ${principal.subject}`);
      const size = entryBytes + token.length + permissionBytes * principal.permissions.length;
      if (isClosed || size + holder.ownBytes > maxBytes) return;
      const digest = given ?? bearerDigest(token);
      const known = entries.get(digest);
      if (known !== undefined) remove(digest, known);
      while (bytes + size + (holders.has(holder.name) ? 0 : holder.ownBytes) > maxBytes) {
        evict(holder.bytes > maxBytes * fairShare ? holder.oldest : oldest);
      }
      const endsAtMs = principal.expiresAtS * 1000 + issuer.rules.clockSkewS * 1000;
      // Each by its name: Node 20 takes a microsecond and more for every member behind a spread.
      entries.set(digest, { principal, issuer, key, atMs, endsAtMs, bytes: size, holder, isUsed: false });
      // It may be new, or have lost its last entry to this one.
      if (!holders.has(holder.name)) {
        holders.set(holder.name, holder);
        bytes += holder.ownBytes;
      }
      holder.digests.add(digest);
      holder.bytes += size;
      bytes += size;
    },
    close: () => {
      isClosed = true;
      entries.clear();
      holders.clear();
      bytes = 0;
    },
    bytes: () => bytes,
    size: () => entries.size,
  };

  function holderOf(name: string): Holder {
    const known = holders.get(name);
    if (known !== undefined) return known;
    const digests = new Set<string>();
    return {
      name,
      digests,
      oldest: createCursor(() => digests.values()),
      bytes: 0,
      ownBytes: subjectBytes + name.length,
    };
  }

  /** Drops the oldest that was not used lately. */
  function evict(next: Cursor): void {
    let spared = 0;
    for (let digest = next(); digest !== undefined; digest = next()) {
      const entry = entries.get(digest);
      if (entry === undefined) continue;
      if (entry.isUsed && spared < maxSpared) {
        spared += 1;
        renew(digest, entry);
        continue;
      }
      remove(digest, entry);
      return;
    }
  }

  /** Puts it behind all others. */
  function renew(digest: string, entry: Entry): void {
    entry.isUsed = false;
    entries.delete(digest);
    entries.set(digest, entry);
    entry.holder.digests.delete(digest);
    entry.holder.digests.add(digest);
  }

  function remove(digest: string, { holder, bytes: size }: Entry): void {
    entries.delete(digest);
    holder.digests.delete(digest);
    holder.bytes -= size;
    bytes -= size;
    if (holder.digests.size > 0) return;
    holders.delete(holder.name);
    bytes -= holder.ownBytes;
  }
}

/** Whether the key that verified it is one of its issuer's now. */
function isStillKey({ issuer, principal, key }: VerifiedToken): boolean {
  const found = issuer.keys.find(principal.keyId, 'now');
  if (found instanceof Promise) {
    // A key source must answer `now` at once. If it does not, the token is verified anew.
    found.catch(() => undefined);
    return false;
  }
  return found.kind === 'found' && found.key.key === key;
}

/**
 * Continues where it stopped. A new iterator for each eviction would step over the places of all entries that were
 * removed since the map was last rebuilt: 25 µs for each token that comes new to a full cache of 32 MiB, and more in a
 * larger one.
 */
function createCursor(keys: () => Iterator<string>): Cursor {
  let left: Iterator<string> | null = null;
  return () => {
    let next = left?.next();
    if (next === undefined || next.done === true) {
      left = keys();
      next = left.next();
    }
    return next.done === true ? undefined : next.value;
  };
}
