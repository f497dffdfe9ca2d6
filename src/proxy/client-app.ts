import type { RequestListener, Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { fastify, type FastifyListenOptions } from 'fastify';
import { withoutSchemas } from './inbound/no-schemas.js';
import { exchangeOf } from './inbound/http1-request.js';
import { watchForLateHeads } from './node-internals/server.js';

interface ClientAppDeps {
  /** What Fastify stands on, with all its limits set. */
  readonly server: Server;
  /** Takes every request with its response, before anything of it was read. */
  readonly onRequest: RequestListener;
  readonly onClientError: (error: Error, socket: Socket) => void;
}

/** The application of Fastify that clients talk to. */
interface ClientApp {
  /** Rejects where the address cannot be had. */
  readonly listen: (options: FastifyListenOptions) => Promise<AddressInfo>;
  /** Serves without an address: another process accepts the connections. */
  readonly adopt: () => Promise<void>;
  /** Leads a request that Node announces by another event than `request` to the same hook. */
  readonly route: RequestListener;
  readonly close: () => Promise<void>;
}

/** The only path that Fastify's router is shown. */
const onlyPath = '/';

/**
 * Creates the application. It owns the life of the server, and its `onRequest` hook is where requests of HTTP/1.1 come
 * in; there each is taken over, and nothing of Fastify runs after that. The router is shown one path, whatever was
 * asked for, so that it can read no request in another way than it is judged. HTTP/2 does not come by here (ADR 27).
 */
export function createClientApp({ server, onRequest, onClientError }: ClientAppDeps): ClientApp {
  let route: RequestListener = () => undefined;
  const app = fastify({
    serverFactory: (listener) => {
      route = listener;
      return server.on('request', listener);
    },
    rewriteUrl: () => onlyPath,
    clientErrorHandler: onClientError,
    genReqId: () => '',
    exposeHeadRoutes: false,
    schemaController: withoutSchemas,
    // Who comes while this closes is told by us.
    return503OnClosing: false,
  });
  app.addHook('onRequest', ({ raw }, reply) => {
    onRequest(raw, reply.raw);
    reply.hijack();
  });
  app.setErrorHandler((error, { raw }, reply) => {
    reply.hijack();
    const exchange = exchangeOf(raw);
    if (exchange === null) raw.socket.destroy();
    else exchange.fail(error);
  });
  const unreachable = (): never => {
    throw new Error('a request was not taken over');
  };
  app.all(onlyPath, unreachable);
  // Methods that Fastify has no routes for.
  app.setNotFoundHandler(unreachable);
  return {
    listen: async (options) => {
      await app.listen(options);
      const address = server.address();
      if (address === null) throw new Error('the listener has no address');
      // That of a Unix socket is its path.
      return typeof address === 'string' ? { address: `unix:${address}`, family: 'unix', port: 0 } : address;
    },
    adopt: async () => {
      await app.ready();
      watchForLateHeads(server);
    },
    route: (req, res) => {
      route(req, res);
    },
    close: async () => app.close(),
  };
}
