/** A proxy that calls on behalf of a workload, and a target that says what it was asked. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listen } from '../../support/listening.js';
import { request, type RawResponse } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { startInProcessProxy, type InProcessProxy } from '../in-process-proxy.js';
import type { ConfigTree } from '../../support/proxy-process.js';

/** What a target saw of one request. */
interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export type Answer = (seen: Seen, number: number, res: ServerResponse) => void;

interface Target {
  readonly url: string;
  readonly port: number;
  readonly server: Server;
  readonly seen: readonly Seen[];
}

export async function startTarget(t: Scope, answer: Answer): Promise<Target> {
  const seen: Seen[] = [];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('error', () => undefined);
    req.on('end', () => {
      const { method = '', url = '', headers } = req;
      const number = seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
      answer({ method, url, headers, body: Buffer.concat(chunks).toString() }, number, res);
    });
  });
  const { port } = await listen(t, server);
  return { url: `http://127.0.0.1:${String(port)}`, port, server, seen };
}

interface Calling {
  readonly proxy: InProcessProxy;
  readonly tokenFile: string;
  readonly port: number;
  readonly call: (
    path: string,
    options?: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string },
  ) => Promise<RawResponse>;
}

/**
 * Starts a proxy whose one target is `orders`.
 *
 * @param watchMs between two looks at files.
 */
export async function startCalling(
  t: Scope,
  url: string,
  target: ConfigTree = {},
  egress: ConfigTree = {},
  more: ConfigTree = {},
  watchMs?: number,
): Promise<Calling> {
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, 'token.one.x\n', { mode: 0o600 });
  const proxy = await startInProcessProxy(t, {
    ...(watchMs === undefined ? {} : { watchMs }),
    config: {
      egress: {
        listen: { port: 0 },
        tokens: { own: { file: tokenFile } },
        targets: [
          {
            name: 'orders',
            prefix: '/orders',
            url,
            token: 'own',
            allow: [{ methods: ['*'], path: '/**' }],
            ...target,
          },
        ],
        ...egress,
      },
      ...more,
    },
  });
  const port = proxy.app.listeners.egress?.port ?? 0;
  return {
    proxy,
    tokenFile,
    port,
    call: (path, { method = 'POST', headers = {}, body = method === 'GET' ? '' : 'hello' } = {}) =>
      request(port, { method, path, headers, ...(method === 'GET' ? {} : { body }) }),
  };
}

export const ok: Answer = (_seen, _number, res) => res.end('done');
