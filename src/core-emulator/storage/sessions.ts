import type { Fields } from '../http/body.js';

/** A user session. */
export interface SessionRecord {
  readonly handle: string;
  readonly userId: string;
  /** SHA-256 of the SHA-256 of the refresh token in use, in hexadecimal. */
  readonly refreshTokenHash2: string;
  /** Claims that were put into the access token. */
  readonly userDataInJwt: Fields;
  readonly userDataInDatabase: Fields;
  /** Whether the dynamic key signs its access tokens. */
  readonly usesDynamicKey: boolean;
  /** Milliseconds since the epoch. */
  readonly timeCreated: number;
  readonly expiryMs: number;
}

export interface SessionRecords {
  /** Adds a session, or replaces the one of the same handle. */
  readonly put: (session: SessionRecord) => void;
  readonly byHandle: (handle: string) => SessionRecord | undefined;
  readonly byUser: (userId: string) => readonly SessionRecord[];
  readonly remove: (handle: string) => void;
  /** Forgets sessions that ended before a time. */
  readonly sweep: (nowMs: number) => void;
  readonly all: () => Iterable<SessionRecord>;
}

/** Keeps sessions in memory. */
export function createSessionRecords(): SessionRecords {
  // In the order of their last refresh, which is that of their ends.
  const sessions = new Map<string, SessionRecord>();
  const byUser = new Map<string, Set<string>>();

  const remove = (handle: string): void => {
    const session = sessions.get(handle);
    if (session === undefined) return;
    sessions.delete(handle);
    const handles = byUser.get(session.userId);
    handles?.delete(handle);
    if (handles?.size === 0) byUser.delete(session.userId);
  };

  return {
    put: (session) => {
      remove(session.handle);
      sessions.set(session.handle, session);
      byUser.set(session.userId, (byUser.get(session.userId) ?? new Set()).add(session.handle));
    },
    byHandle: (handle) => sessions.get(handle),
    byUser: (userId) =>
      [...(byUser.get(userId) ?? [])].map((handle) => sessions.get(handle)).filter((session) => session !== undefined),
    remove,
    sweep: (nowMs) => {
      for (const [handle, { expiryMs }] of sessions) {
        if (expiryMs > nowMs) return;
        remove(handle);
      }
    },
    all: () => sessions.values(),
  };
}
