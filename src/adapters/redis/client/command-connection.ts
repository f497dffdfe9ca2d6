import type { Redis } from 'ioredis';
import { authenticate, connectOnce, createDiscoveryClient, withDeadline } from './connection.js';
import type { RedisAddress, RedisSettings } from './settings.js';
import { reasonOf, replyCode } from '../scripts/errors.js';

/**
 * A server that an operator's command asks now and then: it is connected to when it is asked, and again after each
 * loss.
 */
export interface CommandConnection {
  readonly address: RedisAddress;
  /**
   * Rejects with what the server or the system says, or with `DeadlinePassed`: what is sent may have taken effect all
   * the same.
   */
  readonly ask: (...words: readonly [string, ...string[]]) => Promise<unknown>;
  readonly close: () => void;
}

/** Milliseconds that a reply may take, connecting included. */
const replyWithinMs = 3_000;

/** @param kind a Sentinel is told the password only if it asks for one: often it takes none, and refuses it then. */
export function createCommandConnection(
  settings: RedisSettings,
  address: RedisAddress,
  kind: 'server' | 'sentinel',
): CommandConnection {
  let connection: Redis | null = null;

  return {
    address,
    ask: async (...words) => {
      try {
        return await withDeadline(asked(words), replyWithinMs);
      } catch (error) {
        // What it refuses it has read: the connection is good.
        if (replyCode(error) === null) hangUp();
        throw error;
      }
    },
    close: hangUp,
  };

  async function asked([command, ...rest]: readonly [string, ...string[]]): Promise<unknown> {
    const open = connection?.status === 'ready' ? connection : await connect();
    try {
      return await open.call(command, ...rest);
    } catch (error) {
      if (kind !== 'sentinel' || !['NOAUTH', 'NOPERM'].includes(replyCode(error) ?? '')) throw error;
      // A Sentinel that does not take the password either has said by its first reply what is missing.
      await authenticate(open, settings).catch(() => {
        throw error;
      });
      return open.call(command, ...rest);
    }
  }

  async function connect(): Promise<Redis> {
    hangUp();
    const made = createDiscoveryClient(settings, address);
    connection = made;
    await connectOnce(made);
    if (kind === 'server') await authenticate(made, settings);
    return made;
  }

  function hangUp(): void {
    connection?.disconnect(false);
    connection = null;
  }
}

/** `isRefused`: the server said no; else nobody knows whether it did what it was asked for. */
type Reply = { readonly reply: unknown } | { readonly failure: string; readonly isRefused: boolean };

/** Asks, and says in words why there is no reply. Never rejects. */
export async function replyOf(server: CommandConnection, ...words: readonly [string, ...string[]]): Promise<Reply> {
  try {
    return { reply: await server.ask(...words) };
  } catch (error) {
    return { failure: reasonOf(error), isRefused: replyCode(error) !== null };
  }
}
