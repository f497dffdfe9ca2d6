import type { Socket } from 'node:net';
import dataHandler from 'ioredis/built/DataHandler.js';

/** Bytes in which the largest reply comes whole: a list of revocations has 10,000 records of 8 KiB. */
const largestReplyBytes = 96 * 1024 * 1024;

/**
 * Bytes that came on a connection since the last whole reply was taken from it; `bytesRead` of a TLS connection counts
 * nothing.
 */
const untaken = new WeakMap<object, number>();

/** Ends a connection that brings more than a reply can be, and no end: ioredis holds all of it until the end. */
export function boundReplies(stream: Socket, maxReplyBytes = largestReplyBytes): void {
  stream.on('data', (chunk: Buffer) => {
    const bytes = (untaken.get(stream) ?? 0) + chunk.length;
    untaken.set(stream, bytes);
    if (bytes > maxReplyBytes) stream.destroy(new Error('the server sends a reply without an end'));
  });
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

/**
 * Takes the place of `dispatch`, by which ioredis hands on each whole reply. It throws anew in a later turn what its
 * handling of a reply throws, such as of a null that nobody asked for, and that would end the process. A server that
 * sends such a reply cannot be followed any more, so the connection ends; what came behind that reply counts for
 * nothing.
 */
(dataHandler as unknown as CommonJs).default.prototype.dispatch = function dispatch(this: Internals, handle): void {
  const { stream } = this.redis;
  if (stream.destroyed) return;
  untaken.set(stream, 0);
  try {
    handle();
  } catch (error) {
    stream.destroy(new Error('the server sends what is no reply to what it was asked', { cause: error }));
  }
};
