import { createServer } from 'node:http';
import type { Behaviour } from './jwks-server.js';
import { listen } from './listening.js';
import type { Scope } from './scope.js';

/** An issuer's server: at each path it answers as it is told to, elsewhere with 404. */
export interface MetadataServer {
  readonly origin: string;
  readonly port: number;
  /** Paths that were asked for, in order. */
  readonly asked: string[];
  /** A JSON text, or what is to be done; `null` is 404. */
  readonly at: (path: string, answer: object | Behaviour | null) => void;
  readonly close: () => Promise<void>;
}

export const oidcPath = '/.well-known/openid-configuration';

/** Serves nothing yet. A port brings a server back where it was; 0 asks for a free one. */
export async function startMetadataServer(t: Scope, port = 0): Promise<MetadataServer> {
  const answers = new Map<string, object | Behaviour>();
  const asked: string[] = [];
  const server = createServer((req, res) => {
    asked.push(req.url ?? '');
    const answer = answers.get(req.url ?? '');
    if (answer === undefined) res.writeHead(404).end('{}');
    else if (typeof answer === 'function') (answer as Behaviour)(req, res);
    else res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  const listening = await listen(t, server, port);
  return {
    origin: `http://127.0.0.1:${String(listening.port)}`,
    port: listening.port,
    asked,
    at: (path, answer) => {
      if (answer === null) answers.delete(path);
      else answers.set(path, answer);
    },
    close: listening.close,
  };
}
