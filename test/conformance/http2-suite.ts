import type { Test } from 'tap';
import { unsayable, type Unsayable } from '../support/http2-saying.js';
import type { LeftOut } from '../support/mirror-answers.js';
import { runTestFile } from '../support/run-test-file.js';

/** How many requests were refused alike, refused by the reset of their stream, and allowed alike. */
export interface Compared {
  readonly refused: number;
  readonly reset: number;
  readonly allowed: number;
}

interface Told extends Compared {
  readonly otherwise: readonly string[];
  readonly left: readonly string[];
}

/**
 * Requests that are not made over HTTP/2, and why: what HTTP/2 cannot say, and what depends on more than the request.
 * Of those that are many, how many.
 */
const leftOut: Readonly<Record<string, Partial<Record<Unsayable | LeftOut, readonly string[] | number>>>> = {
  connections: {
    'other version': ['GET /orders 200', 'GET /orders 400 bad-request'],
  },
  fields: {
    chunked: ['GET /orders 400 bad-request'],
    'no request line': ['GET /orders 400 bad-request'],
    'of a connection': ['GET /orders 200', 'GET /orders 400 bad-request'],
  },
  forward: {
    'cut short': [
      'POST /orders 401 ',
      'POST /orders 403 ',
      'POST /orders 413 body-too-large',
      'POST /orders 417 bad-request',
      'POST /orders// 400 bad-target',
    ],
    'of a connection': ['GET /orders 400 bad-request', 'POST /orders 200', 'POST /orders 401 '],
  },
  framing: {
    chunked: ['POST /orders 200', 'POST /orders 400 bad-request'],
    'forbidden field': ['GET /orders 400 bad-request', 'POST /orders 400 bad-request'],
    'no request line': [
      '\u0005\u0001\u0000 400 bad-request',
      'GET\t/orders 400 bad-request',
      'GET /orders 400 bad-request',
      'GET /orders http/1.1 400 bad-request',
      'POST /orders 400 bad-request',
    ],
    'of a connection': ['POST /orders 400 bad-request'],
    'other version': ['GET /orders 400 bad-request', 'POST /orders 400 bad-request', 'PRI * 400 bad-request'],
    several: ['GET /orders 400 bad-request', 'GET /orders'],
  },
  lifecycle: {
    ended: ['GET /orders 200', 'GET /orders none'],
  },
  limits: {
    chunked: ['POST /orders 200', 'POST /orders 408 bad-request', 'POST /orders 413 body-too-large'],
    'cut short': ['POST /orders 408 bad-request', 'POST /orders 413 body-too-large'],
    'no request line': ['GET /orders 408 bad-request', 'GET /orders HT 408 bad-request'],
    'under way': ['GET /healthz 503 overloaded', 'GET /orders 503 overloaded'],
  },
  reservations: {
    'needs a key': ['POST /optional 200'],
    'under way': [
      'POST /required 200',
      'POST /required 409 idempotency-in-progress',
      'POST /required 422 idempotency-key-reused',
    ],
  },
  routes: {
    chunked: ['GET /query 200', 'GET /thing 400 bad-request'],
  },
  websockets: {
    chunked: ['GET /live 400 bad-request'],
    'no request line': ['GET /live 408 bad-request'],
    // Opening handshakes, with every bad target.
    'of a connection': 127,
    'other version': ['GET /live 400 bad-request'],
  },
};

/**
 * What is refused over HTTP/2 with another status, where Node's parser of HTTP/1.1 does not know the method. The
 * upstream's own does not know it either: 502.
 */
const refusedOtherwise: Readonly<Record<string, readonly string[]>> = {
  routes: ['FOO /any 400 bad-request: 502', 'G!T /any 400 bad-request: 502', 'TRACK /any 400 bad-request: 405'],
};

/** Runs files of this folder with a proxy beside each of theirs that is asked over HTTP/2. */
export async function checkOverHttp2(t: Test, names: readonly string[]): Promise<Compared> {
  const sum = { refused: 0, reset: 0, allowed: 0 };
  for (const name of names) {
    const told = await runOverHttp2(t, name);
    t.same(
      groupsOf(told.left, leftOut[name] ?? {}),
      leftOut[name] ?? {},
      `${name}: nothing else is left out, for ${Object.keys(unsayable).join(', ')}`,
    );
    t.same(told.otherwise, refusedOtherwise[name] ?? [], `${name}: nothing else is refused otherwise`);
    t.ok(told.refused + told.reset + told.allowed > 0, `${name}: ${JSON.stringify(told)}`);
    sum.refused += told.refused;
    sum.reset += told.reset;
    sum.allowed += told.allowed;
  }
  return sum;
}

/** Rows by why they are left out, counted where the list counts them. */
function groupsOf(left: readonly string[], listed: Readonly<Record<string, readonly string[] | number>>): object {
  const groups: Record<string, string[]> = {};
  for (const line of left) {
    const at = line.lastIndexOf(': ');
    (groups[line.slice(at + 2)] ??= []).push(line.slice(0, at));
  }
  return Object.fromEntries(
    Object.entries(groups).map(([why, rows]) => [why, typeof listed[why] === 'number' ? rows.length : rows]),
  );
}

async function runOverHttp2(t: Test, name: string): Promise<Told> {
  const output = await runTestFile(t, `conformance/${name}.test.js`, { SALLYPORT_HTTP2_MIRROR: '1' });
  const told = /^# http2-mirror (.*)$/m.exec(output)?.[1];
  if (told === undefined) throw new Error(`${name} has no mirror`);
  return JSON.parse(told) as Told;
}
