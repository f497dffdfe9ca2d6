/** Asks about a few tokens again and again while time goes on and the issuer changes its mind. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { localFiles } from '../../../src/adapters/files/files.js';
import { createIntrospector } from '../../../src/adapters/oauth/introspector.js';
import { verifyIntrospection } from '../../../src/decision/token/introspection.js';
import { issuerRules } from '../../decision/samples.js';
import { keyState } from '../../support/key-state.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { drawFrom, pick } from '../draw.js';
import { clientSecret, startAskedIssuer, type Script } from './asked-issuer.js';
import { createModelMemory, someMemory, someStepMs, someWord, type Word } from './remembering.js';

interface MemoryReport {
  readonly cases: number;
  readonly questions: number;
  readonly faults: readonly string[];
}

const stepsPerIssuer = 150;
const startMs = 1_800_000_000_000;
const tokens = ['one', 'two', 'three'];

export async function runMemories(
  t: Scope,
  { seed, cases, maxFaults = 5 }: { readonly seed: number; readonly cases: number; readonly maxFaults?: number },
): Promise<MemoryReport> {
  const issuer = await startAskedIssuer(t);
  const secretFile = join(tempDir(t), 'client-secret');
  writeFileSync(secretFile, clientSecret);
  chmodSync(secretFile, 0o600);
  issuer.clients.set('/one', { url: '', client_id: 'sallyport', client_secret_file: secretFile });
  const faults: string[] = [];
  let tried = 0;
  for (let number = 0; tried < cases && faults.length < maxFaults; number++) {
    const draw = drawFrom(seed, number);
    const memory = someMemory(draw);
    const model = createModelMemory(memory);
    const words = new Map<string, Word>();
    // In the middle of a second; the clock that only measures has another beginning.
    let elapsedMs = draw.below(2) * 500;
    const wallMs = (): number => startMs + elapsedMs;
    const rules = issuerRules({ name: 'one', clockSkewS: memory.skewMs / 1_000, maxLifetimeS: 3_600 });
    const introspector = createIntrospector(
      {
        url: `${issuer.url}/one`,
        caFile: null,
        clientId: 'sallyport',
        auth: { method: 'client_secret_basic', secretFile },
        answer: 'json',
        rules: { tokenPrefix: '', requiresAudience: false, requiresTokenId: false },
        maxAgeMs: memory.maxAgeMs,
        maxNegativeAgeMs: memory.maxNegativeAgeMs,
        timeoutMs: 20_000,
        maxBytes: 65_536,
        unknownPerSecond: 10_000,
        unknownPerAddress: 10_000,
      },
      rules,
      {
        clock: { now: wallMs, monotonic: () => 7_000 + elapsedMs },
        files: localFiles,
        log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
        metrics: { introspection: ignore, introspectionLookup: ignore },
        keys: { find: () => ({ kind: 'unknown' }), state: () => keyState() },
      },
    );
    await introspector.start();
    const ask = async (token: string, askedMs: number): Promise<boolean> => {
      const response = await introspector.ask(token, null, null);
      if (response.kind !== 'active') return false;
      const judged = { ...rules, requiresAudience: false, requiresTokenId: false };
      return verifyIntrospection(response.claims, judged, askedMs).ok;
    };
    for (let step = 0; step < stepsPerIssuer && faults.length < maxFaults; step++) {
      elapsedMs += someStepMs(draw, memory);
      const token = pick(draw, tokens);
      if (!words.has(token) || draw.below(3) === 0) {
        const word = someWord(draw, wallMs());
        words.set(token, word);
        issuer.scripts.set(token, scriptOf(word));
      }
      const word = words.get(token) ?? someWord(draw, wallMs());
      const askedMs = wallMs();
      const told = model.tell(token, word, askedMs);
      const before = issuer.questions.length;
      // Slow now and then: what is said counts from when it was asked for.
      const slowMs = pick(draw, [0, 0, 0, 700]);
      const callers = pick(draw, [1, 1, 3]);
      const answers = Array.from({ length: callers }, async () => ask(token, askedMs));
      if (slowMs > 0) elapsedMs += slowMs;
      const accepted = await Promise.all(answers);
      const asked = issuer.questions.length - before;
      tried += 1;
      if (asked > 0) model.learn(token, word, askedMs);
      const wrong = [
        ...issuer.faults.splice(0),
        ...(asked > 1 ? [`${String(asked)} questions of ${String(callers)} callers`] : []),
        ...(told.asks !== null && told.asks !== asked > 0
          ? [`${String(asked)} questions, though ${String(told.asks)}`]
          : []),
        ...(accepted.some((one) => one !== told.accepted) && told.asks !== null
          ? [`${accepted.join()} instead of ${String(told.accepted)}`]
          : []),
      ];
      for (const one of wrong) {
        faults.push(
          `seed ${String(seed)}, issuer ${String(number)}, step ${String(step)}: ${one} ${JSON.stringify({ memory, word, token, elapsedMs })}`,
        );
      }
    }
    await introspector.close();
  }
  return { cases: tried, questions: issuer.questions.length, faults };
}

const ignore = (): void => undefined;

function scriptOf({ active, expS }: Word): Script {
  const members = { active, ...(expS === null ? {} : { exp: expS }), sub: 'x' };
  const body = Buffer.from(JSON.stringify(members));
  const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${String(body.length)}\r\n\r\n`;
  return {
    status: 200,
    fields: [],
    body,
    isWhole: true,
    pieces: [Buffer.concat([Buffer.from(head), body])],
    end: 'keep',
  };
}
