/** The same tokens against `sallyport serve`, a process of its own, over sockets. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RawResponse } from '../../support/raw-client.js';
import { startProxyProcess, type ProxyProcess } from '../../support/proxy-process.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { drawFrom } from '../draw.js';
import { plainListening } from '../model-bound-tokens.js';
import { judge, type Expected, type Surroundings } from '../model.js';
import { configOf } from '../policies.js';
import { readKeysSlowly } from './model-keys.js';
import { inWords, someAsk } from './profile-campaign.js';
import { someProfileToken } from './profile-tokens.js';
import { someWorld, type World } from './worlds.js';

interface ServedReport {
  readonly cases: number;
  readonly forwarded: number;
  readonly refused: number;
  readonly faults: readonly string[];
}

/** Starts a process for a world of this seed, and asks it about so many tokens. */
export async function runServed(t: Scope, seed: number, number: number, cases: number): Promise<ServedReport> {
  const draw = drawFrom(seed, number);
  const world = someWorld(draw);
  const proxy = await startProxyProcess(t, { ready: false, config: servedConfig(t, world) });
  const faults: string[] = [];
  let [forwarded, refused] = [0, 0];
  for (let count = 0; count < cases; count++) {
    const head = someAsk(draw, someProfileToken(draw, world, Math.floor(Date.now() / 1000)));
    const before = judge(head, surroundingsOf(world));
    const received = proxy.receiver.requests.length;
    const response = await proxy.request({ path: head.target, headers: Object.fromEntries(head.fields) });
    const after = judge(head, surroundingsOf(world));
    // What becomes of it may change with the second in which it is asked.
    if (JSON.stringify(before) !== JSON.stringify(after)) continue;
    if (before.kind === 'forwarded') forwarded += 1;
    else refused += 1;
    const fault = faultOf(before, response, proxy, received);
    if (fault !== null) faults.push(`seed ${String(seed)}, world ${String(number)}: ${fault}\n${inWords(head, world)}`);
  }
  return { cases, forwarded, refused, faults };
}

function servedConfig(t: Scope, world: World): Readonly<Record<string, unknown>> {
  const folder = tempDir(t);
  const issuers = world.issuers.map(({ name, rules, keySet }) => {
    const path = join(folder, `${name}.json`);
    writeFileSync(path, keySet);
    const place = rules.profile === 'spiffe' ? { bundle_file: path } : { jwks_file: path };
    return [name, { ...rules, ...place, jwks: { cooldown: '0ms' } }] as const;
  });
  const { routes, revoked } = configOf(world.policy);
  return { routes, revoked, issuers: Object.fromEntries(issuers) };
}

function surroundingsOf({ policy, issuers }: World): Surroundings {
  return {
    policy,
    keys: new Map(issuers.map(({ name, keySet, rules }) => [name, readKeysSlowly(keySet, rules)])),
    sessionKeys: new Map(),
    nowMs: Date.now(),
    upstreamHost: '',
    callerAddress: '127.0.0.1',
    listening: plainListening,
  };
}

export function faultOf(
  expected: Expected,
  response: RawResponse,
  proxy: ProxyProcess,
  received: number,
): string | null {
  const request = proxy.receiver.requests[received];
  if (expected.kind === 'refused') {
    if (request !== undefined) return `BYPASS: reached the receiver instead of ${expected.statuses.join(' or ')}`;
    return expected.statuses.includes(response.status)
      ? null
      : `${String(response.status)} instead of ${expected.statuses.join(' or ')}`;
  }
  if (response.status !== 200 || request === undefined) {
    return `${String(response.status)}, though the contract lets it through to ${expected.route}`;
  }
  const wrong = expected.identity.filter(([name, value]) => request.field(name.toLowerCase()).join('\n') !== value);
  return wrong.length === 0 ? null : `BYPASS: the receiver is not told ${JSON.stringify(wrong)}`;
}
