import t from 'tap';
import { StreamPlaces, type StreamHolder } from '../../../../src/proxy/inbound/http2/stream-places.js';

interface Fake extends StreamHolder {
  /** When the response of each of its streams was written; `null` of one that is being served. */
  readonly written: (number | null)[];
  ended: number;
}

function start(most = 100) {
  const time = { nowMs: 10_000 };
  const warnings: (Readonly<Record<string, unknown>> | undefined)[] = [];
  const places = new StreamPlaces(most, {
    log: { warn: (_message, fields) => warnings.push(fields) },
    clock: { monotonic: () => time.nowMs },
  });
  const connect = (site: string, isKnown = false): Fake => {
    const isUntaken = (sinceMs: number) => (written: number | null) => written !== null && written <= sinceMs;
    const fake: Fake = {
      networks: { own: site, site },
      written: [],
      ended: 0,
      hasAuthenticated: () => isKnown,
      untaken: (sinceMs) => fake.written.filter(isUntaken(sinceMs)).length,
      endUntaken: (sinceMs, atMost) => {
        let ended = 0;
        const kept = fake.written.filter((written) => !isUntaken(sinceMs)(written) || (ended += 1) > atMost);
        for (let i = kept.length; i < fake.written.length; i += 1) places.give();
        fake.ended += fake.written.length - kept.length;
        fake.written.splice(0, Infinity, ...kept);
      },
    };
    places.add(fake);
    return fake;
  };
  /** How many of so many streams had a place. */
  const open = (holder: Fake, count: number, writtenMs: number | null): number => {
    let opened = 0;
    for (let i = 0; i < count; i += 1) {
      if (!places.take(holder)) continue;
      holder.written.push(writtenMs);
      opened += 1;
    }
    return opened;
  };
  return { places, time, warnings, connect, open };
}

t.test('connections that were never let through leave a quarter to others', (t) => {
  const { places, connect, open } = start();
  t.equal(open(connect('a'), 200, null), 75);
  t.equal(open(connect('b'), 1, null), 0);
  t.equal(open(connect('a', true), 200, null), 25);
  t.equal(places.taken(), 100);
  t.end();
});

t.test('what strangers do not take gives way first, of the site that has most of it', (t) => {
  const { places, connect, open } = start();
  const [known, few, one, other] = [connect('k', true), connect('few'), connect('many'), connect('many')];
  open(known, 30, 0);
  open(few, 15, 0);
  open(one, 10, 0);
  open(other, 10, 0);
  open(known, 35, 0);
  t.equal(places.taken(), 100);
  t.equal(open(known, 1, null), 1);
  t.same([few.ended, one.ended, other.ended, known.ended], [0, 7, 0, 0]);
  t.end();
});

t.test('what callers do not take gives way after a while', (t) => {
  const { time, connect, open } = start();
  const [known, other] = [connect('k', true), connect('o', true)];
  open(known, 100, time.nowMs);
  t.equal(open(other, 1, null), 0, 'not at once');
  time.nowMs += 1_000;
  t.equal(open(other, 1, null), 1);
  t.equal(known.ended, 1, 'no more than has to');
  t.end();
});

t.test('strangers have a moment, too', (t) => {
  const { time, connect, open } = start();
  const [one, other] = [connect('a'), connect('b')];
  open(one, 75, time.nowMs);
  t.equal(open(other, 1, null), 0);
  time.nowMs += 100;
  t.equal(open(other, 1, null), 1);
  t.equal(one.ended, 7);
  t.end();
});

t.test('what callers do not take does not give way to strangers', (t) => {
  const { connect, open } = start();
  const [known, stranger, other] = [connect('k', true), connect('a'), connect('b')];
  open(known, 30, 0);
  open(stranger, 3, 0);
  open(stranger, 42, null);
  t.equal(open(other, 4, null), 3, 'what strangers did not take');
  t.same([stranger.ended, known.ended], [3, 0]);
  open(known, 25, 0);
  t.equal(open(connect('o', true), 1, null), 1, 'it gives way to another caller, who is not kept from looking');
  t.equal(known.ended, 1);
  t.end();
});

t.test('where strangers gave way, callers keep what they have', (t) => {
  const { connect, open } = start();
  const [known, stranger] = [connect('k', true), connect('a')];
  open(stranger, 2, 0);
  open(known, 98, 0);
  t.equal(open(known, 1, null), 1);
  t.same([stranger.ended, known.ended], [2, 0]);
  t.end();
});

t.test('a connection that is closed is not asked', (t) => {
  const { places, connect, open } = start();
  const gone = connect('a', true);
  open(gone, 100, 0);
  places.delete(gone);
  t.equal(open(connect('b', true), 1, null), 0);
  t.end();
});

t.test('the log tells of it once a minute', (t) => {
  const { time, warnings, connect, open } = start();
  const known = connect('k', true);
  open(known, 103, null);
  t.same(warnings, [{ streams: 100, refused: 1, gave_way: 0 }]);
  time.nowMs += 60_000;
  open(known, 1, null);
  t.same(warnings.slice(1), [{ streams: 100, refused: 3, gave_way: 0 }]);
  known.written.fill(0);
  time.nowMs += 60_000;
  open(known, 1, null);
  t.same(warnings.slice(2), [{ streams: 100, refused: 0, gave_way: 1 }], 'as many as there were before');
  t.end();
});
