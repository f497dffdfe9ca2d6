import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RawResponse } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { openApp, type AppSettings, type OpenApp } from './open-app.js';

/** Who may write, in tests of reserved writes. */
export const writes = { subjects: ['checkout'], permissions: ['orders:write'] };

/** A route that reserves. */
export const reserves = { config: { sallyport: { ...writes, idempotency: 'required' } } } as const;

export interface WritingApp extends OpenApp {
  /** Sends a write with this key. */
  readonly write: (path: string, key: string | null, options?: WriteOptions) => Promise<RawResponse>;
  /** Lines of its log. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
}

interface WriteOptions {
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly claims?: object;
}

/** An application that keeps its reservations in memory, unless the config says otherwise. */
export async function openWriting(t: Scope, settings: Omit<AppSettings, 'server'>): Promise<WritingApp> {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const opened = await openApp(t, {
    ...settings,
    config: { store: { memory: {} }, routes: undefined, ...settings.config },
    server: {
      logger: {
        level: 'info',
        stream: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
      },
    },
  });
  return {
    ...opened,
    lines,
    write: async (path, key, { body = '{"sku":"a"}', headers = {}, claims = {} } = {}) =>
      opened.request({
        method: 'POST',
        path,
        headers: {
          Authorization: `Bearer ${opened.token({ ...claims })}`,
          'Content-Type': 'application/json',
          ...(key === null ? {} : { 'Idempotency-Key': key }),
          ...headers,
        },
        body,
      }),
  };
}

export type Handler = (request: FastifyRequest, reply: FastifyReply) => unknown;

/** Adds handlers that reserve, each at its path; tells how often they ran. */
export function serveWrites(
  app: FastifyInstance,
  handlers: Readonly<Record<string, Handler>>,
): ReadonlyMap<string, number> {
  const ran = new Map<string, number>();
  for (const [path, handler] of Object.entries(handlers)) {
    app.post(path, reserves, (request, reply) => {
      ran.set(path, (ran.get(path) ?? 0) + 1);
      return handler(request, reply);
    });
  }
  return ran;
}

/** A gate that handlers wait at. */
export function createGate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { passed, open };
}
