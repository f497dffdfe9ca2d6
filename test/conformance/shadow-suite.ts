import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { projectDir } from '../support/project-dir.js';
import type { LeftOut } from '../support/mirror-answers.js';
import { runTestFile } from '../support/run-test-file.js';

/** How many requests of a file would be refused and passed, were refused alike, were allowed alike. */
export interface Compared {
  readonly passed: number;
  readonly refused: number;
  readonly allowed: number;
}

interface Told extends Compared {
  readonly held: readonly string[];
  readonly left: readonly string[];
}

/** What an answer that is not compared has instead. */
const why: Readonly<Record<LeftOut, string>> = {
  ended: 'the process was told to end: shadow mode has its own tests of that in lifecycle.test.ts',
  'under way':
    'it depends on what else is under way, or with which key: the second proxy is asked after the first one has answered',
  'its receiver': 'the receiver of the first proxy has a fault that its twin has not',
  several: 'several requests in one packet',
  'needs a key': 'over HTTP/2 `optional` asks for one: test/proxy/idempotency/http2-keys.test.ts',
};

/** The answers that are not compared. */
const leftOut: Readonly<Record<string, readonly string[]>> = {
  framing: ['GET /orders: several'],
  lifecycle: ['GET /orders 200: ended', 'GET /orders none: ended'],
  limits: ['GET /healthz 503 overloaded: under way', 'GET /orders 503 overloaded: under way'],
  reservations: [
    'POST /required 200: under way',
    'POST /required 409 idempotency-in-progress: under way',
    'POST /required 422 idempotency-key-reused: under way',
  ],
  // Held against shadow mode in that file itself.
  websockets: [
    'GET /files/a 429 rate-limited: under way',
    'GET /live 503 overloaded: under way',
    'GET /one 429 too-many-in-flight: under way',
  ],
};

/** What would be 401 or 403 and is 400 in shadow mode: an upgrade passes on routes that take WebSockets alone. */
const held: Readonly<Record<string, readonly string[]>> = {
  websockets: ['GET /nowhere 401 ', 'GET /nowhere 403 ', 'GET /plain 401 '],
};

/**
 * Connections that a test holds itself, as for half a request or a pause: the mirror does not see them. Allowed
 * requests all.
 */
const byHand: Readonly<Record<string, number>> = {
  connections: 1,
  forward: 6,
  lifecycle: 4,
  limits: 2,
  reservations: 1,
  rotation: 1,
  websockets: 2,
};

/**
 * The files of this folder but those about mirrors and over HTTP/2, and `glewlwyd`, whose proxy is a process of its
 * own: a mirror stands beside proxies of the test's process.
 */
export function suiteNames(): readonly string[] {
  const files = readdirSync(join(projectDir, 'test/conformance')).flatMap(
    (file) => /^([a-z-]+)\.test\.ts$/.exec(file)?.[1] ?? [],
  );
  return files.filter((name) => !['shadow', 'http2', 'glewlwyd'].includes(name));
}

/** Runs files of this folder with a proxy in shadow mode beside each of theirs; every request is held against it. */
export async function checkInShadow(t: Test, names: readonly string[]): Promise<Compared> {
  const sum = { passed: 0, refused: 0, allowed: 0 };
  for (const name of names) {
    const told = await runInShadow(t, name);
    t.same(
      [...told.left].sort(),
      leftOut[name] ?? [],
      `${name}: nothing else is left out, for ${Object.keys(why).join(', ')}`,
    );
    t.same([...told.held].sort(), held[name] ?? [], `${name}: nothing else is refused otherwise`);
    t.equal(connectionsByHand(name), byHand[name] ?? 0, `${name}: connections that the mirror does not see`);
    t.ok(told.passed + told.refused + told.allowed > 0, `${name}: ${JSON.stringify(told)}`);
    sum.passed += told.passed;
    sum.refused += told.refused;
    sum.allowed += told.allowed;
  }
  return sum;
}

async function runInShadow(t: Test, name: string): Promise<Told> {
  const output = await runTestFile(t, `conformance/${name}.test.js`, { SALLYPORT_SHADOW_MIRROR: '1' });
  const told = /^# shadow-mirror (.*)$/m.exec(output)?.[1];
  if (told === undefined) throw new Error(`${name} has no mirror`);
  return JSON.parse(told) as Told;
}

function connectionsByHand(name: string): number {
  const parts = name === 'rotation' ? ['rotation.test.ts', 'rotation.ts'] : [`${name}.test.ts`];
  const text = parts.map((file) => readFileSync(join(projectDir, 'test/conformance', file), 'utf8')).join('');
  return [...text.matchAll(/connectRaw\(|connect\(\{|new Pool\(|new WebSocket\(/g)].length;
}
