import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from './listening.js';
import { rsaKey } from './keys.js';
import type { Scope } from './scope.js';
import { addMirror, isMirrored, mirrorPortOf } from './mirror-servers.js';

/** Anything that can stand in a JWKS: a key of `keys.ts` or a bare member of `keys`. */
export type ListedKey = { readonly jwk: object } | object;

export type Behaviour = (req: IncomingMessage, res: ServerResponse) => unknown;

export interface JwksServer {
  readonly url: string;
  readonly port: number;
  /** Requests so far. */
  readonly hits: () => number;
  readonly setKeys: (keys: readonly ListedKey[]) => void;
  /** Answers in the stead of the key set; `null` goes back to it. */
  readonly behave: (behaviour: Behaviour | null) => void;
  readonly close: () => Promise<void>;
}

export interface JwksServerOptions {
  readonly keys?: readonly ListedKey[];
  /** Fields of each answer, `cache-control` for instance. */
  readonly fields?: Readonly<Record<string, string>>;
  /** 0 asks for a free port; a fixed one lets a test bring a server back where it was. */
  readonly port?: number;
}

/** Serves a key set on loopback, `rsaKey('d-1')` unless told otherwise. */
export async function startJwksServer(t: Scope, options: JwksServerOptions = {}): Promise<JwksServer> {
  const own = await startOne(t, options);
  if (!isMirrored) return own;
  const mirror = await startOne(t, { ...options, port: mirrorPortOf(options.port) });
  addMirror(own.url, mirror.url);
  return {
    ...own,
    setKeys: (keys) => {
      own.setKeys(keys);
      mirror.setKeys(keys);
    },
    behave: (behaviour) => {
      own.behave(behaviour);
      mirror.behave(behaviour);
    },
    close: async () => {
      await Promise.all([own.close(), mirror.close()]);
    },
  };
}

async function startOne(t: Scope, options: JwksServerOptions): Promise<JwksServer> {
  let keys: readonly ListedKey[] = options.keys ?? [rsaKey()];
  let behaviour: Behaviour | null = null;
  let hits = 0;
  const server = createServer((req, res) => {
    hits += 1;
    if (behaviour !== null) {
      behaviour(req, res);
      return;
    }
    res.writeHead(200, { 'content-type': 'application/json', ...options.fields });
    res.end(keySet(keys));
  });
  const { port, close } = await listen(t, server, options.port);
  return {
    url: `http://127.0.0.1:${String(port)}/auth/jwt/jwks.json`,
    port,
    hits: () => hits,
    setKeys: (next) => {
      keys = next;
    },
    behave: (next) => {
      behaviour = next;
    },
    close,
  };
}

/** The JSON text of a key set. */
export function keySet(keys: readonly ListedKey[]): string {
  return JSON.stringify({ keys: keys.map((key) => ('jwk' in key ? key.jwk : key)) });
}
