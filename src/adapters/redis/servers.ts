import { refuse } from '../../decision/result.js';
import type { Clock, Log, StoreFailure, StoreState } from '../../ports.js';
import { discoverPrimaries, nameOf, type FoundPrimary } from './discovery.js';
import { identityOf, wordsOf } from './fitness.js';
import { createFailoverFloor } from './floor.js';
import { slotCount, slotOf } from './hash-slot.js';
import { createPrimary, notConnectedYet, type Primary, type Ran } from './primary.js';
import { readRedirection } from './redirection.js';
import type { ScriptCall } from './script-call.js';
import type { RedisAddress, RedisSettings } from './settings.js';

/** All servers of the store, and what is known of them. */
export interface Servers {
  /** @param tag the hash tag of the call's keys. */
  readonly run: (tag: string, call: ScriptCall) => Promise<Ran>;
  /** Where such keys are served now, as far as is known. */
  readonly addressOf: (tag: string) => RedisAddress | null;
  /** Bytes that the server of such keys may hold; `null` where nothing limits it, or that is not known. */
  readonly memoryOf: (tag: string) => number | null;
  /** Every primary that is known now. */
  readonly addresses: () => readonly RedisAddress[];
  readonly state: () => StoreState;
  /** What the settings of the servers come to, once looked at: fit, or unfit until they are changed. `null` while out of reach. */
  readonly verdict: () => StoreVerdict | null;
  readonly issuedBeforeFloorS: () => number | null;
  readonly close: () => void;
}

export interface StoreVerdict {
  readonly fit: boolean;
  /** What is wrong and how to mend it; `null` where it is fit. */
  readonly problem: string | null;
}

export interface StoreDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** How long a token may be presented after its issue, the skew of clocks included, milliseconds: so long does the floor of a fail-over last. */
  readonly maxTokenLifetimeMs: () => number;
  /** Called once for each primary that was replaced or restarted. */
  readonly onFailover: () => void;
}

/** Problems that are logged in one outage. */
const mostTold = 10;

export function createServers(settings: RedisSettings, { clock, log, maxTokenLifetimeMs, onFailover }: StoreDeps): Servers {
  const { topology } = settings;
  const floor = createFailoverFloor(maxTokenLifetimeMs);
  let primaries = new Map<string, Primary>();
  /** The primary of each slot; of all of them where there is but one. */
  let slots: readonly (Primary | undefined)[] = [];
  let undiscovered: string | null = notConnectedYet;
  const told = new Set<string>();
  let isWell = false;
  let verdict: StoreVerdict | null = null;
  const discovery = topology.kind === 'single' ? null : discoverPrimaries(settings, topology, { found: use, failed: notFound });
  if (topology.kind === 'single') use([{ address: { host: topology.host, port: topology.port }, slots: [] }]);

  return {
    run: async (tag, call) => {
      const primary = primaryOf(tag);
      if (primary === undefined) return refuse(nobody());
      const first = await primary.run(call);
      const ran = first.ok || topology.kind !== 'cluster' ? first : await redirected(first, primary, call);
      if (!ran.ok && ran.error.kind === 'unreachable') discovery?.doubt();
      return ran;
    },
    addressOf: (tag) => primaryOf(tag)?.address ?? null,
    memoryOf: (tag) => {
      const bytes = primaryOf(tag)?.view().facts?.maxMemory ?? 0;
      return bytes === 0 ? null : bytes;
    },
    addresses: () => [...primaries.values()].map(({ address }) => address),
    state: () => {
      const problem = problemNow();
      return { kind: 'redis', up: problem === null, problem, connectedReplicas: fewestReplicas(), failovers: floor.failovers() };
    },
    verdict: () => verdict,
    issuedBeforeFloorS: () => floor.issuedBeforeS(clock.now()),
    close: () => {
      discovery?.close();
      for (const primary of primaries.values()) primary.close();
    },
  };

  function primaryOf(tag: string): Primary | undefined {
    return slots.length === 1 ? slots[0] : slots[slotOf(tag)];
  }

  function nobody(): StoreFailure {
    return { kind: 'unreachable', reason: undiscovered ?? 'no primary serves this part of the Cluster', mayHaveRun: false };
  }

  /** What was sent to a node that does not serve it was not run; it goes to the one that does, once. */
  async function redirected(ran: Extract<Ran, { ok: false }>, asked: Primary, call: ScriptCall): Promise<Ran> {
    const to = readRedirection(ran.error.cause, asked.address);
    if (to === null) return ran;
    if (to.kind === 'moved') discovery?.doubt();
    // A primary that was not looked at yet is asked nothing.
    const next = primaries.get(nameOf(to.address));
    return next === undefined ? ran : next.run({ ...call, asking: to.kind === 'ask' });
  }

  function use(found: readonly FoundPrimary[]): void {
    const before = primaries;
    primaries = new Map(found.map(({ address }) => [nameOf(address), before.get(nameOf(address)) ?? open(address)]));
    for (const [name, primary] of before) {
      if (primaries.has(name)) continue;
      floor.leave(name);
      primary.close();
    }
    slots = topology.kind === 'cluster' ? slotsOf(found) : [...primaries.values()];
    undiscovered = null;
    changed();
  }

  function open(address: FoundPrimary['address']): Primary {
    return createPrimary(settings, address, {
      clock,
      looked: (facts) => {
        if (facts.role === 'master' && floor.see(nameOf(address), identityOf(facts), clock.now())) tellFailover(nameOf(address));
      },
      changed,
    });
  }

  function slotsOf(found: readonly FoundPrimary[]): readonly (Primary | undefined)[] {
    const owners = new Array<Primary | undefined>(slotCount);
    for (const { address, slots: ranges } of found) {
      for (const [first, last] of ranges) owners.fill(primaries.get(nameOf(address)), first, last + 1);
    }
    return owners;
  }

  function notFound(reason: string): void {
    if (primaries.size > 0) return;
    undiscovered = reason;
    changed();
  }

  function changed(): void {
    const views = [...primaries.values()].map((primary) => primary.view());
    const looked = views.filter(({ facts }) => facts !== null);
    if (looked.length > 0) {
      const lasting = looked.flatMap(({ unfitness }) => unfitness).filter((found) => found.lasting);
      verdict = { fit: lasting.length === 0, problem: lasting.length === 0 ? null : wordsOf(lasting) };
      if (looked.length === views.length && looked.every(({ facts }) => facts?.role === 'master')) floor.settle();
    }
    tell(problemNow());
  }

  /** Each problem once until the store is well again: many calls and connections notice the same. */
  function tell(problem: string | null): void {
    if (problem === null) {
      if (!isWell) log.info('the store is in use', { servers: [...primaries.keys()] });
      told.clear();
    } else if (!problem.endsWith(notConnectedYet) && !told.has(problem) && told.size < mostTold) {
      log.error('the store takes no reservations: reserving routes answer 503', { reason: problem });
      told.add(problem);
    }
    isWell = problem === null;
  }

  function tellFailover(server: string): void {
    log.warn('the store failed over or restarted and may have forgotten: single-use tokens issued before are refused for a time', { server });
    onFailover();
  }

  function problemNow(): string | null {
    if (undiscovered !== null) return undiscovered;
    for (const [name, primary] of primaries) {
      const { problem } = primary.view();
      if (problem !== null) return primaries.size === 1 ? problem : `${name}: ${problem}`;
    }
    return slots.includes(undefined) ? 'parts of the Cluster have no primary' : null;
  }

  function fewestReplicas(): number | null {
    const counts = [...primaries.values()].map((primary) => primary.view().facts?.connectedReplicas ?? 0);
    return counts.length === 0 ? null : Math.min(...counts);
  }
}
