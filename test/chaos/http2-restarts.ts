/**
 * Callers of HTTP/2 at a proxy that is reloaded and ended, in front of an upstream of HTTP/2 that is ended without a
 * word: each request has to have an answer that says whether it may have acted.
 */
import { connect, createServer, type ClientHttp2Session, type Http2Server, type ServerHttp2Session } from 'node:http2';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { freePort } from '../support/listening.js';
import { baseConfig } from '../support/proxy-process.js';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { startServe, type ServeProcess } from '../support/serve-process.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';

export interface Http2RestartsOptions {
  readonly requests: number;
  readonly reloads: number;
  readonly drains: number;
  readonly upstreamRestarts: number;
  readonly sessions: number;
  readonly streamsPerSession: number;
}

export interface Http2RestartsReport {
  /** How often each outcome came: a status, or what the protocol said of it. */
  readonly outcomes: ReadonlyMap<string, number>;
  /** Requests without a word on whether they acted. */
  readonly lost: readonly string[];
  /** Requests that acted although they were told that they did not. */
  readonly deniedButActed: readonly string[];
  /** Requests that acted more than once. */
  readonly ranTwice: readonly string[];
  /** Requests told that they acted, and did not. */
  readonly claimedButNot: readonly string[];
  readonly exits: readonly (number | null)[];
}

/** What an answer says of the request: it acted, it did not, or it may have. `null` says nothing. */
type Word = 'acted' | 'not' | 'maybe' | null;

interface Asked {
  readonly id: string;
  readonly outcome: string;
  readonly word: Word;
}

export async function restartOverHttp2(t: Scope, options: Http2RestartsOptions): Promise<Http2RestartsReport> {
  const acted = new Map<string, number>();
  const upstream = await startUpstream(t, acted);
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  const configFile = join(tempDir(t), 'sallyport.yaml');
  const [port, adminPort] = [await freePort(), await freePort()];
  writeFileSync(
    configFile,
    baseConfig({
      listen: { port, http2: true },
      admin: { port: adminPort },
      upstream: { url: `http://127.0.0.1:${String(upstream.port)}`, http2: true },
      issuers: { core: { jwks_url: jwks.url } },
      shutdown: { delay: '1s', grace: '20s' },
      reload: { least_age: '0s' },
      routes: [
        {
          name: 'write',
          methods: ['POST'],
          path: '/write/{id}',
          subjects: ['checkout'],
          permissions: [],
          idempotency: 'none',
        },
      ],
    }),
  );
  const exits: (number | null)[] = [];
  let proxy = await startProxy(t, configFile, adminPort);
  const authorization = `Bearer ${mintToken({ key })}`;
  const asked: Asked[] = [];
  let next = 0;
  const callers = Array.from({ length: options.sessions }, async () => {
    const open: { session: ClientHttp2Session | null } = { session: null };
    const one = async (): Promise<void> => {
      while (next < options.requests) {
        const id = String(next);
        next += 1;
        if (open.session === null || open.session.closed || open.session.destroyed) {
          open.session = await connected(port);
        }
        asked.push(await ask(open.session, id, authorization));
      }
    };
    await Promise.all(Array.from({ length: options.streamsPerSession }, one));
    open.session?.destroy();
  });
  const at = (share: number): Promise<unknown> =>
    until('enough was asked', () => asked.length >= options.requests * share, 600_000);
  const events: { readonly share: number; readonly run: () => Promise<void> }[] = [
    ...spread(options.reloads, async () => {
      appendFileSync(configFile, '# another edit\n');
      proxy.signal('SIGHUP');
      await sleep(10);
    }),
    ...spread(options.upstreamRestarts, upstream.restart),
    ...spread(options.drains, async () => {
      proxy.signal('SIGTERM');
      exits.push((await proxy.exited).code);
      proxy = await startProxy(t, configFile, adminPort);
    }),
  ].sort((one, other) => one.share - other.share);
  for (const { share, run } of events) {
    await at(share);
    await run();
  }
  await Promise.all(callers);
  return reportOf(asked, acted, exits);
}

function spread(count: number, run: () => Promise<void>): { share: number; run: () => Promise<void> }[] {
  return Array.from({ length: count }, (_none, i) => ({ share: (i + 1) / (count + 1.5), run }));
}

function reportOf(
  asked: readonly Asked[],
  acted: ReadonlyMap<string, number>,
  exits: readonly (number | null)[],
): Http2RestartsReport {
  const outcomes = new Map<string, number>();
  for (const { outcome } of asked) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  const told = ({ id, outcome }: Asked): string => `${id}: ${outcome}`;
  return {
    outcomes,
    lost: asked.filter(({ word }) => word === null).map(told),
    deniedButActed: asked.filter(({ id, word }) => word === 'not' && acted.has(id)).map(told),
    claimedButNot: asked.filter(({ id, word }) => word === 'acted' && !acted.has(id)).map(told),
    ranTwice: [...acted].filter(([, times]) => times > 1).map(([id]) => id),
    exits,
  };
}

async function startProxy(t: Scope, configFile: string, adminPort: number): Promise<ServeProcess> {
  const proxy = startServe(t, configFile);
  await until('ready', async () =>
    request(adminPort, { path: '/readyz' }).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  return proxy;
}

/** A session, as soon as there is one: while the proxy is away it is tried again. */
async function connected(port: number): Promise<ClientHttp2Session> {
  for (;;) {
    const session = connect(`http://127.0.0.1:${String(port)}`);
    session.on('error', () => undefined);
    const isOpen = await new Promise<boolean>((resolve) => {
      // Its settings, and not TCP alone: before them nobody has taken it.
      session.once('remoteSettings', () => resolve(true)).once('close', () => resolve(false));
    });
    if (isOpen) return session;
    await sleep(20);
  }
}

function ask(session: ClientHttp2Session, id: string, authorization: string): Promise<Asked> {
  return new Promise((resolve) => {
    let status = 0;
    let isWhole = false;
    let lastStream = Infinity;
    const onGoAway = (_code: number, lastStreamId: number): void => {
      lastStream = lastStreamId;
    };
    session.on('goaway', onGoAway).setMaxListeners(0);
    try {
      const stream = session.request({ ':method': 'POST', ':path': `/write/${id}`, authorization });
      stream
        .on('error', () => undefined)
        .on('response', (headers) => {
          status = headers[':status'] ?? 0;
        });
      stream.on('end', () => {
        isWhole = !stream.aborted && stream.rstCode === 0;
      });
      stream.on('close', () => {
        session.off('goaway', onGoAway);
        // A stream that was never opened, or that a GOAWAY leaves out, was not processed (RFC 9113 §6.8, §8.7).
        const isUnprocessed = stream.id === undefined || stream.id > lastStream || stream.rstCode === 7;
        if (status === 0) {
          resolve({
            id,
            outcome: isUnprocessed ? 'not processed' : `reset ${String(stream.rstCode)}`,
            word: isUnprocessed ? 'not' : null,
          });
        } else resolve({ id, outcome: `${String(status)}${isWhole ? '' : ' cut off'}`, word: wordOf(status, isWhole) });
      });
      stream.resume();
      stream.end('x');
    } catch {
      session.off('goaway', onGoAway);
      resolve({ id, outcome: 'not sent', word: 'not' });
    }
  });
}

function wordOf(status: number, isWhole: boolean): Word {
  if (status === 200) return isWhole ? 'acted' : 'maybe';
  if (status === 502 || status === 504) return 'maybe';
  return status === 503 ? 'not' : null;
}

/** A service that notes what it did before it says so. */
async function startUpstream(
  t: Scope,
  acted: Map<string, number>,
): Promise<{ readonly port: number; readonly restart: () => Promise<void> }> {
  const port = await freePort();
  const sessions = new Set<ServerHttp2Session>();
  let server: Http2Server | null = null;
  const start = (): Promise<void> => {
    const started = createServer();
    server = started;
    started.on('session', (session) => {
      sessions.add(session);
      session.on('error', () => undefined).on('close', () => sessions.delete(session));
    });
    started.on('stream', (stream, headers) => {
      stream.on('error', () => undefined).resume();
      stream.on('end', () => {
        if (stream.destroyed || stream.closed) return;
        const id = (headers[':path'] ?? '').replace('/write/', '');
        acted.set(id, (acted.get(id) ?? 0) + 1);
        setTimeout(() => {
          if (stream.destroyed || stream.closed) return;
          stream.respond({ ':status': 200 });
          stream.end('done');
        }, 2);
      });
    });
    return new Promise((resolve) => {
      started.listen(port, '127.0.0.1', () => resolve());
    });
  };
  const stop = async (): Promise<void> => {
    for (const session of sessions) session.destroy();
    await new Promise<void>((resolve) => {
      server?.close(() => resolve());
    });
  };
  await start();
  t.teardown(stop);
  return {
    port,
    restart: async () => {
      await stop();
      await sleep(100);
      await start();
    },
  };
}
