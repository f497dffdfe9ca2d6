/** Small pieces that wait for each other while the event loop is busy, in a time of the tests' own. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { Pieces, RestingReads, thisLoop, type BusyLoop } from '../../src/proxy/resting-reads.js';
import { takeTurn, waitForTurn } from '../../src/proxy/node-internals/socket.js';
import { listen } from '../support/listening.js';
import type { Scope } from '../support/scope.js';
import { until } from '../support/until.js';

t.setTimeout(60_000);

const restMs = 100;
const freePieces = 8;
const longMs = 60_000;

class Loop implements BusyLoop {
  ms = 1_000_000;
  share = 1;

  readonly nowMs = (): number => this.ms;

  readonly utilization = (): number => this.share;

  /** Lets time pass, and what happens by time happen. */
  async pass(ms: number): Promise<void> {
    this.ms += ms;
    // Longer than the step in which those are looked for that have rested.
    await delay(30);
  }
}

/** A connection that is read in pieces. */
class Reading {
  rests = 0;
  begins = 0;
  bytes = 0;
  isOver = false;
  idleLimitMs = longMs;
  readonly pieces: Pieces;
  readonly here: Socket;
  readonly there: Socket;
  private readonly loop: Loop;

  constructor(loop: Loop, reads: RestingReads, here: Socket, there: Socket) {
    this.loop = loop;
    this.here = here;
    this.there = there;
    this.pieces = new Pieces(reads, here, () => this.isOver);
    const { _handle: handle } = here as Socket & {
      readonly _handle: { readStop: () => number; readStart: () => number };
    };
    const { readStop, readStart } = handle;
    handle.readStop = () => {
      this.rests += 1;
      return readStop.call(handle);
    };
    handle.readStart = () => {
      this.begins += 1;
      return readStart.call(handle);
    };
    here.on('data', (chunk: Buffer) => {
      this.bytes += chunk.length;
      this.pieces.took(chunk.length, this.idleLimitMs);
    });
  }

  /** Sends pieces 5 ms apart, each when the one before was read, and its turn is over. */
  async send(count: number, bytes = 1): Promise<void> {
    for (let sent = 0; sent < count; sent += 1) {
      const before = this.bytes;
      this.loop.ms += 5;
      this.there.write(Buffer.alloc(bytes));
      await until('it is read', () => this.bytes === before + bytes);
      await turn();
      await turn();
    }
  }
}

async function readingOf(t: Scope, loop: Loop, reads = new RestingReads(loop)): Promise<Reading> {
  const server = createServer();
  const { port } = await listen(t, server);
  const accepting = once(server, 'connection') as Promise<[Socket]>;
  const there = connect(port, '127.0.0.1').setNoDelay(true);
  const [here] = await accepting;
  t.teardown(() => {
    here.destroy();
    there.destroy();
  });
  return new Reading(loop, reads, here, there);
}

/** Reads of a loop that counts as busy: somebody else sends small pieces all the time. */
async function busy(t: Test, loop: Loop): Promise<RestingReads> {
  const reads = new RestingReads(loop);
  const other = await readingOf(t, loop, reads);
  await other.send(freePieces + 1);
  t.equal(other.rests, 0, 'the loop was not looked at yet');
  await loop.pass(restMs);
  await other.send(freePieces + 1);
  t.equal(other.rests, loop.share < 0.8 ? 0 : 1, 'it rests where the loop is busy');
  return reads;
}

t.test('whoever goes on to send small pieces is read once in 100 ms', async (t) => {
  const loop = new Loop();
  const reading = await readingOf(t, loop, await busy(t, loop));
  await reading.send(freePieces);
  t.equal(reading.rests, 0, 'the first are free');
  for (let round = 1; round <= 5; round += 1) {
    await reading.send(1);
    t.equal(reading.rests, round);
    const before = reading.bytes;
    for (let piece = 0; piece < 4; piece += 1) reading.there.write('x');
    await loop.pass(restMs - 10);
    t.equal(reading.bytes, before, 'nothing is read meanwhile');
    await loop.pass(restMs);
    await until('what came meanwhile is read', () => reading.bytes === before + 4);
    t.equal(reading.begins, round);
    await turn();
    await turn();
    t.equal(reading.rests, round + 1, 'it is one piece, behind which it rests');
    await loop.pass(2 * restMs);
    reading.rests -= 1;
    reading.begins -= 1;
  }
});

t.test('nobody rests', async (t) => {
  const cases: readonly (readonly [string, (loop: Loop, reading: Reading) => void, number])[] = [
    ['who sends more at once', () => undefined, 1_024],
    [
      'whose message is complete',
      (_loop, reading) => {
        reading.isOver = true;
      },
      1,
    ],
    [
      'who has to send something within less than two seconds',
      (_loop, reading) => {
        reading.idleLimitMs = 1_999;
      },
      1,
    ],
  ];
  for (const [name, prepare, bytes] of cases) {
    const loop = new Loop();
    const reads = await busy(t, loop);
    const reading = await readingOf(t, loop, reads);
    prepare(loop, reading);
    await reading.send(3 * freePieces, bytes);
    t.equal(reading.rests, 0, name);
    const control = await readingOf(t, loop, reads);
    await control.send(freePieces + 1);
    t.equal(control.rests, 1, 'another one does');
  }
});

t.test('nobody rests where the loop is not busy, or was not for a second', async (t) => {
  const loop = new Loop();
  loop.share = 0.79;
  const reading = await readingOf(t, loop, await busy(t, loop));
  await reading.send(3 * freePieces);
  t.equal(reading.rests, 0);
  loop.share = 0.8;
  await loop.pass(restMs);
  await reading.send(freePieces + 1);
  t.equal(reading.rests, 1, 'it is busy');
  loop.share = 0.1;
  await loop.pass(restMs);
  await loop.pass(1_000);
  await reading.send(3 * freePieces);
  t.equal(reading.rests, 1, 'and is no longer');
});

t.test('a new message has its first pieces free, and is read at once where the last one rested', async (t) => {
  const loop = new Loop();
  const reading = await readingOf(t, loop, await busy(t, loop));
  for (let message = 0; message < 5; message += 1) {
    await reading.send(freePieces);
    reading.pieces.restart();
  }
  t.equal(reading.rests, 0);
  await reading.send(freePieces + 1);
  t.equal(reading.rests, 1);
  reading.pieces.restart();
  await reading.send(freePieces);
  t.equal(reading.rests, 1);
});

t.test(
  'what had waited is one piece, however much it is, and who sends more at once behind that rests no more',
  async (t) => {
    const loop = new Loop();
    const reading = await readingOf(t, loop, await busy(t, loop));
    await reading.send(freePieces + 1);
    const waited = async (bytes: number): Promise<void> => {
      const before = reading.bytes;
      reading.there.write(Buffer.alloc(bytes));
      await loop.pass(restMs);
      await until('it is read', () => reading.bytes === before + bytes);
      await turn();
      await turn();
    };
    t.equal(reading.rests, 1);
    await waited(2_000);
    t.equal(reading.rests, 1, 'it is read on');
    await reading.send(1);
    t.equal(reading.rests, 2, 'the next small one rests');
    await waited(2_000);
    await reading.send(1, 1_024);
    await reading.send(freePieces);
    t.equal(reading.rests, 2);
  },
);

t.test('behind a rest that a new message ended, more at once counts as ever', async (t) => {
  const loop = new Loop();
  const reading = await readingOf(t, loop, await busy(t, loop));
  await reading.send(freePieces + 1);
  t.equal(reading.rests, 1);
  reading.pieces.restart();
  await reading.send(1, 2_000);
  await reading.send(freePieces);
  t.equal(reading.rests, 1);
});

t.test('one that waits for its turn is read on when it has come', async (t) => {
  const loop = new Loop();
  const reading = await readingOf(t, loop, await busy(t, loop));
  await reading.send(freePieces + 1);
  waitForTurn(reading.here);
  await loop.pass(5 * restMs);
  t.equal(reading.begins, 0);
  takeTurn(reading.here);
  t.equal(reading.begins, 1);
  await reading.send(1);
});

t.test('what one turn brings is one piece', async (t) => {
  const loop = new Loop();
  const reading = await readingOf(t, loop, await busy(t, loop));
  reading.here.removeAllListeners('data').on('data', (chunk: Buffer) => {
    reading.bytes += chunk.length;
    // As a parser tells of chunks, and TLS of its records.
    for (let at = 0; at < chunk.length; at += 100) reading.pieces.took(100, longMs);
  });
  await reading.send(3 * freePieces, 1_100);
  t.equal(reading.rests, 0, '1,100 bytes in pieces of 100');
  await reading.send(freePieces + 1, 1_000);
  t.equal(reading.rests, 1, '1,000 bytes');
});

t.test('a rest begins at the end of a turn that took long, and ends all the same', async (t) => {
  const loop = new Loop();
  const reads = await busy(t, loop);
  const reading = await readingOf(t, loop, reads);
  await reading.send(freePieces);
  // Behind the look at those that wait, in the same turn.
  setImmediate(() => {
    loop.ms += 5;
    reading.pieces.took(1, longMs);
    loop.ms += 3 * restMs;
  });
  await loop.pass(0);
  await loop.pass(2 * restMs);
  const before = reading.bytes;
  reading.there.write('x');
  await until('it is read', () => reading.bytes > before);
});

t.test('many that begin to rest together are read on one after the other, within half a second', async (t) => {
  const loop = new Loop();
  const reads = await busy(t, loop);
  await loop.pass(5 * restMs);
  const all: Reading[] = [];
  for (let i = 0; i < 40; i += 1) all.push(await readingOf(t, loop, reads));
  for (const { pieces } of all) {
    for (let i = 0; i <= freePieces; i += 1) {
      pieces.took(1, longMs);
      await turn();
    }
  }
  const resting = (): number => all.filter(({ begins }) => begins === 0).length;
  t.equal(all.filter(({ rests }) => rests === 1).length, 40);
  await loop.pass(restMs);
  t.equal(resting(), 39);
  await loop.pass(5);
  t.equal(resting(), 19, 'four in each millisecond');
  await loop.pass(500);
  t.equal(resting(), 0);
});

t.test('the end comes, and all before it', async (t) => {
  const loop = new Loop();
  const reading = await readingOf(t, loop, await busy(t, loop));
  await reading.send(freePieces + 1);
  t.equal(reading.rests, 1);
  let hasEnded = false;
  reading.here.once('end', () => {
    hasEnded = true;
  });
  reading.there.end('the end');
  await until('it ends', async () => {
    await loop.pass(restMs);
    return hasEnded;
  });
  t.equal(reading.bytes, freePieces + 1 + 'the end'.length);
});

t.test('one that is closed, or that nobody wants to read, while it rests is left alone', async (t) => {
  const loop = new Loop();
  const reads = await busy(t, loop);
  const closed = await readingOf(t, loop, reads);
  await closed.send(freePieces + 1);
  closed.here.destroy();
  const unwanted = await readingOf(t, loop, reads);
  await unwanted.send(freePieces + 1);
  // As Node's HTTP does, and a stream whose buffer is full.
  (unwanted.here as Socket & { readonly _handle: { reading: boolean } })._handle.reading = false;
  await loop.pass(5 * restMs);
  t.equal(closed.begins + unwanted.begins, 0);
  t.equal(closed.rests + unwanted.rests, 2);
});

t.test('this loop tells how busy it was since it was asked last', async (t) => {
  const { utilization } = thisLoop();
  const untilMs = performance.now() + 200;
  await new Promise<void>((resolve) => {
    const spin = (): void => {
      if (performance.now() >= untilMs) resolve();
      else setImmediate(spin);
    };
    spin();
  });
  t.ok(utilization() > 0.9, 'busy');
  await delay(300);
  t.ok(utilization() < 0.9, 'at rest');
});
