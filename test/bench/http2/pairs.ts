import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Http2Load } from '../../support/h2load.js';
import { startJwksServer } from '../../support/jwks-server.js';
import { rsaKey } from '../../support/keys.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { mintToken } from '../../support/tokens.js';
import { placeLoad } from '../affinity.js';
import { startServer, versionOf, type Child } from '../child.js';
import { startHaproxy } from '../haproxy.js';
import { startSallyport } from '../sallyport.js';
import { grpcMessage, ordersBody } from './servers.js';

/** What one can ask for. */
export const pairNames = ['h2-h1', 'h2-h2', 'grpc'] as const;

export type PairName = (typeof pairNames)[number];

/** A way through a proxy, and who takes it. */
export interface Pair {
  readonly title: string;
  readonly load: Pick<Http2Load, 'headers' | 'bodyFile' | 'answerBytes'> & { readonly path: string };
  /** The first is Sallyport. */
  readonly entrants: readonly Entrant[];
}

export interface Entrant {
  readonly name: string;
  readonly start: (t: Scope) => Promise<Child>;
}

export const haproxyName = 'HAProxy, jwt_verify';
/** A stream for each stream, piped. */
export const naiveName = 'naive proxy of Node.js';
/** Answers without an upstream. */
export const ownName = 'node:http2, answers by itself';

const grpcPath = '/shop.v1.Orders/List';

const reader = { subjects: ['checkout'], permissions: ['orders:read'] };
const routes = [
  { name: 'list-orders', methods: ['GET'], path: '/orders', ...reader },
  { name: 'orders', grpc: grpcPath.slice(1), ...reader, idempotency: 'none' },
];

interface PairSettings {
  readonly names?: readonly PairName[];
  readonly before?: string;
}

/** Starts what all share, and says how each is run. All requests carry one token. */
export async function preparePairs(t: Scope, { names = pairNames, before }: PairSettings): Promise<readonly Pair[]> {
  const key = rsaKey();
  const token = mintToken({ key, claims: { exp: Math.floor(Date.now() / 1000) + 7000 } });
  const headers = { Authorization: `Bearer ${token}` };
  const jwks = (await startJwksServer(t, { keys: [key] })).url;
  const [http1, http2] = [await startServer(t, 'receiver'), await startServer(t, 'http2-hello')];
  for (const { pid } of [http1, http2]) placeLoad(pid);
  const bodyFile = join(tempDir(t), 'message');
  writeFileSync(bodyFile, grpcMessage);

  const entrantsBefore = (receiver: Child, overHttp2: boolean): readonly Entrant[] => {
    const url = `http://127.0.0.1:${String(receiver.port)}`;
    const config: ConfigTree = {
      listen: { http2: true },
      upstream: { url, http2: overHttp2 },
      issuers: { core: { jwks_url: jwks } },
      routes,
    };
    const sallyport = (name: string, checkout?: string): Entrant => ({
      name,
      start: async (scope) =>
        startSallyport(
          scope,
          config,
          { path: '/orders', headers },
          checkout === undefined ? {} : { checkout, keepsConfig: true },
        ),
    });
    const over = { callers: true, receiver: overHttp2 };
    return [
      sallyport('Sallyport'),
      ...(before === undefined ? [] : [sallyport('Sallyport, before', before)]),
      ...(versionOf('haproxy', '-v') === null
        ? []
        : [
            {
              name: haproxyName,
              start: async (scope: Scope) =>
                startHaproxy(scope, receiver.port, key.publicKey, token, { kind: 'core' }, over),
            },
          ]),
      {
        name: naiveName,
        start: async (scope) => startServer(scope, overHttp2 ? 'http2-to-http2' : 'http2-to-http1', url),
      },
      { name: ownName, start: async (scope) => startServer(scope, 'http2-hello') },
    ];
  };
  const reads = { path: '/orders', headers, answerBytes: Buffer.byteLength(ordersBody) };
  const known: Readonly<Record<PairName, Pair>> = {
    'h2-h1': { title: 'HTTP/2 → HTTP/1.1', load: reads, entrants: entrantsBefore(http1, false) },
    'h2-h2': { title: 'HTTP/2 → HTTP/2', load: reads, entrants: entrantsBefore(http2, true) },
    grpc: {
      title: 'gRPC, unary, HTTP/2 → HTTP/2',
      load: {
        path: grpcPath,
        headers: { ...headers, 'content-type': 'application/grpc', te: 'trailers' },
        bodyFile,
        answerBytes: grpcMessage.length,
      },
      entrants: entrantsBefore(http2, true),
    },
  };
  return names.map((name) => known[name]);
}
