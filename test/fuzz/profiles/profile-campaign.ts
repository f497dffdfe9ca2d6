/** Tries tokens of every profile by the thousand: the model’s verdict, and its identity for the receiver. */
import { readKeySet } from '../../../src/adapters/jwks/key-set.js';
import { validateConfig } from '../../../src/config/load/validate-config.js';
import { formatProblem } from '../../../src/config/load/report.js';
import type { CompiledConfig } from '../../../src/config/types.js';
import type { KeyLookup } from '../../../src/ports/auth.js';
import type { Scope } from '../../support/scope.js';
import { baseConfig } from '../../support/proxy-process.js';
import { drawFrom, pick, type Draw } from '../draw.js';
import { createStage, openUpstream, tryHead, upstreamUrl, type Stage } from '../in-process.js';
import type { Head } from '../model.js';
import type { Policy } from '../model-policy.js';
import { configOf, nowMs } from '../policies.js';
import { readKeysSlowly } from './model-keys.js';
import { someProfileToken } from './profile-tokens.js';
import { someWorld, type World } from './worlds.js';

export interface ProfileReport {
  /** Requests. */
  readonly cases: number;
  readonly worlds: number;
  readonly forwarded: number;
  /** Ways through the decision that were seen. */
  readonly ways: number;
  /** The first faults, with what makes each happen again. */
  readonly faults: readonly string[];
}

export interface ProfileOptions {
  readonly seed: number;
  readonly cases: number;
  /** Faults after which it ends; 10 unless given. */
  readonly maxFaults?: number;
}

const tokensPerWorld = 60;

/** Runs one. Each world of a seed can be had without those before it. */
export async function runProfiles(t: Scope, { seed, cases, maxFaults = 10 }: ProfileOptions): Promise<ProfileReport> {
  const faults: string[] = [];
  const ways = new Set<string>();
  let [tried, forwarded, number] = [0, 0, 0];
  let upstream: ReturnType<typeof openUpstream> | null = null;
  for (; tried < cases && faults.length < maxFaults; number++) {
    const draw = drawFrom(seed, number);
    const world = someWorld(draw);
    const config = compiledOf(world.policy);
    if (typeof config === 'string') throw new Error(`world ${String(number)} is refused: ${config}`);
    upstream ??= openUpstream(t, config);
    const stage = await stageOf(world, config, upstream);
    for (let count = 0; count < tokensPerWorld && faults.length < maxFaults; count++) {
      const head = someAsk(draw, someProfileToken(draw, world, nowMs / 1000));
      const outcome = await tryHead(head, stage);
      tried += 1;
      if (outcome.forwarded) forwarded += 1;
      ways.add(outcome.way);
      if (outcome.fault !== null) {
        faults.push(
          `seed ${String(seed)}, world ${String(number)}, token ${String(count)}: ${outcome.fault}\n${inWords(head, world)}`,
        );
      }
    }
  }
  return { cases: tried, worlds: number, forwarded, ways: ways.size, faults };
}

/** The keys as they are read from what the issuers' servers answer. */
async function stageOf(
  world: World,
  config: CompiledConfig,
  upstream: ReturnType<typeof openUpstream>,
): Promise<Stage> {
  const found = new Map<string, (keyId: string) => KeyLookup>();
  for (const { name, keySet } of world.issuers) {
    const settings = config.issuers.find(({ rules }) => rules.name === name);
    if (settings === undefined) throw new Error(`no issuer ${name}`);
    const read = await readKeySet(Buffer.from(keySet), settings.keys.rules);
    found.set(name, (keyId) => {
      if (!read.ok) return { kind: 'unavailable' };
      const key = read.value.keys.get(keyId);
      return key === undefined ? { kind: 'unknown' } : { kind: 'found', key };
    });
  }
  return createStage(world.policy, config, upstream, {
    find: (name, keyId) => found.get(name)?.(keyId) ?? { kind: 'unknown' },
    model: new Map(world.issuers.map(({ name, keySet, rules }) => [name, readKeysSlowly(keySet, rules)])),
  });
}

/** A request with this token, to any of the routes or to none. */
export function someAsk(draw: Draw, token: string): Head {
  return {
    method: 'GET',
    target: pick(draw, ['/all', '/all', '/exact', '/exact', '/read', '/one', '/pairs', '/nowhere']),
    version: '1.1',
    fields: [
      ['Host', 'sallyport.example'],
      ['Authorization', `Bearer ${token}`],
    ],
  };
}

export function compiledOf(policy: Policy): CompiledConfig | string {
  const text = baseConfig({ ...configOf(policy), upstream: { url: upstreamUrl }, issuers: undefined });
  const issuers = JSON.stringify(configOf(policy)['issuers']);
  const { config, problems } = validateConfig(`${text}issuers: ${issuers}\n`, {
    file: 'fuzz.yaml',
    folder: '/',
    env: {},
    readFile: () => ({ ok: false, error: 'no files here' }),
  });
  return (
    config ??
    problems
      .filter(({ severity }) => severity === 'error')
      .map(formatProblem)
      .join('\n')
  );
}

/** What a reader needs to see what is wrong. */
export function inWords(head: Head, world: World): string {
  const token = head.fields.find(([name]) => name === 'Authorization')?.[1].slice('Bearer '.length) ?? '';
  const parts = token.split('.').slice(0, 2);
  const texts = parts.map((part) => Buffer.from(part, 'base64url').toString());
  return [
    head.target,
    ...texts,
    token,
    JSON.stringify(world.policy.issuers),
    ...world.issuers.map(({ keySet }) => keySet),
  ].join('\n');
}
