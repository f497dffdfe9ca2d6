/** The callers' listeners of a primary, which serves no connection itself. */
import { createServer, type AddressInfo, type Server } from 'node:net';
import type { CompiledConfig, HostPort, SocketPlace } from '../../config/types.js';
import { acceptQueue } from '../../proxy/inbound/listener.js';
import { openUnixSocket } from '../../proxy/inbound/unix-socket.js';
import { stopAccepting } from '../../proxy/node-internals/server.js';
import type { ListenerName } from '../listeners.js';
import type { DrainedPart } from './messages.js';
import type { AcceptedConnection } from './handover.js';

export interface CallersListener {
  readonly name: Exclude<ListenerName, 'admin' | 'probes'>;
  readonly part: DrainedPart;
  readonly place: HostPort;
  readonly listen: () => Promise<AddressInfo>;
  /** Accepts nothing more; resolves when the last connection is a worker's. */
  readonly stop: (withinMs: number) => Promise<void>;
}

/** In the order in which workers number them. */
export function createCallersListeners(
  { listen, servesCallers, egress, decide }: CompiledConfig,
  give: (accepted: AcceptedConnection) => void,
): readonly CallersListener[] {
  const places: readonly (Pick<CallersListener, 'name' | 'part' | 'place'> & {
    readonly socket: SocketPlace | null;
  })[] = [
    ...(servesCallers ? [{ name: 'proxy' as const, part: 'proxy' as const, place: listen, socket: null }] : []),
    ...(egress === null
      ? []
      : [{ name: 'egress' as const, part: 'others' as const, place: egress.listen, socket: egress.socket }]),
    ...decide.map((listener) => ({
      name: 'decide' as const,
      part: 'others' as const,
      place: listener.listen,
      socket: null,
    })),
  ];
  return places.map(({ socket: unixSocket, ...listener }, index) => {
    // What comes in is read by the worker alone.
    const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => {
      socket.on('error', () => undefined);
      give({ listener: index, socket });
    });
    return {
      ...listener,
      listen: async () => {
        if (unixSocket === null) {
          const { host, port } = listener.place;
          return listenOn(server, { host, port });
        }
        const { path } = unixSocket;
        return openUnixSocket(unixSocket, () => listenOn(server, { path }));
      },
      stop: async (withinMs) =>
        new Promise((resolve) => {
          if (server.listening) stopAccepting(server, withinMs, { onClosed: resolve });
          else resolve();
        }),
    };
  });
}

async function listenOn(
  server: Server,
  place: { readonly host: string; readonly port: number } | { readonly path: string },
): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ ...place, backlog: acceptQueue }, () => {
      server.off('error', reject);
      // Out of file descriptors: what is accepted later may be had.
      server.on('error', () => undefined);
      resolve();
    });
  });
  const address = server.address();
  if (address === null) throw new Error('the listener has no address');
  return typeof address === 'string' ? { address: `unix:${address}`, family: 'unix', port: 0 } : address;
}
