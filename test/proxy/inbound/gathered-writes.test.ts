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
  const scene = {
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
    isBlocked: () => scene.isBlocked,
    write: (bytes, tell) => {
      if (tell === undefined) writes.push(bytes);
      else onTaken.push(tell);
      return scene.flows;
    },
  });
  return Object.assign(scene, { gathered });
}

t.test('who keeps up gets each piece as it comes', (t) => {
  const scene = target();
  for (const piece of ['a', 'b']) t.equal(scene.gathered.write(Buffer.from(piece)), true);
  t.same(scene.writes.map(String), ['a', 'b']);
  t.equal(scene.gathered.flush(), true, 'nothing is left');
  t.equal(scene.writes.length, 2);
  t.end();
});

t.test('small pieces for who does not keep up go out together, when what was before is taken', (t) => {
  const scene = target();
  scene.isBlocked = true;
  for (const piece of 'abc') t.equal(scene.gathered.write(Buffer.from(piece)), true);
  t.same(scene.writes, []);
  scene.isBlocked = false;
  scene.gathered.write(Buffer.from('d'));
  t.same(scene.writes, [], 'a piece does not overtake those before it');
  scene.taken();
  t.same(scene.writes.map(String), ['abcd']);
  scene.gathered.write(Buffer.from('e'));
  t.same(scene.writes.map(String), ['abcd', 'e']);
  t.end();
});

t.test('a large piece follows what was gathered, and is not copied', (t) => {
  const scene = target();
  scene.isBlocked = true;
  scene.gathered.write(Buffer.from('a'));
  const large = Buffer.alloc(1024, 'b');
  scene.flows = false;
  t.equal(scene.gathered.write(large), false);
  t.equal(scene.writes[1], large);
  t.same(
    scene.writes.map(({ length }) => length),
    [1, 1024],
  );
  scene.taken();
  t.equal(scene.writes.length, 2, 'nothing is written twice');
  t.end();
});

t.test('beyond 16 KiB they are handed on, and the writer told to wait', (t) => {
  const scene = target();
  scene.isBlocked = true;
  scene.flows = false;
  const piece = Buffer.alloc(1000);
  const answers = Array.from({ length: 17 }, () => scene.gathered.write(piece));
  t.same(answers, [...Array.from({ length: 16 }, () => true), false]);
  t.same(
    scene.writes.map(({ length }) => length),
    [17_000],
  );
  t.end();
});
