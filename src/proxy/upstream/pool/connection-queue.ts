/**
 * In overload as many calls may wait for each connection: with all of them busy, the last in line waits for one and a
 * half times what the upstream takes for a request.
 */
const waitingPerConnection = 1.5;

/** Where connections are few, so many may wait: what comes by chance must not look like overload. */
const minQueueLength = 8;

/** Milliseconds between two looks at whether more calls join the line than leave it. */
const lookMs = 50;

/** After so many looks without a call that gave way it is no overload any more. */
const calmLooks = 10;

/** Something that waits, of somebody. */
export interface Queued {
  readonly holder: string;
}

/**
 * Calls that wait for a connection, or writes that wait until they may be reserved. Holders take turns, and the calls
 * of each are in the order in which they came.
 *
 * A burst may make it long, up to what the time limit of each call allows. In overload, when it is long and more calls
 * join than leave it, a long line helps nobody: as many are served as without it, each of them late. So it is cut, and
 * stays short until the overload is over: the oldest call of the holder that has most in line gives way to a new one.
 * Those that are served have waited for a short time then, and no holder's flood makes those of another give way.
 */
export class ConnectionQueue<T extends Queued> {
  /** By holder. The first one has its turn next. */
  private readonly queues = new Map<string, Set<T>>();
  private maxInOverload = 0;
  private readonly onEvicted: (call: T) => void;
  private count = 0;
  /** Set while the line is longer than it may be in overload, or was it a while ago. */
  private looking: NodeJS.Timeout | null = null;
  /** Counts since the last look; `null` before the first: a burst that came before it says nothing of those to come. */
  private since: { joined: number; left: number } | null = null;
  private isOverloaded = false;
  private calmLooks = 0;

  /** `onGiveWay` is called with a call that is in line no more. */
  constructor(maxConnections: number, onGiveWay: (call: T) => void) {
    this.resize(maxConnections);
    this.onEvicted = onGiveWay;
  }

  /** So many calls can be served at once from now on. */
  resize(maxConnections: number): void {
    this.maxInOverload = Math.max(minQueueLength, Math.ceil(maxConnections * waitingPerConnection));
  }

  get length(): number {
    return this.count;
  }

  join(call: T): void {
    const queue = this.queues.get(call.holder);
    if (queue === undefined) this.queues.set(call.holder, new Set([call]));
    else queue.add(call);
    this.count += 1;
    if (this.since !== null) this.since.joined += 1;
    if (this.isOverloaded) this.cut();
    else if (this.looking === null && this.count > this.maxInOverload) this.looking = setInterval(this.look, lookMs);
  }

  leave(call: T): void {
    const queue = this.queues.get(call.holder);
    if (queue?.delete(call) !== true) return;
    this.count -= 1;
    if (queue.size === 0) this.queues.delete(call.holder);
    if (this.since !== null) this.since.left += 1;
  }

  /**
   * Has calls start, one of each holder in turn, until none does. `tryToStart` takes a call out of the line before it
   * starts it, which may end it at once, and says whether it did; it is asked for the next one of the same holder only
   * then.
   */
  startInTurn(tryToStart: (call: T) => boolean, isFull: () => boolean): void {
    const idle = new Set<string>();
    while (idle.size < this.queues.size && !isFull()) {
      for (const [holder, queue] of this.queues) {
        if (idle.has(holder) || isFull()) continue;
        const [first] = queue;
        if (first === undefined || !tryToStart(first)) idle.add(holder);
        else this.endTurn(holder);
      }
    }
  }

  /** Takes all of them out. */
  takeAll(): readonly T[] {
    const all = [...this.queues.values()].flatMap((queue) => [...queue]);
    for (const call of all) this.leave(call);
    this.stopLooking();
    return all;
  }

  private endTurn(holder: string): void {
    const queue = this.queues.get(holder);
    if (queue === undefined) return;
    this.queues.delete(holder);
    this.queues.set(holder, queue);
  }

  private readonly look = (): void => {
    const { since } = this;
    this.since = { joined: 0, left: 0 };
    if (this.isOverloaded) {
      this.calmLooks += 1;
      if (this.calmLooks >= calmLooks) this.stopLooking();
    } else if (this.count <= this.maxInOverload) this.stopLooking();
    else if (since !== null && since.joined > since.left) {
      this.isOverloaded = true;
      this.cut();
    }
  };

  private cut(): void {
    while (this.count > this.maxInOverload) {
      this.calmLooks = 0;
      const longest = [...this.queues.values()].reduce((one, other) => (other.size > one.size ? other : one));
      const [oldest] = longest;
      if (oldest === undefined) return;
      this.leave(oldest);
      this.onEvicted(oldest);
    }
  }

  private stopLooking(): void {
    if (this.looking !== null) clearInterval(this.looking);
    this.looking = null;
    this.since = null;
    this.isOverloaded = false;
    this.calmLooks = 0;
  }
}
