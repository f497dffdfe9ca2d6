/** What a reload replaces: parts that go on until nobody needs them, and upstreams that need not be replaced. */
import { isDeepStrictEqual } from 'node:util';
import { systemTimers } from '../../adapters/system/clock.js';
import type { UpstreamSettings } from '../../config/types.js';
import type { Upstream } from '../../proxy/upstream/pool/pool.js';

interface Part {
  readonly close: () => Promise<void> | void;
}

/** Parts that are not in force: not yet, or no more, but may still serve requests that began before. */
interface ReplacedParts {
  readonly add: (part: Part) => void;
  /** It is in force. */
  readonly remove: (part: Part) => void;
  /** Closes a part after so many milliseconds: a request that began before may be waiting for what it says. */
  readonly closeLater: (part: Part, delayMs: number) => void;
  /**
   * Lets an upstream go on until it serves nothing. Requests that wait for something else at the reload come to it
   * after that: the first look, after so many milliseconds, has to be later.
   */
  readonly retire: (upstream: Upstream, delayMs?: number) => void;
  /** Closes all of them now. */
  readonly close: () => Promise<void>;
}

/** Between looks at whether an upstream that was replaced still serves requests. */
const idleCheckMs = 1_000;

export function createReplacedParts(): ReplacedParts {
  const parts = new Set<Part>();

  function closeLater(part: Part, delayMs: number): void {
    parts.add(part);
    systemTimers.after(delayMs, () => {
      if (parts.delete(part)) void part.close();
    });
  }

  function closeWhenIdle(upstream: Upstream, delayMs: number): void {
    systemTimers.after(delayMs, () => {
      const { active, waiting } = upstream.counts();
      if (active + waiting > 0) closeWhenIdle(upstream, idleCheckMs);
      else if (parts.delete(upstream)) void upstream.close();
    });
  }

  return {
    add: (part) => {
      parts.add(part);
    },
    remove: (part) => {
      parts.delete(part);
    },
    closeLater,
    retire: (upstream, delayMs = 0) => {
      upstream.retire();
      parts.add(upstream);
      closeWhenIdle(upstream, Math.max(idleCheckMs, delayMs));
    },
    close: async () => {
      const all = [...parts];
      parts.clear();
      await Promise.all(all.map(async (part) => part.close()));
    },
  };
}

/** What comes with each request, from the config that it is judged by; of `caFile`, what it says is compared. */
const notOfConnections: ReadonlySet<string> = new Set<keyof UpstreamSettings>([
  'caFile',
  'host',
  'beginsTrace',
  'stripFields',
  'passFields',
  'responseTimeoutMs',
]);

/** Compares what the connections to an upstream are made of: all of its settings but those that are named above. */
export function isSameUpstream(settings: UpstreamSettings, next: UpstreamSettings): boolean {
  const ofConnections = (all: UpstreamSettings): object =>
    Object.fromEntries(Object.entries(all).filter(([key]) => !notOfConnections.has(key)));
  return isDeepStrictEqual(ofConnections(settings), ofConnections(next));
}
