import type { UpstreamSettings } from '../config/compiled.js';
import { createConnector } from './connector.js';
import { publicShareOf, type Access } from './slots.js';
import { Call, type AnswerSink, type CallHost, type CallInLine, type UpstreamRequest } from './upstream-call.js';
import { UpstreamConnection } from './upstream-connection.js';

/** The receiving service, as one version of the config names it. */
export interface Upstream {
  /** Its own name, for the Host field. */
  readonly host: string;
  /**
   * Sends one request, once: whatever fails, nothing is sent again. Where every connection is busy, or as many as public
   * routes may have, it waits in line, no longer than connecting may take. Ends in exactly one `onEnd` or `onFailure`, unless it is cancelled.
   */
  readonly send: (request: UpstreamRequest, answer: AnswerSink) => UpstreamCall;
  /** Says that a reload replaced it: what is under way or in line goes on, and each connection closes when it is idle. */
  readonly retire: () => void;
  /** Breaks off whatever is still under way and closes every connection. */
  readonly close: () => Promise<void>;
  readonly counts: () => UpstreamCounts;
}

/** A request under way. */
export interface UpstreamCall {
  /** Lets the body go on after `AnswerSink.onBody` said `false`. */
  readonly resume: () => void;
  /** Takes it out of the line or breaks it off. The sink hears nothing more. */
  readonly cancel: () => void;
  /** Whether some of the request may have been written; a call that was cancelled before will not be. */
  readonly mayBeSent: () => boolean;
}

export interface UpstreamCounts {
  /** Requests that have a connection. */
  readonly active: number;
  /** Requests that wait for one. */
  readonly waiting: number;
}

/**
 * Opens no connection before the first request, and no more than `max_connections`. The one used last is used next, so
 * that those which a burst needed close when it is over.
 */
export function createUpstream(settings: UpstreamSettings, ca: string | null): Upstream {
  const connector = createConnector(settings, ca);
  const all = new Set<UpstreamConnection>();
  const idle: UpstreamConnection[] = [];
  const line = new Set<CallInLine>();
  let isRetired = false;

  /** Requests on public routes that have a connection: they must not shut out callers with a credential. */
  let publicCount = 0;
  const maxPublic = publicShareOf(settings.maxConnections);

  const discard = async (connection: UpstreamConnection): Promise<void> => {
    all.delete(connection);
    await connection.close();
  };
  const discardIdle = (): void => {
    for (const connection of idle.splice(0)) void discard(connection);
  };
  const open = (): UpstreamConnection | null => {
    if (all.size >= settings.maxConnections) return null;
    const opened = new UpstreamConnection(connector);
    all.add(opened);
    return opened;
  };
  const take = (access: Access): UpstreamConnection | null => {
    if (access === 'public' && publicCount >= maxPublic) return null;
    const connection = idle.pop() ?? open();
    if (connection !== null && access === 'public') publicCount += 1;
    return connection;
  };
  const startNext = (): void => {
    for (const call of line) {
      const connection = take(call.access);
      if (connection === null) continue;
      line.delete(call);
      call.start(connection);
      return;
    }
  };
  const host: CallHost = {
    idleTimeoutMs: settings.idleTimeoutMs,
    release: (connection, access, sound) => {
      if (!all.has(connection)) return;
      if (access === 'public') publicCount -= 1;
      if (sound) idle.push(connection);
      else void discard(connection);
      startNext();
      if (isRetired) discardIdle();
    },
    leaveLine: (call) => line.delete(call),
  };
  return {
    host: new URL(connector.origin).host,
    send: (request, answer) => {
      const call = new Call(request, answer, host);
      const connection = take(request.access);
      if (connection === null) {
        line.add(call);
        call.wait(settings.connectTimeoutMs);
      } else call.start(connection);
      return call;
    },
    retire: () => {
      isRetired = true;
      discardIdle();
    },
    close: async () => {
      isRetired = true;
      idle.length = 0;
      await Promise.all([...all].map(discard));
    },
    counts: () => ({ active: all.size - idle.length, waiting: line.size }),
  };
}
