import t from 'tap';
import { StreamPlaces, type HeldPlaces, type StreamHolder } from '../../../../src/proxy/inbound/http2/stream-places.js';

interface Fake extends StreamHolder {
  /** When the response of each of its streams was written; `null` of one that is being served. */
  readonly written: (number | null)[];
  ended: number;
  places: HeldPlaces;
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
    const holder: Omit<Fake, 'places'> = {
      networks: { own: site, site },
      written: [],
      ended: 0,
      untaken: (sinceMs) => holder.written.filter(isUntaken(sinceMs)).length,
      endUntaken: (sinceMs) => {
        const index = holder.written.findIndex(isUntaken(sinceMs));
        if (index < 0) return;
        holder.written.splice(index, 1);
        holder.ended += 1;
        places.give(held);
      },
    };
    const held = places.add(holder);
    if (isKnown) places.recognize(held);
    return Object.assign(holder, { places: held });
  };
  /** How many of so many streams had a place. */
  const open = (holder: Fake, count: number, writtenMs: number | null): number => {
    let opened = 0;
    for (let i = 0; i < count; i += 1) {
      if (!places.take(holder.places)) continue;
      holder.written.push(writtenMs);
      opened += 1;
    }
    return opened;
  };
  return { places, time, warnings, connect, open };
}

t.test('connections that were never let through leave a quarter to others, and these one to them', (t) => {
  for (const isKnown of [false, true]) {
    const { places, connect, open } = start();
    t.equal(open(connect('a', isKnown), 200, null), 75);
    t.equal(open(connect('b', isKnown), 1, null), 0);
    t.equal(open(connect('a', !isKnown), 200, null), 25);
    t.equal(places.taken(), 100);
  }
  t.end();
});

t.test('a connection that is let through leaves the places of strangers with all that it has', (t) => {
  const { places, connect, open } = start();
  const [one, other] = [connect('a'), connect('b')];
  open(one, 75, null);
  t.equal(open(other, 1, null), 0);
  places.recognize(one.places);
  places.recognize(one.places);
  t.equal(open(other, 26, null), 25);
  t.equal(open(connect('k', true), 1, null), 0);
  places.give(one.places);
  t.equal(open(connect('k', true), 1, null), 1);
  t.equal(places.taken(), 100);
  t.end();
});

t.test('what strangers do not take gives way first, of the site that has most of it', (t) => {
  const { places, connect, open } = start();
  const [known, few, one, other] = [connect('k', true), connect('few'), connect('many'), connect('many')];
  open(known, 65, 0);
  open(few, 15, 0);
  open(one, 11, 0);
  open(other, 9, 0);
  t.equal(places.taken(), 100);
  t.equal(open(known, 1, null), 1);
  t.same([few.ended, one.ended, other.ended, known.ended], [0, 1, 0, 0]);
  t.end();
});

t.test('what callers do not take gives way after a while', (t) => {
  const { time, connect, open } = start();
  const [known, third, other] = [connect('k', true), connect('l', true), connect('o', true)];
  open(known, 20, time.nowMs);
  open(third, 55, null);
  time.nowMs += 900;
  t.equal(open(other, 1, null), 0, 'not at once');
  time.nowMs += 100;
  t.equal(open(other, 1, null), 1);
  t.equal(known.ended, 1, 'no more than has to');
  t.end();
});

t.test('a site that does not take more than a quarter of all has as little time as strangers', (t) => {
  const { time, connect, open } = start();
  const [known, beside, other] = [connect('k', true), connect('k', true), connect('o', true)];
  open(known, 40, time.nowMs);
  open(beside, 35, time.nowMs);
  t.equal(open(other, 1, null), 0);
  time.nowMs += 100;
  t.equal(open(other, 1, null), 1);
  t.equal(known.ended, 1);
  t.end();
});

t.test('strangers have a moment, too', (t) => {
  const { time, connect, open } = start();
  const [one, other] = [connect('a'), connect('b')];
  open(one, 75, time.nowMs);
  t.equal(open(other, 1, null), 0);
  time.nowMs += 100;
  t.equal(open(other, 1, null), 1);
  t.equal(one.ended, 1);
  t.end();
});

t.test('what callers do not take does not give way to strangers', (t) => {
  const { connect, open } = start();
  const [known, stranger, other] = [connect('k', true), connect('a'), connect('b')];
  open(known, 30, 0);
  open(stranger, 3, 0);
  open(stranger, 67, null);
  t.equal(open(other, 4, null), 3, 'what strangers did not take');
  t.same([stranger.ended, known.ended], [3, 0]);
  t.equal(open(connect('o', true), 1, null), 1, 'it gives way to another caller, who is not kept from looking');
  t.equal(known.ended, 1);
  t.end();
});

t.test('where callers have all that is theirs, nothing of strangers gives way', (t) => {
  const { connect, open } = start();
  const [known, stranger] = [connect('k', true), connect('a')];
  open(stranger, 2, 0);
  open(known, 75, 0);
  t.equal(open(known, 1, null), 1);
  t.same([stranger.ended, known.ended], [0, 1]);
  t.end();
});

t.test('what was found is used for a while, before all are asked again', (t) => {
  const { time, connect, open } = start();
  const [one, other] = [connect('a'), connect('b')];
  let asked = 0;
  const { untaken } = one;
  Object.assign(one, { untaken: (sinceMs: number) => ((asked += 1), untaken(sinceMs)) });
  open(one, 75, 0);
  t.equal(open(other, 40, null), 40);
  t.equal(asked, 1);
  t.equal(one.ended, 40);
  time.nowMs += 100;
  t.equal(open(other, 1, null), 1);
  t.equal(asked, 2);
  t.end();
});

t.test('callers that are known only when they have more than is theirs give way to strangers too', (t) => {
  const { places, connect, open } = start();
  const [one, other] = [connect('a'), connect('a')];
  open(one, 75, 0);
  places.recognize(one.places);
  open(other, 25, 0);
  places.recognize(other.places);
  const newcomer = connect('b');
  t.equal(open(newcomer, 1, null), 1);
  t.equal(open(connect('k', true), 10, null), 10, 'and to other callers');
  t.equal(one.ended + other.ended, 11, 'one for each');
  t.equal(open(newcomer, 40, null), 24, 'until the others are back at theirs');
  t.equal(places.taken(), 100);
  t.end();
});

t.test('a connection that is closed is not asked', (t) => {
  const { places, connect, open } = start();
  const gone = connect('a', true);
  open(gone, 75, 0);
  places.delete(gone.places);
  t.equal(open(connect('b', true), 1, null), 0);
  t.end();
});

t.test('the log tells of it once a minute', (t) => {
  const { time, warnings, connect, open } = start();
  const known = connect('k', true);
  open(known, 78, null);
  t.same(warnings, [{ streams: 75, refused: 1, gave_way: 0 }]);
  time.nowMs += 60_000;
  open(known, 1, null);
  t.same(warnings.slice(1), [{ streams: 75, refused: 3, gave_way: 0 }]);
  known.written.fill(0);
  time.nowMs += 60_000;
  open(known, 1, null);
  t.same(warnings.slice(2), [{ streams: 75, refused: 0, gave_way: 1 }], 'as many as there were before');
  t.end();
});
