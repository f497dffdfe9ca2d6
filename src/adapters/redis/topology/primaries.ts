import { randomBytes } from 'node:crypto';
import { refuse } from '../../../lib/result.js';
import type { Clock, Log } from '../../../ports/system.js';
import type { StoreFailure, StoreState } from '../../../ports/idempotency.js';
import {
  discoverPrimaries,
  nameOf,
  type FoundPrimary,
  slotCount,
  slotOf,
  tagOf,
  readRedirection,
} from './discovery.js';
import { identityOf, takesSettlements, wordsOf, type ServerFacts } from './server-checks.js';
import { createFailoverFloor, type FailoverCause, type FloorLook, type Untold } from './failover-floor.js';
import { floorLastsMs, floorScript, readSeenState } from '../scripts/failover-floor.js';
import { createPrimary, noAnswerYet, notConnectedYet, type Primary, type RunResult } from './primary.js';
import { readReserveTime, UnexpectedReply } from '../scripts/replies.js';
import type { ScriptCall, ScriptReply } from '../scripts/run-script.js';
import type { RedisAddress, RedisSettings } from '../client/settings.js';
import { reasonOf, replyCode } from '../scripts/errors.js';

/** All servers of the store, and what is known of them. */
export interface Servers {
  /** @param tag the hash tag of the call's keys. */
  readonly run: (tag: string, call: ScriptCall) => Promise<RunResult>;
  /** Why nothing can be asked now of the server of such keys; `null` where it can. */
  readonly problemOf: (tag: string) => string | null;
  /** Where such keys are served now, as far as is known. */
  readonly addressOf: (tag: string) => RedisAddress | null;
  /** Bytes that the server of such keys may hold; `null` where nothing limits it, or that is not known. */
  readonly memoryOf: (tag: string) => number | null;
  /** Every primary that is known now. */
  readonly addresses: () => readonly RedisAddress[];
  readonly state: () => StoreState;
  /**
   * What the settings of the servers come to, once looked at: fit, or unfit until they are changed. `null` while out of
   * reach.
   */
  readonly verdict: () => StoreVerdict | null;
  readonly issuedBeforeFloorS: () => number | null;
  readonly close: () => void;
}

interface StoreVerdict {
  readonly fit: boolean;
  /** What is wrong and how to mend it; `null` where it is fit. */
  readonly problem: string | null;
}

export interface StoreDeps {
  readonly clock: Clock;
  readonly log: Log;
  /**
   * How long a token may be presented after its issue, the skew of clocks included, milliseconds: so long does the
   * floor of a fail-over last.
   */
  readonly maxTokenLifetimeMs: () => number;
  /** Called once for each primary that was replaced, restarted or emptied, or whose clock stepped. */
  readonly onFailover: () => void;
  /** Where an operator's command looks on: what it sees is not written down. */
  readonly looksOn?: boolean;
}

/** Problems that are logged in one outage. */
const mostTold = 10;

const untoldWords: Readonly<Record<Untold, string>> = {
  past: 'the store does not say which fail-overs it had: single-use tokens issued before now are refused for a time',
  present: 'the store says no more which fail-overs it has: where it is emptied, that is not noticed until it does',
};

export function createServers(
  settings: RedisSettings,
  { clock, log, maxTokenLifetimeMs, onFailover, looksOn = false }: StoreDeps,
): Servers {
  const { topology } = settings;
  const floor = createFailoverFloor(maxTokenLifetimeMs);
  let primaries = new Map<string, Primary>();
  /** The primary of each slot; of all of them where there is but one. */
  let slots: readonly (Primary | undefined)[] = [];
  /** First and last slot of each range, by the name of the primary that serves them. */
  let ranges: ReadonlyMap<string, FoundPrimary['slots']> = new Map();
  let undiscovered: string | null = notConnectedYet;
  const told = new Set<string>();
  let isWell = false;
  let verdict: StoreVerdict | null = null;
  const discovery =
    topology.kind === 'single' ? null : discoverPrimaries(settings, topology, { found: use, failed: notFound });
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
    problemOf: (tag) => {
      const primary = primaryOf(tag);
      return primary === undefined ? nobody().reason : problemWith(primary);
    },
    addressOf: (tag) => primaryOf(tag)?.address ?? null,
    memoryOf: (tag) => {
      const bytes = primaryOf(tag)?.view().facts?.maxMemory ?? 0;
      return bytes === 0 ? null : bytes;
    },
    addresses: () => [...primaries.values()].map(({ address }) => address),
    state: () => {
      const problem = problemNow();
      return {
        kind: 'redis',
        up: problem === null,
        problem,
        connectedReplicas: fewestReplicas(),
        servers: [...primaries].map(([address, primary]) => {
          const { facts } = primary.view();
          return { address, role: facts?.role ?? null, replicas: facts?.connectedReplicas ?? null };
        }),
        failovers: floor.failovers(),
      };
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
    return {
      kind: 'unreachable',
      reason: undiscovered ?? 'no primary serves this part of the Cluster',
      mayHaveRun: false,
    };
  }

  /** What was sent to a node that does not serve it was not run; it goes to the one that does, once. */
  async function redirected(
    ran: Extract<RunResult, { ok: false }>,
    asked: Primary,
    call: ScriptCall,
  ): Promise<RunResult> {
    const to = readRedirection(ran.error.cause, asked.address);
    if (to === null) return ran;
    if (to.kind === 'moved') discovery?.doubt();
    // A primary that was not looked at yet is asked nothing.
    const next = primaries.get(nameOf(to.address));
    return next === undefined ? ran : next.run({ ...call, asking: to.kind === 'ask' });
  }

  function use(found: readonly FoundPrimary[]): void {
    const before = primaries;
    ranges = new Map(found.map(({ address, slots: served }) => [nameOf(address), served]));
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
    const place = nameOf(address);
    const lookAt = (facts: ServerFacts): FloorLook => ({
      place,
      identity: identityOf(facts),
      tag: tagOf(ranges.get(place) ?? []),
      nowMs: clock.now(),
    });
    return createPrimary(settings, address, {
      clock,
      examine: async (facts, ask) => {
        if (!looksOn && takesSettlements(facts)) await askWhatIsRemembered(lookAt(facts), ask);
      },
      looked: (facts) => {
        if (facts.role !== 'master') return;
        floor.see(lookAt(facts));
        tellNews(place);
      },
      ran: ({ script }, reply, { identity, fromMs, toMs }) => {
        const serverMs = script.name === 'reserve' ? readReserveTime(reply) : null;
        if (serverMs === null) return;
        floor.time({ place, identity, nowMs: clock.now() }, { serverMs, fromMs, toMs });
        tellNews(place);
      },
      changed,
    });
  }

  function tellNews(place: string): void {
    for (const cause of floor.news(place)) tellFailover(place, cause);
  }

  /**
   * Before anything is asked of a primary it is known which of its fail-overs others saw, and they are told of those
   * that were seen here.
   */
  async function askWhatIsRemembered(look: FloorLook, ask: (call: ScriptCall) => Promise<ScriptReply>): Promise<void> {
    floor.see(look);
    const fromMs = clock.monotonic();
    const expectedMs = floor.expectedMs(look.place, fromMs);
    const values = [
      look.identity,
      randomBytes(16).toString('base64url'),
      look.nowMs,
      floor.atMs(),
      floorLastsMs,
      expectedMs ?? '',
    ].map(String);
    try {
      const call = {
        script: floorScript,
        keys: [`${settings.prefix}:{${look.tag}}:floor`],
        values,
        replicas: 0,
        deadlineMs: Infinity,
      };
      const { reply } = await ask(call);
      const state = readSeenState(reply);
      floor.read(look, state, { fromMs, toMs: clock.monotonic() });
      if (expectedMs === null && state.aheadMs > 0) {
        log.info(
          'by the clock of the store nobody has looked at it for a while: single-use tokens issued before now are refused for a time',
          {
            server: look.place,
            seconds: Math.round(state.aheadMs / 1000),
          },
        );
      }
    } catch (error) {
      if (replyCode(error) === null && !(error instanceof UnexpectedReply)) throw error;
      // A user without rights, a full server, a slot that a Cluster hands over just now: what was read before still
      // holds.
      const untold = floor.refused(look);
      if (untold !== null) log.warn(untoldWords[untold], { server: look.place, reason: reasonOf(error) });
    }
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
    } else if (!isBeginning(problem) && !told.has(problem) && told.size < mostTold) {
      log.error('the store takes no reservations: reserving routes answer 503', { reason: problem });
      told.add(problem);
    }
    isWell = problem === null;
  }

  function tellFailover(server: string, cause: FailoverCause): void {
    const refused = 'single-use tokens issued before are refused for a time';
    if (cause.kind === 'replaced') {
      log.warn(`the store failed over or restarted and may have forgotten: ${refused}`, { server });
    }
    if (cause.kind === 'emptied') {
      log.error(`the store was emptied, or an older state was put back, while it was in use: ${refused}`, { server });
    }
    if (cause.kind === 'clock') {
      log.error(`the clock of the store stepped, and what it keeps may end early: ${refused}`, {
        server,
        stepped_ms: Math.round(cause.stepMs),
        what_to_do: 'let the clock of every host of the store be slewed, not stepped',
      });
    }
    onFailover();
  }

  function problemNow(): string | null {
    if (undiscovered !== null) return undiscovered;
    for (const primary of primaries.values()) {
      const problem = problemWith(primary);
      if (problem !== null) return problem;
    }
    return slots.includes(undefined) ? 'parts of the Cluster have no primary' : null;
  }

  /** Where there are several, it says which one. */
  function problemWith(primary: Primary): string | null {
    const { problem } = primary.view();
    return problem === null || primaries.size === 1 ? problem : `${nameOf(primary.address)}: ${problem}`;
  }

  function fewestReplicas(): number | null {
    const counts = [...primaries.values()].map((primary) => primary.view().facts?.connectedReplicas ?? 0);
    return counts.length === 0 ? null : Math.min(...counts);
  }
}

/** Whether nothing is known yet of the server that it names: that is no news. */
function isBeginning(problem: string): boolean {
  return problem.endsWith(notConnectedYet) || problem.endsWith(noAnswerYet);
}
