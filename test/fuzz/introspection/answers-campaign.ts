/** Tries answers about opaque tokens by the thousand: the model’s verdict, and whether the issuer is asked as often. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { localFiles } from '../../../src/adapters/files/files.js';
import { readKeySet } from '../../../src/adapters/jwks/key-set.js';
import { createIntrospector, type RunningIntrospection } from '../../../src/adapters/oauth/introspector.js';
import type { CompiledConfig } from '../../../src/config/types.js';
import type { KeyLookup } from '../../../src/ports/auth.js';
import type { Clock } from '../../../src/ports/system.js';
import { keyState } from '../../support/key-state.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { drawFrom, once, pick, type Draw } from '../draw.js';
import { createStage, openUpstream, tryHead, type Outcome, type Stage } from '../in-process.js';
import type { Head } from '../model.js';
import { nowMs } from '../policies.js';
import { readKeysSlowly } from '../profiles/model-keys.js';
import { compiledOf, inWords, someAsk } from '../profiles/profile-campaign.js';
import { someProfileToken } from '../profiles/profile-tokens.js';
import { lateAnswer, someAnswer } from './answers.js';
import { clientSecret, startAskedIssuer, type QuestionedIssuer, type Script } from './asked-issuer.js';
import { askedAbout, isOpaque, readAnswer, readMembers, type AskedIssuer } from './model-answers.js';
import { someAskedWorld, type AskedWorld } from './worlds.js';

export interface AnswersReport {
  /** Answers. */
  readonly cases: number;
  readonly forwarded: number;
  /** Of those that were no answer. */
  readonly unanswered: number;
  readonly questions: number;
  /** Ways through the decision that were seen. */
  readonly ways: number;
  /** The first faults, with what makes each happen again. */
  readonly faults: readonly string[];
}

export interface AnswersOptions {
  readonly seed: number;
  readonly cases: number;
  /** Faults after which it ends; 10 unless given. */
  readonly maxFaults?: number;
  /** The first world; 0 unless given. */
  readonly from?: number;
}

const tokensPerWorld = 60;
const tokensPerLateWorld = 6;

/** Runs one. Each world of a seed can be had without those before it. */
export async function runAnswers(
  t: Scope,
  { seed, cases, maxFaults = 10, from = 0 }: AnswersOptions,
): Promise<AnswersReport> {
  const issuer = await startAskedIssuer(t);
  const secretFile = join(tempDir(t), 'client-secret');
  writeFileSync(secretFile, clientSecret);
  chmodSync(secretFile, 0o600);
  const faults: string[] = [];
  const ways = new Set<string>();
  let [tried, forwarded, unanswered] = [0, 0, 0];
  let upstream: ReturnType<typeof openUpstream> | null = null;
  for (let number = from; tried < cases && faults.length < maxFaults; number++) {
    const draw = drawFrom(seed, number);
    const world = someAskedWorld(draw, { url: issuer.url, secretFile });
    const config = compiledOf(world.policy);
    if (typeof config === 'string') throw new Error(`world ${String(number)} is refused: ${config}`);
    upstream ??= openUpstream(t, config);
    const stage = await openStage(world, config, upstream, issuer);
    const most = world.isLate ? tokensPerLateWorld : tokensPerWorld;
    for (let count = 0; count < most && faults.length < maxFaults; count++) {
      const seen = await tryToken(draw, stage, `${String(number)}-${String(count)}`);
      tried += 1;
      if (seen.outcome.forwarded) forwarded += 1;
      if (seen.script?.isWhole === false) unanswered += 1;
      ways.add(seen.outcome.way);
      for (const fault of [...seen.faults, ...issuer.faults.splice(0)]) {
        faults.push(
          `seed ${String(seed)}, world ${String(number)}, token ${String(count)}: ${fault}\n${seen.inWords()}`,
        );
      }
    }
    await stage.close();
  }
  return { cases: tried, forwarded, unanswered, questions: issuer.questions.length, ways: ways.size, faults };
}

interface AskedStage extends Stage {
  readonly world: AskedWorld;
  readonly issuer: QuestionedIssuer;
  /** Puts the clock that only measures ahead. */
  readonly advance: (ms: number) => void;
  readonly close: () => Promise<void>;
}

async function openStage(
  world: AskedWorld,
  config: CompiledConfig,
  upstream: ReturnType<typeof openUpstream>,
  issuer: QuestionedIssuer,
): Promise<AskedStage> {
  let measuredMs = 0;
  const clock: Clock = { now: () => nowMs, monotonic: () => measuredMs };
  const finders = new Map<string, (keyId: string) => KeyLookup>();
  const running: RunningIntrospection[] = [];
  const introspections = new Map<string, RunningIntrospection>();
  for (const { name, keySet, introspection } of world.issuers) {
    issuer.clients.set(`/${name}`, introspection);
    const settings = config.issuers.find(({ rules }) => rules.name === name);
    if (!settings?.introspection) throw new Error(`${name} is not asked`);
    const read = await readKeySet(Buffer.from(keySet), settings.keys.rules);
    const find = (keyId: string): KeyLookup => {
      if (!read.ok) return { kind: 'unavailable' };
      const key = read.value.keys.get(keyId);
      return key === undefined ? { kind: 'unknown' } : { kind: 'found', key };
    };
    finders.set(name, find);
    const introspector = createIntrospector(settings.introspection, settings.rules, {
      clock,
      files: localFiles,
      log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
      metrics: { introspection: ignore, introspectionLookup: ignore },
      keys: { find, state: () => keyState() },
    });
    await introspector.start();
    introspections.set(name, introspector);
    running.push(introspector);
  }
  const { surroundings, activeConfig } = createStage(world.policy, config, upstream, {
    find: (name, keyId) => finders.get(name)?.(keyId) ?? { kind: 'unknown' },
    model: new Map(world.issuers.map(({ name, keySet, rules }) => [name, readKeysSlowly(keySet, rules)])),
  });
  return {
    world,
    issuer,
    surroundings: { ...surroundings, said: (token) => scriptOf(issuer, token) },
    activeConfig: {
      ...activeConfig,
      issuers: activeConfig.issuers.map((active) => {
        const source = introspections.get(active.rules.name);
        const rules = config.issuers.find((one) => one.rules.name === active.rules.name)?.introspection?.rules;
        return source === undefined || rules === undefined ? active : { ...active, introspection: { source, rules } };
      }),
    },
    advance: (ms) => {
      measuredMs += ms;
    },
    close: async () => {
      await Promise.all(running.map(async (introspector) => introspector.close()));
      issuer.clients.clear();
      issuer.scripts.clear();
    },
  };
}

const ignore = (): void => undefined;

function scriptOf(issuer: QuestionedIssuer, token: string): Script {
  const script = issuer.scripts.get(token);
  if (script === undefined) throw new Error(`nothing is said of ${token}`);
  return script;
}

/** What was seen of one token. */
interface Seen {
  readonly outcome: Outcome;
  /** What the issuer said of it; `null` where it is not asked. */
  readonly script: Script | null;
  readonly faults: readonly string[];
  readonly inWords: () => string;
}

/** Brings one token once or by several callers at once, and then perhaps again. */
async function tryToken(draw: Draw, stage: AskedStage, id: string): Promise<Seen> {
  const { world, issuer } = stage;
  const token = once(draw, 15)
    ? someProfileToken(draw, world, nowMs / 1000)
    : `${pick(draw, world.issuers).introspection.token_prefix ?? ''}${id}${pick(draw, ends)}`;
  const asked = isOpaque(token) ? askedAbout(token, world.policy) : null;
  const script = asked === null ? null : someScript(draw, world, asked);
  if (script !== null) issuer.scripts.set(token, script);
  const head = someAsk(draw, token);
  const callers = once(draw, 5) ? 4 : 1;
  const before = issuer.questions.length;
  issuer.delayMs = callers > 1 ? 1 : 0;
  const outcomes = await Promise.all(Array.from({ length: callers }, async () => tryHead(head, stage)));
  const first = issuer.questions.length - before;
  const faults = [...new Set(outcomes.flatMap(({ fault }) => fault ?? []))];
  const wanted = asked === null ? 0 : 1;
  // After failures one question in half a second is let through.
  stage.advance(600);
  if (first !== wanted) faults.push(`${String(first)} questions of ${String(callers)} callers at once`);
  if (once(draw, 3)) {
    const again = await tryHead(head, stage);
    if (again.fault !== null) faults.push(`again: ${again.fault}`);
    const more = issuer.questions.length - before - first;
    const remembered = asked === null || script === null ? true : isRemembered(script, asked, stage);
    if (remembered !== null && more !== (remembered ? 0 : 1)) {
      faults.push(`${String(more)} questions when it came again`);
    }
  }
  stage.advance(1_000);
  const [outcome] = outcomes;
  if (outcome === undefined) throw new Error('nobody asked');
  return { outcome, script, faults, inWords: () => wordsOf(head, world, script) };
}

/** How tokens go on: characters of RFC 6750 §2.1, and the forms of JWTs, nearly. */
const ends = [
  '',
  '',
  '',
  '',
  '=',
  '==',
  '~',
  '/+',
  '-_',
  '.',
  '.x',
  '.x.y',
  '.e30.e30',
  '.eyJhIjoxfQ.x',
  '..',
  '.x.y.z',
];

function someScript(draw: Draw, world: AskedWorld, { name }: AskedIssuer): Script {
  const issuer = world.issuers.find((one) => one.name === name);
  if (issuer === undefined) throw new Error(`no ${name}`);
  const script = someAnswer(draw, world, issuer, nowMs / 1000);
  return world.isLate ? lateAnswer(draw, script) : script;
}

/** docs/introspection.md, "For how long an answer is believed"; `null` where it does not say. */
function isRemembered(script: Script, asked: AskedIssuer, { surroundings }: Stage): boolean | null {
  const said = readAnswer(script, asked, surroundings.keys.get(asked.name) ?? null, nowMs);
  if (said === 'none') return false;
  if (said === 'inactive') return true;
  const exp = said.get('exp');
  if (typeof exp !== 'number' || !Number.isSafeInteger(exp)) return null;
  if (exp > nowMs / 1000) return true;
  // Within `clock_skew` it counts, and is not kept for that (RFC 7662 §4). Of what is refused nothing is said.
  return readMembers(said, asked, nowMs) === null ? null : false;
}

function wordsOf(head: Head, world: AskedWorld, script: Script | null): string {
  const wire = script === null ? 'nobody is asked' : Buffer.concat(script.pieces).toString('latin1');
  return `${inWords(head, world)}\n${wire.length > 4_000 ? `${wire.slice(0, 4_000)}…` : wire}\n${script?.end ?? ''}`;
}
