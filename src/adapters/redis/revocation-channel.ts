import type { Redis } from 'ioredis';
import type { RevocationSubscription } from '../../ports/revocations.js';
import { createConnection } from './client/connection.js';
import { nameOf } from './topology/discovery.js';
import type { RedisAddress, RedisSettings } from './client/settings.js';

/** Pause between two attempts to connect or to subscribe, milliseconds. */
const pauseMs = 500;
/** Bytes in which a message comes whole: it holds hardly anything, and nothing times a connection that listens. */
const maxReplyBytes = 64 * 1024;

/**
 * Listens on a channel, on a connection of its own: one that listens can ask nothing. What a message says counts for
 * nothing; it calls for a look. A connection that has died without a word is not noticed here.
 *
 * @param whereNow asked at each `refresh`: a fail-over moves the store.
 */
export function subscribeToRevocations(
  settings: RedisSettings,
  channel: string,
  whereNow: () => RedisAddress | null,
  onNews: () => void,
): RevocationSubscription {
  let open: { readonly name: string; readonly connection: Redis } | null = null;
  let isSubscribed = false;
  let closed = false;
  const news: RevocationSubscription = {
    refresh: () => {
      const address = whereNow();
      if (closed || address === null || open?.name === nameOf(address)) return;
      hangUp();
      open = { name: nameOf(address), connection: connect(address) };
    },
    isOpen: () => isSubscribed,
    close: () => {
      closed = true;
      hangUp();
    },
  };
  news.refresh();
  return news;

  function connect(address: RedisAddress): Redis {
    const connection = createConnection(settings, address, () => pauseMs * (0.5 + Math.random() / 2), {
      maxReplyBytes,
    });
    connection.on('error', ignore);
    connection.on('message', onNews);
    connection.on('close', () => {
      if (open?.connection === connection) isSubscribed = false;
    });
    connection.on('ready', () => {
      connection.subscribe(channel).then(
        () => {
          if (open?.connection !== connection) return;
          isSubscribed = true;
          // What was said while nobody listened.
          onNews();
        },
        () => {
          // A user without the right to it may get it yet.
          const retry = setTimeout(() => connection.disconnect(true), 10 * pauseMs);
          retry.unref();
        },
      );
    });
    connection.connect().catch(ignore);
    return connection;
  }

  function hangUp(): void {
    isSubscribed = false;
    const connection = open?.connection;
    open = null;
    connection?.disconnect(false);
  }
}

function ignore(): void {
  // Whoever asks for the store's state learns what is wrong with it; without news there is the next look.
}
