import type { Socket } from 'node:net';
import dataHandler from 'ioredis/built/DataHandler.js';
import { ReplyMeter } from './reply-meter.js';

/** Bytes in which the largest reply comes whole: a list of revocations has 10,000 records of 8 KiB. */
const largestReplyBytes = 96 * 1024 * 1024;

/** Connections that are guarded. */
const guarded = new WeakSet<object>();

/**
 * Ends a connection that brings more than a reply can be, and no end: ioredis holds all of it until the end. What comes
 * is looked at before ioredis decodes it, for which ioredis asks by `stream.prependListener('data', …)`.
 */
export function guardReplies(stream: Socket, maxReplyBytes = largestReplyBytes): void {
  guarded.add(stream);
  const meter = new ReplyMeter(maxReplyBytes);
  const prepend = stream.prependListener.bind(stream);
  const prependMetered = (event: string, listener: (chunk: Buffer) => void): Socket => {
    if (event !== 'data') return prepend(event, listener);
    return prepend(event, (chunk: Buffer) => {
      if (stream.destroyed) return;
      try {
        meter.take(chunk);
      } catch (error) {
        stream.destroy(error as Error);
        return;
      }
      listener(chunk);
    });
  };
  stream.prependListener = prependMetered as Socket['prependListener'];
}

/** What is used of the class beside its documented interface. */
interface Internals {
  readonly redis: { readonly stream: Socket };
  dispatch: (handle: () => void) => void;
}

/** What its module is to Node, whatever TypeScript makes of it. */
interface CommonJs {
  readonly default: { readonly prototype: Internals };
}

const { prototype } = (dataHandler as unknown as CommonJs).default;
const dispatchAsEver = prototype.dispatch;

/**
 * Takes the place of `dispatch`, by which ioredis hands on each whole reply. It throws anew in a later turn what its
 * handling of a reply throws, such as of a null that nobody asked for, and that would end the process. A server that
 * sends such a reply cannot be followed any more, so the connection ends; what came behind that reply counts for
 * nothing. Connections that others in this process have made are left to ioredis.
 */
prototype.dispatch = function dispatch(this: Internals, handle): void {
  const { stream } = this.redis;
  if (!guarded.has(stream)) {
    dispatchAsEver.call(this, handle);
    return;
  }
  if (stream.destroyed) return;
  try {
    handle();
  } catch (error) {
    stream.destroy(new Error('the server sends what is no reply to what it was asked', { cause: error }));
  }
};
