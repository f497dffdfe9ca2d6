/**
 * What callers were told of their writes, beside what services carried out: PostgreSQL keeps it, without anything that
 * would keep a write from being there twice.
 */
import { createServer, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { listen } from '../support/listening.js';
import { startPostgres } from '../support/postgres-server.js';
import type { Scope } from '../support/scope.js';

/** What one answer looks like to a caller that knows nothing of keys. */
export interface CallerAnswer {
  /** `null` where no whole answer came. */
  readonly status: number | null;
  /** Of `Proxy-Status`; empty where there is none. */
  readonly proxyStatus: string;
  /** Why there is none: `refused` where nobody listened. */
  readonly failure: 'refused' | 'broken' | null;
  /** Of `X-Sallyport-Attempts`; 0 where nobody said so. */
  readonly attempts: number;
}

/** What an answer says of the write. */
export type Told = 'done' | 'not applied' | 'in doubt' | 'nothing that is documented';

export type TargetName = 'orders' | 'ledger';

export interface Write {
  readonly id: string;
  readonly target: TargetName;
  readonly caller: 'curl' | 'node';
  readonly answer: CallerAnswer;
}

export interface Violation {
  readonly what: string;
  readonly write: Write;
  readonly runs: number;
}

/** Statuses after which nobody knows. */
const doubtful: ReadonlySet<number> = new Set([409, 502, 504]);

/** Statuses of a proxy that refused. */
const refusing: ReadonlySet<number> = new Set([400, 401, 403, 408, 413, 425, 429]);

export function toldBy({ status, proxyStatus, failure }: CallerAnswer): Told {
  if (failure === 'refused') return 'not applied';
  if (status === null || doubtful.has(status)) return 'in doubt';
  if (status >= 200 && status < 300) return 'done';
  const isOurs = /^sallyport\b/.test(proxyStatus);
  if (status === 503) return isOurs ? 'not applied' : 'in doubt';
  return isOurs && refusing.has(status) ? 'not applied' : 'nothing that is documented';
}

/** What is wrong with what was told of a write that ran so many times; `null` where nothing is. */
export function whatIsWrong(answer: CallerAnswer, runs: number): string | null {
  if (runs > 1) return 'a write ran twice';
  const told = toldBy(answer);
  if (told === 'done' && runs === 0) return 'told as done, and it did not happen';
  if (told === 'not applied' && runs > 0) return 'told as not applied, and it happened';
  return told === 'nothing that is documented' ? 'an answer that says nothing' : null;
}

export interface WriteLedger {
  /** The service behind the answering side: carries out whatever reaches it. */
  readonly ordersPort: number;
  /** A service that keeps its own table of keys and stands behind no proxy of ours. */
  readonly ledgerPort: number;
  /** How often each write was carried out, by its id. */
  readonly runs: () => Promise<ReadonlyMap<string, number>>;
}

export async function startWriteLedger(t: Scope): Promise<WriteLedger> {
  const { url } = await startPostgres(t);
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  pool.on('error', () => undefined);
  t.teardown(async () => pool.end());
  await pool.query('create table writes (id text not null); create table keys (key text primary key)');

  const serve = async (carryOut: (id: string, key: string) => Promise<number>): Promise<number> => {
    const server = createServer((req, res) => {
      void bodyOf(req)
        .then(async (body) => {
          await sleep(Math.random() * 30);
          const { id } = JSON.parse(body) as { readonly id: string };
          const key = req.headers['idempotency-key'];
          res.writeHead(await carryOut(id, typeof key === 'string' ? key : ''), { 'Content-Type': 'application/json' });
          res.end(JSON.stringify({ id }));
        })
        // The caller went away before its body was there: nothing is done.
        .catch(() => res.destroy());
    });
    server.keepAliveTimeout = 60_000;
    return (await listen(t, server)).port;
  };
  return {
    ordersPort: await serve(async (id) => {
      await pool.query('insert into writes (id) values ($1)', [id]);
      return 201;
    }),
    ledgerPort: await serve(async (id, key) => {
      if (key === '') return 400;
      const { rowCount } = await pool.query(
        `with fresh as (insert into keys (key) values ($1) on conflict do nothing returning key)
         insert into writes (id) select $2::text from fresh`,
        [key, id],
      );
      // Now and then its own front end fails after the work was done.
      if (rowCount === 1 && Math.random() < 0.02) return Math.random() < 0.5 ? 502 : 503;
      return rowCount === 1 ? 201 : 200;
    }),
    runs: async () => {
      const { rows } = await pool.query<{ id: string; count: number }>(
        'select id, count(*)::int as count from writes group by id',
      );
      return new Map(rows.map(({ id, count }) => [id, count]));
    },
  };
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  if (!req.complete) throw new Error('the request was cut off');
  return Buffer.concat(chunks).toString();
}
