/**
 * In overload as many calls may wait for each connection: with all of them busy, the last in the queue waits for one
 * and a half times what the upstream takes for a request.
 */
const waitingPerConnection = 1.5;

/** While nobody knows whether it is overload or a burst, this many times as many calls may wait in their order. */
const orderedInDoubt = 2;

/** Where connections are few, so many may wait: what comes by chance must not look like overload. */
const minQueueLength = 8;

/** Milliseconds between two looks at whether more calls join the queue than leave it. */
const lookMs = 50;

/** After so many looks without a call that gave way it is no overload any more. */
const calmLooks = 10;

/** Something that waits, of somebody. */
export interface Queued {
  readonly holder: string;
}

/** Those that wait, by holder. Holders take turns, and the calls of each are in the order in which they came. */
class HolderQueues<T extends Queued> {
  /**
   * The first one has its turn next. Arrays, since a `Set` that many calls pass through keeps them too long: a table of
   * V8's refers to the one that took its place, so once one is in the old generation all that follow stay.
   */
  private readonly queues = new Map<string, T[]>();
  private count = 0;

  get length(): number {
    return this.count;
  }

  join(call: T): void {
    const queue = this.queues.get(call.holder);
    if (queue === undefined) this.queues.set(call.holder, [call]);
    else queue.push(call);
    this.count += 1;
  }

  /** Whether it waited here. */
  leave(call: T): boolean {
    const queue = this.queues.get(call.holder);
    const position = queue?.indexOf(call) ?? -1;
    if (queue === undefined || position < 0) return false;
    if (position === 0) queue.shift();
    else queue.splice(position, 1);
    this.count -= 1;
    if (queue.length === 0) this.queues.delete(call.holder);
    return true;
  }

  /** Takes the oldest call of the holder that has most of them. */
  takeOldestOfMost(): T | null {
    let most: readonly T[] = [];
    for (const queue of this.queues.values()) if (queue.length > most.length) most = queue;
    const oldest = most[0] ?? null;
    if (oldest !== null) this.leave(oldest);
    return oldest;
  }

  /** See `ConnectionQueue.startInTurn`. */
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

  takeAll(): readonly T[] {
    const all = [...this.queues.values()].flat();
    this.queues.clear();
    this.count = 0;
    return all;
  }

  private endTurn(holder: string): void {
    const queue = this.queues.get(holder);
    if (queue === undefined) return;
    this.queues.delete(holder);
    this.queues.set(holder, queue);
  }
}

/**
 * Calls that wait for a connection, or writes that wait until they may be reserved. Holders take turns, and the calls
 * of each are in the order in which they came.
 *
 * A burst may make it long, up to what the time limit of each call allows. In overload, when it is long and more calls
 * join than leave it, a long queue helps nobody: as many are served as without it, each of them late. So it is cut, and
 * stays short until the overload is over: the oldest call of the holder that has most in the queue gives way to a new
 * one. Those that are served have waited for a short time then, and no holder's flood makes those of another give way.
 * It is over when nobody waits: bursts that can be served would else make calls give way for as long as they come.
 *
 * For as long as nobody knows which of the two it is, the queue may be twice as long, and those that would give way are
 * postponed: they start behind all others.
 */
export class ConnectionQueue<T extends Queued> {
  private ordered = new HolderQueues<T>();
  /** Each is older than those of its holder that are in order. */
  private postponed = new HolderQueues<T>();
  private maxInOverload = 0;
  private readonly onGiveWay: (call: T) => void;
  /** Set while the queue is longer than it may be in overload, or was it a while ago. */
  private looking: NodeJS.Timeout | null = null;
  /** Counts since the last look; `null` before the first: a burst that came before it says nothing of those to come. */
  private since: { joined: number; left: number } | null = null;
  /** Whether it is a burst or overload: `null` while nobody knows. */
  private isOverloaded: boolean | null = null;
  private calmLooks = 0;

  /** `onGiveWay` is called with a call that waits no more. */
  constructor(maxConnections: number, onGiveWay: (call: T) => void) {
    this.resize(maxConnections);
    this.onGiveWay = onGiveWay;
  }

  /** So many calls can be served at once from now on. */
  resize(maxConnections: number): void {
    this.maxInOverload = Math.max(minQueueLength, Math.ceil(maxConnections * waitingPerConnection));
  }

  get length(): number {
    return this.ordered.length + this.postponed.length;
  }

  join(call: T): void {
    this.ordered.join(call);
    if (this.since !== null) this.since.joined += 1;
    if (this.ordered.length <= this.maxInOverload) return;
    this.looking ??= setInterval(this.look, lookMs);
    if (this.isOverloaded === true) this.cut();
    else if (this.isOverloaded === null) this.postpone();
  }

  leave(call: T): void {
    if (!this.ordered.leave(call) && !this.postponed.leave(call)) return;
    if (this.since !== null) this.since.left += 1;
  }

  /**
   * Has calls start, one of each holder in turn, until none does. `tryToStart` takes a call out of the queue before it
   * starts it, which may end it at once, and says whether it did; it is asked for the next one of the same holder only
   * then. Those that are postponed are asked behind all others.
   */
  startInTurn(tryToStart: (call: T) => boolean, isFull: () => boolean): void {
    this.ordered.startInTurn(tryToStart, isFull);
    if (this.postponed.length > 0) this.postponed.startInTurn(tryToStart, isFull);
  }

  /** Takes all of them out. */
  takeAll(): readonly T[] {
    const all = [...this.postponed.takeAll(), ...this.ordered.takeAll()];
    this.stopLooking();
    return all;
  }

  private readonly look = (): void => {
    const { since } = this;
    this.since = { joined: 0, left: 0 };
    if (this.isOverloaded === true) {
      this.calmLooks += 1;
      if (this.length === 0 || this.calmLooks >= calmLooks) this.stopLooking();
    } else if (this.length <= this.maxInOverload) this.stopLooking();
    else if (since !== null && since.joined > since.left) {
      this.isOverloaded = true;
      for (const call of this.postponed.takeAll()) this.onGiveWay(call);
      this.cut();
    } else if (since !== null) {
      this.isOverloaded = false;
      this.waitAsOne();
    }
  };

  private cut(): void {
    while (this.ordered.length > this.maxInOverload) {
      this.calmLooks = 0;
      const oldest = this.ordered.takeOldestOfMost();
      if (oldest === null) return;
      this.onGiveWay(oldest);
    }
  }

  private postpone(): void {
    while (this.ordered.length > this.maxInOverload * orderedInDoubt) {
      const oldest = this.ordered.takeOldestOfMost();
      if (oldest === null) return;
      this.postponed.join(oldest);
    }
  }

  /** Nothing is postponed any more: all are in the order in which they came. */
  private waitAsOne(): void {
    if (this.postponed.length === 0) return;
    const newer = this.ordered.takeAll();
    this.ordered = this.postponed;
    this.postponed = new HolderQueues();
    for (const call of newer) this.ordered.join(call);
  }

  private stopLooking(): void {
    if (this.looking !== null) clearInterval(this.looking);
    this.looking = null;
    this.since = null;
    this.isOverloaded = null;
    this.calmLooks = 0;
    this.waitAsOne();
  }
}
