/**
 * Requests while the Core's keys rotate: `sallyport core` and `sallyport serve` as processes of their own, and between
 * them a relay that sees each key set that the proxy fetches.
 */
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { startCommand } from '../cli/started-command.js';
import { listen } from '../support/listening.js';
import type { Scope } from '../support/scope.js';
import { serviceClaims } from '../support/tokens.js';
import { startProxyProcess } from '../support/proxy-process.js';

export interface RotationRun {
  readonly requests: number;
  readonly durationMs: number;
  readonly rotateEvery: string;
}

/** What became of the requests. */
export interface RotationReport {
  readonly accepted: number;
  /** Refused although every key set that may have counted has the key. */
  readonly wronglyRefused: readonly string[];
  readonly refused: number;
  /** Accepted although no key set that may have counted has the key. */
  readonly wronglyAccepted: readonly string[];
  /** Keys that signed. */
  readonly keys: number;
  /** Key sets that the proxy fetched. */
  readonly fetches: number;
}

interface FetchedSet {
  readonly atMs: number;
  readonly keyIds: ReadonlySet<string>;
}

interface Minted {
  readonly token: string;
  readonly keyId: string;
}

/** How long a busy machine may take from a key set that was sent to one that counts. */
const graceMs = 2_000;

const mintEveryMs = 100;
const concurrency = 16;

export async function rotateUnderLoad(
  t: Scope,
  { requests, durationMs, rotateEvery }: RotationRun,
): Promise<RotationReport> {
  const core = startCommand(t, ['core', '--port', '0', '--rotate-every', rotateEvery]);
  const [, coreUrl = ''] = await core.says(/^core {2}(\S+)$/m);
  const { url, fetched } = await startRelay(t, `${coreUrl}/auth/jwt/jwks.json`);
  const proxy = await startProxyProcess(t, {
    config: { issuers: { core: { jwks_url: url, jwks: { min_age: '100ms', max_age: '300ms', cooldown: '100ms' } } } },
  });
  const pool = new Pool(`http://127.0.0.1:${String(proxy.port)}`, { connections: concurrency });
  const tokens: Minted[] = [await mint(coreUrl)];
  const startedMs = performance.now();
  const outcomes = { accepted: 0, refused: 0, wronglyRefused: [] as string[], wronglyAccepted: [] as string[] };
  let next = 0;
  const over = new AbortController();

  const minting = (async () => {
    while (!over.signal.aborted) {
      tokens.push(await mint(coreUrl));
      await delay(mintEveryMs);
    }
  })();
  const load = Array.from({ length: concurrency }, async () => {
    for (let index = next++; index < requests; index = next++) {
      await delay(Math.max(0, startedMs + (index * durationMs) / requests - performance.now()));
      await ask(index);
    }
  });
  try {
    await Promise.all(load);
  } finally {
    over.abort();
    await minting;
    await pool.destroy();
  }
  return { ...outcomes, keys: new Set(tokens.map(({ keyId }) => keyId)).size, fetches: fetched.length };

  async function ask(index: number): Promise<void> {
    // Four of five bear the newest token, the fifth any that was ever made.
    const at = index % 5 === 4 ? Math.floor((tokens.length * ((index * 7919) % 1000)) / 1000) : tokens.length - 1;
    const { token, keyId } = tokens[at] ?? { token: '', keyId: '' };
    const sentMs = performance.now();
    const response = await pool.request({
      method: 'GET',
      path: '/orders',
      headers: { authorization: `Bearer ${token}` },
    });
    await response.body.dump();
    const sets = setsThatMayCount(fetched, sentMs, performance.now());
    const isAccepted = response.statusCode === 200;
    outcomes[isAccepted ? 'accepted' : 'refused'] += 1;
    const told = `${keyId}: ${String(response.statusCode)} after ${String(Math.round(sentMs - startedMs))} ms`;
    if (isAccepted && !sets.some(({ keyIds }) => keyIds.has(keyId))) outcomes.wronglyAccepted.push(told);
    if (!isAccepted && sets.every(({ keyIds }) => keyIds.has(keyId))) outcomes.wronglyRefused.push(told);
    // It was published before it signed: it may be too new for the last set, and never for the proxy.
    if (!isAccepted && at >= tokens.length - 2) outcomes.wronglyRefused.push(`${told}, new`);
  }
}

/** The set that counted for certain when the request was sent, and those that came since. */
function setsThatMayCount(fetched: readonly FetchedSet[], sentMs: number, answeredMs: number): readonly FetchedSet[] {
  const before = fetched.filter(({ atMs }) => atMs <= sentMs - graceMs).at(-1);
  const since = fetched.filter(({ atMs }) => atMs > sentMs - graceMs && atMs <= answeredMs);
  return before === undefined ? since : [before, ...since];
}

async function mint(coreUrl: string): Promise<Minted> {
  const { iss, iat: _iat, exp: _exp, ...payload } = serviceClaims();
  const response = await fetch(`${coreUrl}/recipe/jwt`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', rid: 'jwt' },
    body: JSON.stringify({ payload, jwksDomain: iss, algorithm: 'RS256', validity: 3600, useStaticSigningKey: false }),
  });
  const { jwt } = (await response.json()) as { readonly jwt: string };
  const header = JSON.parse(Buffer.from(jwt.split('.')[0] ?? '', 'base64url').toString()) as { readonly kid: string };
  return { token: jwt, keyId: header.kid };
}

/** Passes key sets on, and keeps when which was sent. */
async function startRelay(
  t: Scope,
  source: string,
): Promise<{ readonly url: string; readonly fetched: readonly FetchedSet[] }> {
  const fetched: FetchedSet[] = [];
  const server = createServer((_req, res) => {
    void fetch(source)
      .then(async (response) => {
        const text = await response.text();
        const { keys } = JSON.parse(text) as { readonly keys: readonly { readonly kid: string }[] };
        res.on('finish', () => fetched.push({ atMs: performance.now(), keyIds: new Set(keys.map(({ kid }) => kid)) }));
        res
          .writeHead(200, {
            'content-type': 'application/json',
            'cache-control': response.headers.get('cache-control') ?? '',
          })
          .end(text);
      })
      .catch(() => {
        // The Core ends before the proxy does.
        res.destroy();
      });
  });
  const { port } = await listen(t, server);
  return { url: `http://127.0.0.1:${String(port)}/jwks.json`, fetched };
}
