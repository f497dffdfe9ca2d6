/**
 * One table of requests, and what becomes of them by each door: the sidecar, the endpoint that a proxy asks, and the
 * plugin in the application.
 */
import type { FastifyInstance } from 'fastify';
import t from 'tap';
import { startProxyProcess } from '../support/proxy-process.js';
import type { RawResponse, RequestInput } from '../support/raw-client.js';
import { answerOf, checkClient, checkRequest, described } from '../decide/check-client.js';
import { startDeciding } from '../decide/deciding.js';
import type { Scope } from '../support/scope.js';
import type { Claims } from '../support/tokens.js';
import { openApp } from './open-app.js';

/** A way to the decision. Another one is a line of `doors`. */
interface Door {
  readonly name: string;
  readonly open: (t: Scope) => Promise<OpenDoor>;
}

interface OpenDoor {
  readonly token: (claims?: Claims) => string;
  readonly request: (input: RequestInput) => Promise<Answer>;
}

type Answer = Pick<RawResponse, 'status' | 'text' | 'field'>;

const doors: readonly Door[] = [
  { name: 'sidecar', open: async (t) => startProxyProcess(t) },
  { name: 'endpoint', open: openEndpoint },
  { name: 'plugin', open: async (t) => openApp(t, { routes: serveOrders }) },
];

/** Asked as Envoy asks over gRPC, which tells most of a request. */
async function openEndpoint(t: Scope): Promise<OpenDoor> {
  const { proxy, decidePort } = await startDeciding(t, 'envoy');
  const check = checkClient(t, decidePort);
  return {
    token: proxy.token,
    request: async (input) => answerOf((await check(checkRequest(described(input)))).response),
  };
}

function serveOrders(app: FastifyInstance): void {
  app.get('/orders', () => ({}));
  app.post('/orders', () => ({}));
  app.get('/orders/:id', () => ({}));
  app.get('/healthz', () => ({}));
}

interface Row {
  readonly name: string;
  readonly method?: string;
  readonly path?: string;
  readonly claims?: Claims | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
}

const table: readonly Row[] = [
  { name: 'a good token', status: 200 },
  { name: 'no token', claims: null, status: 401 },
  { name: 'another audience', claims: { aud: 'stock' }, status: 401 },
  { name: 'an expired token', claims: { exp: 1_000_000_000, iat: 999_999_000 }, status: 401 },
  { name: 'another caller', claims: { sub: 'stranger' }, status: 403 },
  { name: 'a permission too few', claims: { permissions: [] }, status: 403 },
  { name: 'a parameter', path: '/orders/7', status: 200 },
  { name: 'HEAD where it is named', method: 'HEAD', path: '/orders/7', status: 200 },
  { name: 'HEAD where it is not', method: 'HEAD', status: 403 },
  { name: 'a method without a route', method: 'DELETE', status: 403 },
  { name: 'a public route', path: '/healthz', claims: null, status: 200 },
  { name: 'a path without a route', path: '/secret', status: 403 },
  { name: 'the same, by nobody', path: '/secret', claims: null, status: 401 },
  { name: 'dot segments', path: '/healthz/../orders', claims: null, status: 400 },
  { name: 'two slashes', path: '//orders', status: 400 },
  { name: 'an encoded slash', path: '/orders%2F7', status: 400 },
  { name: 'a needless escape', path: '/%6frders', status: 400 },
  { name: 'another case', path: '/Orders', status: 403 },
  { name: 'a trailing slash', path: '/orders/', status: 403 },
  { name: 'a parameter of the path', path: '/orders;x', status: 400 },
  { name: 'TRACE', method: 'TRACE', status: 405 },
  { name: 'a body of GET', body: '{}', status: 400 },
  { name: 'two tokens', headers: { authorization: 'Bearer x' }, status: 400 },
];

for (const { name: door, open } of doors) {
  t.test(door, async (t) => {
    const { token, request } = await open(t);
    for (const { name, method = 'GET', path = '/orders', claims = {}, headers = {}, body, status } of table) {
      const answer = await request({
        method,
        path,
        headers: {
          ...(claims === null ? {} : { Authorization: `Bearer ${token(claims)}` }),
          ...headers,
        },
        ...(body === undefined ? {} : { body }),
      });
      t.equal(answer.status, status, `${name}: ${answer.text}`);
      if (status >= 400 && method !== 'HEAD') {
        t.match(answer.field('content-type'), /^application\/problem\+json$/, name);
        t.match(answer.field('x-request-id'), /./, name);
      }
      if (status === 401) t.equal(answer.field('www-authenticate'), 'Bearer realm="sallyport"', name);
    }
  });
}
