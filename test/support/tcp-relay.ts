import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Scope } from './scope.js';

/** Stands between a client and a server on loopback, and misbehaves as networks do. */
export interface TcpRelay {
  readonly port: number;
  /** Connections that were made so far. */
  readonly accepted: () => number;
  /** Connections that are open now. */
  readonly open: () => number;
  /** From now on no byte passes, in either direction, on old connections and on new ones: a black hole. */
  readonly stall: () => void;
  /** Lets pass what came meanwhile, and what comes. */
  readonly resume: () => void;
  /** From now on what clients send passes, and no answer comes back, on old connections and on new ones. */
  readonly holdAnswers: () => void;
  /** From now on no byte passes on the connections that there are; new ones are well. */
  readonly forget: () => void;
  /** Ends every connection; new ones are taken. */
  readonly cut: () => void;
  /** Resets every connection with the client, as a host does that knows nothing of it. */
  readonly reset: () => void;
  /** Sends clients what the server never sent, on the connections that there are. */
  readonly inject: (bytes: Buffer) => void;
  /** Cuts once, when a client has sent this text: before the server got it, or when the server has answered it. */
  readonly cutAt: (text: string, moment: 'before' | 'after') => void;
  /** From now on answers are late by so many milliseconds; 0 ends it. */
  readonly lag: (ms: number) => void;
  /** From now on answers come as this makes them; `null` ends it. */
  readonly alter: (change: ((answer: Buffer) => Buffer) | null) => void;
  /** Where new connections lead to. */
  readonly leadTo: (port: number) => void;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

export async function startRelay(t: Scope, targetPort: number): Promise<TcpRelay> {
  let target = targetPort;
  let stalled = false;
  let answersHeld = false;
  let accepted = 0;
  let lagMs = 0;
  let change: ((answer: Buffer) => Buffer) | null = null;
  let trap: { readonly text: string; readonly moment: 'before' | 'after'; sprung: boolean } | null = null;
  const pairs = new Set<Pair>();

  const listener = createServer((client) => {
    accepted += 1;
    const pair = { client, server: connect(target, '127.0.0.1') };
    pairs.add(pair);
    client.on('data', (bytes) => {
      if (trap?.sprung === false && bytes.includes(trap.text)) trap.sprung = true;
      if (trap?.sprung === true && trap.moment === 'before') spring();
      else pair.server.write(bytes);
    });
    pair.server.on('data', (bytes) => {
      if (trap?.sprung === true) spring();
      else answer(client, change === null ? bytes : change(bytes));
    });
    for (const socket of [pair.client, pair.server]) {
      socket.on('error', () => undefined);
      socket.on('close', () => end(pair));
      if (stalled) socket.pause();
    }
    if (answersHeld) pair.server.pause();
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.teardown(() => {
    cut();
    listener.close();
  });

  function answer(client: Socket, bytes: Buffer): void {
    if (lagMs === 0) client.write(bytes);
    else setTimeout(() => client.write(bytes), lagMs);
  }

  function spring(): void {
    trap = null;
    cut();
  }

  function end(pair: Pair): void {
    pairs.delete(pair);
    pair.client.destroy();
    pair.server.destroy();
  }

  function cut(): void {
    for (const pair of pairs) end(pair);
  }

  return {
    port: (listener.address() as AddressInfo).port,
    accepted: () => accepted,
    open: () => pairs.size,
    stall: () => {
      stalled = true;
      for (const { client, server } of pairs) {
        client.pause();
        server.pause();
      }
    },
    holdAnswers: () => {
      answersHeld = true;
      for (const { server } of pairs) server.pause();
    },
    resume: () => {
      stalled = false;
      answersHeld = false;
      for (const { client, server } of pairs) {
        client.resume();
        server.resume();
      }
    },
    forget: () => {
      for (const { client, server } of pairs) {
        client.pause();
        server.pause();
      }
    },
    cut,
    reset: () => {
      for (const { client } of pairs) client.resetAndDestroy();
    },
    inject: (bytes) => {
      for (const { client } of pairs) client.write(bytes);
    },
    cutAt: (text, moment) => {
      trap = { text, moment, sprung: false };
    },
    lag: (ms) => {
      lagMs = ms;
    },
    alter: (next) => {
      change = next;
    },
    leadTo: (port) => {
      target = port;
    },
  };
}
