import t from 'tap';
import { GatheredWrites } from '../../../src/proxy/inbound/gathered-writes.js';

/** A target that notes what it is given, and says when told that it was taken. */
function target(): {
  readonly writes: Buffer[];
  isBlocked: boolean;
  flows: boolean;
  readonly taken: () => void;
  readonly gathered: GatheredWrites;
} {
  const writes: Buffer[] = [];
  let onTaken: (() => void)[] = [];
  const sink = {
    writes,
    isBlocked: false,
    flows: true,
    taken: () => {
      const told = onTaken;
      onTaken = [];
      for (const tell of told) tell();
    },
  };
  const gathered = new GatheredWrites({
    isBlocked: () => sink.isBlocked,
    write: (bytes, tell) => {
      if (tell === undefined) writes.push(bytes);
      else onTaken.push(tell);
      return sink.flows;
    },
  });
  return Object.assign(sink, { gathered });
}

t.test('who keeps up gets each piece as it comes', (t) => {
  const sink = target();
  for (const piece of ['a', 'b']) t.equal(sink.gathered.write(Buffer.from(piece)), true);
  t.same(sink.writes.map(String), ['a', 'b']);
  t.equal(sink.gathered.flush(), true, 'nothing is left');
  t.equal(sink.writes.length, 2);
  t.end();
});

t.test('small pieces for who does not keep up go out together, when what was before is taken', (t) => {
  const sink = target();
  sink.isBlocked = true;
  for (const piece of 'abc') t.equal(sink.gathered.write(Buffer.from(piece)), true);
  t.same(sink.writes, []);
  sink.isBlocked = false;
  sink.gathered.write(Buffer.from('d'));
  t.same(sink.writes, [], 'a piece does not overtake those before it');
  sink.taken();
  t.same(sink.writes.map(String), ['abcd']);
  sink.gathered.write(Buffer.from('e'));
  t.same(sink.writes.map(String), ['abcd', 'e']);
  t.end();
});

t.test('a large piece follows what was gathered, and is not copied', (t) => {
  const sink = target();
  sink.isBlocked = true;
  sink.gathered.write(Buffer.from('a'));
  const large = Buffer.alloc(1024, 'b');
  sink.flows = false;
  t.equal(sink.gathered.write(large), false);
  t.equal(sink.writes[1], large);
  t.same(
    sink.writes.map(({ length }) => length),
    [1, 1024],
  );
  sink.taken();
  t.equal(sink.writes.length, 2, 'nothing is written twice');
  t.end();
});

t.test('beyond 16 KiB they are handed on, and the writer told to wait', (t) => {
  const sink = target();
  sink.isBlocked = true;
  sink.flows = false;
  const piece = Buffer.alloc(1000);
  const answers = Array.from({ length: 17 }, () => sink.gathered.write(piece));
  t.same(answers, [...Array.from({ length: 16 }, () => true), false]);
  t.same(
    sink.writes.map(({ length }) => length),
    [17_000],
  );
  t.end();
});
