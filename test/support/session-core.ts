/**
 * As much of the Core as verifying sessions takes, to be broken at will: the real one and `sallyport core` are asked
 * elsewhere.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { keySet, type Behaviour, type ListedKey } from './jwks-server.js';
import { rsaKey } from './keys.js';
import { listen } from './listening.js';
import type { Scope } from './scope.js';

export interface SessionCore {
  readonly url: string;
  readonly port: number;
  /** Calls of `POST /recipe/session/verify` so far: what was asked, and with which API key. */
  readonly asked: readonly { readonly apiKey: string | undefined; readonly body: Readonly<Record<string, unknown>> }[];
  /** Requests for keys so far. */
  readonly keyHits: () => number;
  readonly setKeys: (keys: readonly ListedKey[]) => void;
  /** What `verify` answers from now on; a status is answered with that text. */
  readonly verify: (answer: Behaviour | Readonly<Record<string, unknown>>) => void;
  /** Answers everything in the stead of the rest; `null` goes back to it. */
  readonly behave: (behaviour: Behaviour | null) => void;
  readonly close: () => Promise<void>;
}

/** The Core's answer for a session that stands. */
export function goodSession(userId = 'user-1'): Readonly<Record<string, unknown>> {
  return {
    status: 'OK',
    session: {
      handle: 'h',
      userId,
      recipeUserId: userId,
      tenantId: 'public',
      userDataInJWT: {},
      expiryTime: Date.now() + 60_000,
    },
  };
}

export async function startSessionCore(
  t: Scope,
  options: { readonly keys?: readonly ListedKey[]; readonly port?: number } = {},
): Promise<SessionCore> {
  let keys: readonly ListedKey[] = options.keys ?? [rsaKey()];
  let keyHits = 0;
  let behaviour: Behaviour | null = null;
  let answer: Behaviour | Readonly<Record<string, unknown>> = goodSession();
  const asked: { apiKey: string | undefined; body: Readonly<Record<string, unknown>> }[] = [];
  const json = (res: ServerResponse, body: string): void => {
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(body);
  };
  const verify = (req: IncomingMessage, res: ServerResponse): void => {
    const chunks: Buffer[] = [];
    req
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => {
        const apiKey = req.headers['api-key'];
        const body = JSON.parse(Buffer.concat(chunks).toString()) as Readonly<Record<string, unknown>>;
        asked.push({ apiKey: typeof apiKey === 'string' ? apiKey : undefined, body });
        if (typeof answer === 'function') answer(req, res);
        else json(res, JSON.stringify(answer));
      });
  };
  const server = createServer((req, res) => {
    const path = (req.url ?? '').split('?', 1)[0];
    if (behaviour !== null) behaviour(req, res);
    else if (path === '/.well-known/jwks.json') {
      keyHits += 1;
      json(res, keySet(keys));
    } else if (path === '/apiversion') json(res, '{"versions":["2.16","5.4"]}');
    else if (path === '/recipe/session/verify') verify(req, res);
    else res.writeHead(404).end('Not found');
  });
  const { port, close } = await listen(t, server, options.port);
  return {
    url: `http://127.0.0.1:${String(port)}`,
    port,
    asked,
    keyHits: () => keyHits,
    setKeys: (next) => {
      keys = next;
    },
    verify: (next) => {
      answer = next;
    },
    behave: (next) => {
      behaviour = next;
    },
    close,
  };
}
