/** The same answers for `sallyport serve`, a process of its own, which asks an issuer over HTTP or HTTPS. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { certificates } from '../../support/certificates.js';
import { isMirrored } from '../../support/mirror-servers.js';
import { startProxyProcess } from '../../support/proxy-process.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { drawFrom, once, pick, type Draw } from '../draw.js';
import { plainListening } from '../model-bound-tokens.js';
import { judge, type Surroundings } from '../model.js';
import { configOf } from '../policies.js';
import { readKeysSlowly } from '../profiles/model-keys.js';
import { inWords, someAsk } from '../profiles/profile-campaign.js';
import { faultOf } from '../profiles/served.js';
import { someAnswer } from './answers.js';
import { clientSecret, startAskedIssuer, type QuestionedIssuer, type Script } from './asked-issuer.js';
import { someAskedWorld, type AskedWorld } from './worlds.js';

export interface ServedReport {
  readonly cases: number;
  readonly forwarded: number;
  readonly refused: number;
  readonly faults: readonly string[];
}

/** Starts a process for a world of this seed, and brings so many tokens, some of them by several callers at once. */
export async function runServedAnswers(t: Scope, seed: number, number: number, cases: number): Promise<ServedReport> {
  const draw = drawFrom(seed, number);
  const tls = number % 2 === 1 ? certificates(t) : null;
  const issuer = await startAskedIssuer(t, tls === null ? null : { cert: tls.server.cert, key: tls.server.key });
  const secretFile = join(tempDir(t), 'client-secret');
  writeFileSync(secretFile, clientSecret, { mode: 0o600 });
  const world = someWorldInTime(draw, { url: issuer.url, secretFile });
  for (const { name, introspection } of world.issuers) issuer.clients.set(`/${name}`, introspection);
  const proxy = await startProxyProcess(t, { ready: false, config: servedConfig(t, world, tls?.ca.certFile ?? null) });
  const faults: string[] = [];
  const fail = (fault: string): void => void faults.push(`seed ${String(seed)}, world ${String(number)}: ${fault}`);
  let [forwarded, refused] = [0, 0];
  for (let count = 0; count < cases; count++) {
    const asked = pick(draw, world.issuers);
    const prefix = asked.introspection.token_prefix ?? '';
    // With two dots it may be a JWT, about which nobody is asked.
    const ends = prefix.includes('.') ? ['', '=', '~'] : ['', '=', '~', '.x'];
    const token = `${prefix}${String(count)}${pick(draw, ends)}`;
    const script = someWholeAnswer(draw, world, asked);
    issuer.scripts.set(token, script);
    const callers = once(draw, 4) ? 3 : 1;
    issuer.delayMs = callers > 1 ? 30 : 0;
    const head = someAsk(draw, token);
    const [received, questions] = [proxy.receiver.requests.length, issuer.questions.length];
    const before = judge(head, surroundingsOf(world, issuer));
    const input = { path: head.target, headers: Object.fromEntries(head.fields) };
    const responses = await Promise.all(Array.from({ length: callers }, async () => proxy.request(input)));
    const after = judge(head, surroundingsOf(world, issuer));
    // What becomes of it may change with the second in which it is asked.
    if (JSON.stringify(before) !== JSON.stringify(after)) continue;
    if (before.kind === 'forwarded') forwarded += 1;
    else refused += 1;
    const wire = Buffer.concat(script.pieces).toString('latin1').slice(0, 2_000);
    for (const response of responses) {
      const fault = faultOf(before, response, proxy, received);
      if (fault !== null) fail(`${fault}\n${inWords(head, world)}\n${wire}`);
    }
    const odd = issuer.faults.splice(0);
    // A proxy beside it asks as well.
    if (isMirrored) continue;
    const more = issuer.questions.length - questions;
    // Those who come when an answer that was none is over ask anew.
    if (more < 1 || more > callers || (callers === 1 && more !== 1)) fail(`${String(more)} questions\n${wire}`);
    for (const fault of odd) fail(fault);
  }
  return { cases, forwarded, refused, faults };
}

/** One whose answers are waited for. */
function someWorldInTime(draw: Draw, place: Parameters<typeof someAskedWorld>[1]): AskedWorld {
  for (;;) {
    const world = someAskedWorld(draw, place);
    if (!world.isLate) return world;
  }
}

/** Connections that break, five in a row, would have the issuer left in peace: answers-campaign.ts has them. */
function someWholeAnswer(draw: Draw, world: AskedWorld, issuer: AskedWorld['issuers'][number]): Script {
  for (;;) {
    const script = someAnswer(draw, world, issuer, Math.floor(Date.now() / 1000));
    if (script.isWhole) return script;
  }
}

function servedConfig(t: Scope, world: AskedWorld, caFile: string | null): Readonly<Record<string, unknown>> {
  const folder = tempDir(t);
  const issuers = world.issuers.map(({ name, rules, keySet }) => {
    const path = join(folder, `${name}.json`);
    writeFileSync(path, keySet);
    return [name, { ...rules, jwks_file: path, ...(caFile === null ? {} : { ca_file: caFile }) }] as const;
  });
  const { routes, revoked } = configOf(world.policy);
  // Each worker asks for itself.
  return { workers: 1, routes, revoked, issuers: Object.fromEntries(issuers) };
}

function surroundingsOf({ policy, issuers }: AskedWorld, issuer: QuestionedIssuer): Surroundings {
  return {
    policy,
    keys: new Map(issuers.map(({ name, keySet, rules }) => [name, readKeysSlowly(keySet, rules)])),
    sessionKeys: new Map(),
    nowMs: Date.now(),
    upstreamHost: '',
    callerAddress: '127.0.0.1',
    listening: plainListening,
    said: (token) => {
      const script = issuer.scripts.get(token);
      if (script === undefined) throw new Error(`nothing is said of ${token}`);
      return script;
    },
  };
}
