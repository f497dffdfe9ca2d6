import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import httpProxy from '@fastify/http-proxy';
import { fastify } from 'fastify';
import { exchangeOf } from '../inbound/incoming-request.js';

export interface FrameDeps {
  /** Makes the server that Fastify stands on. Its requests come through `enter`, when they are judged. */
  readonly serve: () => Server;
  readonly onClientError: (error: Error, socket: Socket) => void;
}

export interface Frame {
  readonly ready: () => Promise<void>;
  /** Leads a request through Fastify and http-proxy to its `forward`. */
  readonly enter: (req: IncomingMessage, res: ServerResponse) => void;
  readonly close: () => Promise<void>;
}

/** http-proxy wants to know where its requests go; ours do not go there. */
const constantUpstream = 'http://upstream.invalid';

const constantFields = Object.freeze({});

/**
 * Fastify with http-proxy. Both are shown `GET /` without fields or body, whatever the caller sent, so that none of
 * their routers, parsers and header copies can read a request in another way than it was judged, or change what is sent
 * on.
 */
export function createFrame({ serve, onClientError }: FrameDeps): Frame {
  let route: RequestListener = () => undefined;
  const app = fastify({
    serverFactory: (listener) => {
      route = listener;
      return serve();
    },
    rewriteUrl: (req) => {
      req.method = 'GET';
      req.headers = constantFields;
      return '/';
    },
    clientErrorHandler: onClientError,
    genReqId: () => '',
    exposeHeadRoutes: false,
    // Who comes while this closes is told by us.
    return503OnClosing: false,
  });
  app.setErrorHandler((error, request, reply) => {
    reply.hijack();
    exchangeOf(request.raw)?.fail(error);
  });
  void app.register(httpProxy, {
    upstream: constantUpstream,
    routes: ['/'],
    httpMethods: ['GET'],
    proxyPayloads: false,
    // Not its `handler`: before that it parses four URLs to find out where the request would go.
    preHandler: (request, reply) => {
      reply.hijack();
      exchangeOf(request.raw)?.forward();
    },
  });
  return {
    ready: async () => {
      await app.ready();
    },
    enter: (req, res) => {
      route(req, res);
    },
    close: async () => app.close(),
  };
}
