/** Places that all workers share: as data, without processes. Messages wait in channels until a test delivers them. */
import t from 'tap';
import { createSharedPlaces, longestRecallMs, type PlaceMember } from '../../../src/app/workers/shared-places.js';
import { createWorkerPlaces, longestAskMs, type WorkerPlaces } from '../../../src/app/workers/worker-places.js';
import type { ToPrimary, ToWorker } from '../../../src/app/workers/messages.js';
import { strangers, slotsOfHolder, type Slot, type Slots } from '../../../src/proxy/exchange/concurrency.js';
import { createRandom } from '../../proxy/exchange/chaos.js';

type FromWorker = Extract<ToPrimary, { kind: 'places' }>;
type Orders = Extract<ToWorker, { kind: 'places' }>;

interface Worker {
  readonly number: number;
  readonly slots: Slots;
  readonly places: WorkerPlaces;
  readonly member: PlaceMember;
  readonly toPrimary: FromWorker[];
  readonly toWorker: Orders[];
  readonly turnEnd: (() => void)[];
  readonly timers: Set<{ readonly atMs: number; readonly task: () => void }>;
}

/** A request as its test sees it. */
interface Request {
  readonly worker: Worker;
  readonly holder: string;
  /** `undefined` while it waits. */
  place: Slot | null | undefined;
}

/** A primary and its workers, with one bound. */
class Workers {
  nowMs = 0;
  messages = 0;
  readonly max: number;
  readonly count: number;
  readonly shared;
  readonly all: Worker[] = [];

  constructor(count: number, max: number) {
    this.max = max;
    this.count = count;
    this.shared = createSharedPlaces(count, () => this.nowMs);
    for (let number = 1; number <= count; number += 1) this.begin(number);
  }

  begin(number: number): Worker {
    const toPrimary: FromWorker[] = [];
    const toWorker: Orders[] = [];
    const turnEnd: (() => void)[] = [];
    const timers: Worker['timers'] = new Set();
    const places = createWorkerPlaces({
      send: (message) => {
        this.messages += 1;
        toPrimary.push(structuredClone(message));
      },
      timers: {
        after: (delayMs, task) => {
          const timer = { atMs: this.nowMs + delayMs, task };
          timers.add(timer);
          return () => timers.delete(timer);
        },
      },
      atTurnEnd: (task) => turnEnd.push(task),
    });
    const slots = places.slots('listen.max_in_flight', this.max, { number, count: this.count });
    const member = this.shared.join(number, (message) => {
      this.messages += 1;
      toWorker.push(structuredClone(message));
    });
    const worker = { number, slots, places, member, toPrimary, toWorker, turnEnd, timers };
    this.all.push(worker);
    // It comes before the first connection does.
    this.toWorker(worker);
    return worker;
  }

  worker(number: number): Worker {
    const found = this.all.find((worker) => worker.number === number);
    if (found === undefined) throw new Error(`no worker ${String(number)}`);
    return found;
  }

  /** It is gone: what it had said still comes, and nothing after that. */
  end(worker: Worker): void {
    this.all.splice(this.all.indexOf(worker), 1);
    for (const message of worker.toPrimary.splice(0)) worker.member.take(message);
    worker.member.leave();
  }

  take(worker: Worker, holder = 'a caller'): Request {
    const taken = worker.slots.take(holder);
    if (!(taken instanceof Promise)) return { worker, holder, place: taken };
    const request: Request = { worker, holder, place: undefined };
    void taken.then((place) => {
      request.place = place;
    });
    return request;
  }

  /** One thing that is on its way, of one worker; whether there was any. */
  step(worker: Worker): boolean {
    const task = worker.turnEnd.shift();
    if (task !== undefined) {
      task();
      return true;
    }
    return this.toPrimary(worker) || this.toWorker(worker);
  }

  toPrimary({ toPrimary, member }: Worker): boolean {
    const message = toPrimary.shift();
    if (message !== undefined) member.take(message);
    return message !== undefined;
  }

  toWorker({ toWorker, places }: Worker): boolean {
    const message = toWorker.shift();
    if (message !== undefined) places.onOrders(message);
    return message !== undefined;
  }

  /** Everything that is on its way arrives. */
  async settle(): Promise<void> {
    for (;;) {
      await new Promise(setImmediate);
      if (!this.all.map((worker) => this.step(worker)).includes(true)) return;
    }
  }

  async taken(number: number, holder?: string): Promise<Slot | null> {
    const request = this.take(this.worker(number), holder);
    await this.settle();
    if (request.place === undefined) throw new Error('nobody answered');
    return request.place;
  }

  /** Lets time pass. */
  pass(ms: number): void {
    this.nowMs += ms;
    for (const { timers } of this.all) {
      for (const timer of timers) {
        if (timer.atMs > this.nowMs) continue;
        timers.delete(timer);
        timer.task();
      }
    }
  }

  held(): number {
    return this.all.reduce((sum, { slots }) => sum + slots.taken(), 0);
  }
}

t.test('a bound of 1 is one place, whichever worker is asked', async (t) => {
  const workers = new Workers(2, 1);
  for (const [first, other] of [
    [1, 2],
    [2, 1],
    [2, 1],
  ] as const) {
    const place = await workers.taken(first);
    t.not(place, null, `worker ${String(first)}`);
    t.equal(await workers.taken(other), null);
    t.equal(await workers.taken(first), null);
    place?.();
    place?.();
    await workers.settle();
    t.equal(workers.held(), 0);
  }
});

t.test('a worker that has all connections has all places', async (t) => {
  for (const [count, max] of [
    [2, 10],
    [3, 10],
    [2, 512],
    [64, 10],
  ] as const) {
    const workers = new Workers(count, max);
    for (let request = 0; request < max; request += 1) {
      t.not(await workers.taken(count, `caller ${String(request % 7)}`), null, `${String(request)} of ${String(max)}`);
    }
    for (const { number } of workers.all) t.equal(await workers.taken(number, 'another'), null);
  }
});

t.test('who stays within the part of a worker costs no message, and who has gone beyond it not one each', async (t) => {
  const workers = new Workers(4, 512);
  const requests = workers.all.flatMap((worker) =>
    Array.from({ length: 128 }, (_, index) => workers.take(worker, `caller ${String(index % 16)}`)),
  );
  t.ok(requests.every(({ place }) => typeof place === 'function'));
  t.equal(workers.messages, 0);
  for (const { place } of requests) place?.();
  t.equal(workers.messages, 0);

  const held: (Slot | null)[] = [];
  for (let request = 0; request < 200; request += 1) {
    held.push(await workers.taken(1, `caller ${String(request % 16)}`));
  }
  t.notOk(held.includes(null));
  const messages = workers.messages;
  t.ok(messages <= 20, `${String(messages)} messages: each who asks has its part made larger`);
  for (let request = 0; request < 100; request += 1) {
    for (const { number } of workers.all) (await workers.taken(number))?.();
  }
  t.equal(workers.messages, messages, 'from there on all have room again');
});

t.test('one caller, and strangers, have their share of all places and no more, over all workers', async (t) => {
  for (const [holder, max] of [
    [strangers, 8],
    [strangers, 100],
    ['one', 18],
    ['one', 24],
    ['one', 512],
  ] as const) {
    const most = slotsOfHolder(max)(holder);
    for (const pick of [(): number => 1, (request: number): number => 1 + (request % 3)]) {
      const workers = new Workers(3, max);
      const held: Slot[] = [];
      for (let request = 0; request < most; request += 1) {
        const place = await workers.taken(pick(request), holder);
        t.not(place, null, `${String(request)} of ${String(most)}`);
        if (place !== null) held.push(place);
      }
      for (const { number } of workers.all) t.equal(await workers.taken(number, holder), null);
      for (let other = most; other < max; other += 1) {
        const place = await workers.taken(1 + (other % 3), `other ${String(other)}`);
        t.not(place, null, 'the rest is for others');
      }
      t.equal(await workers.taken(2, 'last'), null);
      held[0]?.();
      await workers.settle();
      t.not(await workers.taken(3, holder), null, 'what was given back may be taken again');
    }
  }
});

t.test('who may have no more of its own takes nobody else a place, not for a moment', async (t) => {
  const workers = new Workers(2, 100);
  const most = slotsOfHolder(100)('one');
  for (let request = 0; request < most; request += 1) await workers.taken(1, 'one');
  for (let request = most; request < 99; request += 1) await workers.taken(1, `other ${String(request)}`);
  const refused = workers.take(workers.worker(2), 'one');
  const other = workers.take(workers.worker(2), 'other');
  await workers.settle();
  t.equal(refused.place, null);
  t.type(other.place, 'function', 'the last place');
});

t.test('a worker that dies gives its places back, and the one in its stead begins with none of them', async (t) => {
  const workers = new Workers(2, 10);
  for (let request = 0; request < 7; request += 1) t.not(await workers.taken(1), null);
  for (let request = 0; request < 3; request += 1) t.not(await workers.taken(2), null);
  t.equal(await workers.taken(2), null);
  workers.end(workers.worker(1));
  for (let request = 0; request < 6; request += 1) t.not(await workers.taken(2), null);
  workers.begin(1);
  t.not(await workers.taken(1), null, 'the last one');
  t.equal(await workers.taken(1), null);
  t.equal(await workers.taken(2), null);
  t.equal(workers.held(), 10);
});

t.test('places of a worker that is away are had by the others, and it has its part when it is back', async (t) => {
  const workers = new Workers(2, 512);
  workers.end(workers.worker(2));
  const held = [];
  for (let request = 0; request < 512; request += 1) held.push(await workers.taken(1, `caller ${String(request % 3)}`));
  t.notOk(held.includes(null));
  t.equal(await workers.taken(1), null);
  workers.begin(2);
  t.equal(await workers.taken(2), null);
  for (const place of held) place?.();
  await workers.settle();
  t.equal(workers.shared.moved(), 0, 'all is as it was at the start');
  const { messages } = workers;
  for (let request = 0; request < 256; request += 1) t.not(await workers.taken(2, `c ${String(request % 3)}`), null);
  t.equal(workers.messages, messages, 'which costs no message');
});

t.test('of a worker that was given more than its part all is had when it dies, and when all do', async (t) => {
  const workers = new Workers(2, 512);
  const takeAll = async (number: number, count: number): Promise<void> => {
    for (let request = 0; request < count; request += 1) {
      t.not(await workers.taken(number, `caller ${String(request % 4)}`), null);
    }
  };
  await takeAll(1, 300);
  workers.end(workers.worker(2));
  await takeAll(1, 212);
  t.equal(await workers.taken(1), null);
  workers.end(workers.worker(1));
  workers.shared.look();
  t.equal(workers.shared.moved(), 0);
  workers.begin(1);
  workers.begin(2);
  await takeAll(1, 300);
  workers.end(workers.worker(1));
  workers.end(workers.worker(2));
  workers.shared.look();
  workers.begin(1);
  workers.begin(2);
  await takeAll(2, 512);
  t.equal(await workers.taken(1), null);
});

t.test('a worker that dies while others wait for what it does not use', async (t) => {
  const workers = new Workers(2, 4);
  await workers.taken(2);
  const waiting = [1, 2, 3].map(() => workers.take(workers.worker(1)));
  const one = workers.worker(1);
  while (one.turnEnd.length > 0 || one.toPrimary.length > 0) workers.step(one);
  t.equal(waiting.at(-1)?.place, undefined);
  workers.end(workers.worker(2));
  await workers.settle();
  t.ok(waiting.every(({ place }) => typeof place === 'function'));
  t.not(await workers.taken(1), null, 'the last one');
  t.equal(await workers.taken(1), null);
});

t.test('places go back to where they were at the start when they are unused', async (t) => {
  const workers = new Workers(2, 512);
  const held = [];
  for (let request = 0; request < 400; request += 1) held.push(await workers.taken(1, `caller ${String(request % 4)}`));
  t.ok(workers.shared.moved() > 0);
  for (const place of held) place?.();
  await workers.settle();
  workers.shared.look();
  await workers.settle();
  t.equal(workers.shared.moved(), 0);
  const { messages } = workers;
  workers.shared.look();
  await workers.settle();
  t.equal(workers.messages, messages, 'and nobody is asked any more');
  for (let request = 0; request < 256; request += 1) {
    t.type(workers.take(workers.worker(2), `caller ${String(request % 2)}`).place, 'function');
  }
});

t.test('what a caller asked for that has left is given back when it is granted', async (t) => {
  const workers = new Workers(2, 2);
  const first = await workers.taken(1);
  const request = workers.take(workers.worker(1));
  await workers.settle();
  // As an exchange does whose client is gone.
  request.place?.();
  first?.();
  await workers.settle();
  t.equal(workers.held(), 0);
  t.not(await workers.taken(2), null);
  t.not(await workers.taken(2), null);
});

t.test('who is not answered in time is refused, and what is granted later is given back', async (t) => {
  const workers = new Workers(2, 1);
  const late = workers.take(workers.worker(2));
  workers.step(workers.worker(2));
  workers.pass(longestAskMs - 1);
  await new Promise(setImmediate);
  t.equal(late.place, undefined);
  workers.pass(1);
  await new Promise(setImmediate);
  t.equal(late.place, null);
  await workers.settle();
  t.equal(workers.held(), 0);
  t.not(await workers.taken(1), null, 'nothing is lost');
  t.equal(await workers.taken(2), null);
});

t.test('a worker that does not answer keeps its places, and others wait for it once', async (t) => {
  const workers = new Workers(3, 9);
  const [one, two, stuck] = [1, 2, 3].map((number) => workers.worker(number));
  if (one === undefined || two === undefined || stuck === undefined) throw new Error('no workers');
  const settleOthers = async (): Promise<void> => {
    do await new Promise(setImmediate);
    while ([one, two].map((worker) => workers.step(worker)).includes(true));
  };
  const ask = async (worker: Worker): Promise<Request> => {
    const request = workers.take(worker);
    await settleOthers();
    return request;
  };
  for (let request = 0; request < 6; request += 1) t.type((await ask(one)).place, 'function');
  const waiting = await ask(two);
  t.equal(waiting.place, undefined, 'the third may have some');
  workers.pass(longestAskMs);
  await new Promise(setImmediate);
  t.equal(waiting.place, null);
  workers.pass(longestRecallMs);
  t.equal((await ask(two)).place, null, 'at once');
  await workers.settle();
  for (let request = 0; request < 3; request += 1) t.not(await workers.taken(2), null, 'it answered');
  t.equal(await workers.taken(3), null);
  t.equal(workers.held(), 9);
});

t.test('never more than there are, and never refused while some are free, whatever comes when', async (t) => {
  let refused = 0;
  for (let seed = 1; seed <= 60; seed += 1) {
    const random = createRandom(seed);
    const below = (bound: number): number => Math.floor(random() * bound);
    const count = 2 + below(4);
    const max = [1, 2, 3, 5, 10, 20, 64, 200][below(8)] ?? 1;
    const most = slotsOfHolder(max);
    const workers = new Workers(count, max);
    const holders = [strangers, 'one', 'two', 'three'];
    let requests: Request[] = [];
    const heldBy = (holder: string): number =>
      requests.filter((request) => request.holder === holder && typeof request.place === 'function').length;
    const check = (): void => {
      if (workers.held() > max) t.fail(`seed ${String(seed)}: ${String(workers.held())} of ${String(max)}`);
      for (const holder of holders) if (heldBy(holder) > most(holder)) t.fail(`seed ${String(seed)}: ${holder}`);
    };
    for (let turn = 0; turn < 400; turn += 1) {
      const worker = workers.all[below(workers.all.length)];
      if (worker === undefined) throw new Error('no worker');
      const choice = below(100);
      if (choice < 30) requests.push(workers.take(worker, holders[below(holders.length)] ?? strangers));
      else if (choice < 50) {
        const [request] = requests.splice(below(requests.length), 1);
        if (typeof request?.place === 'function') request.place();
        else if (request !== undefined) requests.push(request);
      } else if (choice < 52) {
        workers.end(worker);
        requests = requests.filter((request) => request.worker !== worker);
        workers.begin(worker.number);
      } else if (choice < 54) workers.shared.look();
      else if (choice < 60) await workers.settle();
      else workers.step(worker);
      await Promise.resolve();
      requests = requests.filter(({ place }) => place !== null);
      check();
    }
    await workers.settle();
    requests = requests.filter(({ place }) => place !== null);
    check();
    // Nothing is on its way now: who is refused is so for a reason, and who is not was right to be let in.
    for (let turn = 0; turn < 150; turn += 1) {
      const holder = holders[below(holders.length)] ?? strangers;
      if (below(3) === 0) {
        const [request] = requests.splice(below(requests.length), 1);
        request?.place?.();
        await workers.settle();
      }
      const mayHave = workers.held() < max && heldBy(holder) < most(holder);
      const worker = workers.all[below(workers.all.length)];
      if (worker === undefined) throw new Error('no worker');
      const request = workers.take(worker, holder);
      await workers.settle();
      if ((typeof request.place === 'function') !== mayHave) {
        t.fail(`seed ${String(seed)}: ${String(workers.held())} of ${String(max)} held, ${holder} ${String(mayHave)}`);
      }
      if (request.place === null) refused += 1;
      else requests.push(request);
    }
    for (const { place } of requests) place?.();
    await workers.settle();
    workers.shared.look();
    await workers.settle();
    t.equal(workers.held(), 0);
    t.equal(workers.shared.moved(), 0, `seed ${String(seed)}: all is as it was at the start`);
  }
  t.ok(refused > 500, `${String(refused)} were refused`);
});
