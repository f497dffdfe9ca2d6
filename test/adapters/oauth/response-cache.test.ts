import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { createResponseCache, createCacheBudget, maxActiveBytes } from '../../../src/adapters/oauth/response-cache.js';

const answer = { claims: {}, freshUntilMs: 1 };
const none = { claims: null, freshUntilMs: 1 };

t.test('what was set longest ago leaves first, and what is not active takes no room of what is', (t) => {
  const cache = createResponseCache(createCacheBudget({ all: 3_000, one: 2_000 }), 2);
  cache.set('a', answer, 200);
  cache.set('b', answer, 200);
  for (const digest of ['x', 'y', 'z']) cache.set(digest, none, 0);
  t.same(cache.counts(), { active: 2, inactive: 2 });
  t.equal(cache.get('x'), null);
  cache.set('a', answer, 200);
  cache.set('c', answer, 201);
  t.same([cache.get('a'), cache.get('b'), cache.get('c')], [answer, null, answer]);
  cache.set('a', none, 0);
  t.same(cache.get('a'), none, 'a token that is active no more');
  cache.set('large', answer, 9_000);
  t.equal(cache.get('large'), null, 'what is larger than all is not kept');
  t.end();
});

t.test('issuers share the room equally, and one that closes leaves its share to the others', (t) => {
  const budget = createCacheBudget({ all: 8_000, one: 6_000 });
  const fill = (cache: ReturnType<typeof createResponseCache>): number => {
    for (let index = 0; index < 20; index += 1) cache.set(String(index), answer, 400);
    return cache.counts().active;
  };
  const one = createResponseCache(budget);
  t.equal(fill(one), 6);
  const two = createResponseCache(budget);
  t.equal(one.counts().active, 4, 'it makes room at once');
  t.same([fill(one), fill(two)], [4, 4]);
  two.close();
  two.close();
  t.same(two.counts(), { active: 0, inactive: 0 });
  t.equal(fill(one), 6);
  t.end();
});

const child = fileURLToPath(new URL('./response-memory-child.js', import.meta.url));

t.test('whatever answers say, they take no more memory than is stated', (t) => {
  const rows: Readonly<Record<string, number>> = {
    small: 16_000,
    'a giant scope': 2_000,
    'the longest scope': 1_100,
    'many permissions': 600,
    'objects in aud': 800,
    'objects elsewhere': 800,
    'long names': 800,
    'members of what is named': 500,
  };
  for (const [kind, count] of Object.entries(rows)) {
    const told = execFileSync(
      process.execPath,
      ['--max-old-space-size=64', '--expose-gc', child, kind, String(count)],
      { encoding: 'utf8' },
    );
    const { bytes, active } = JSON.parse(told) as { bytes: number; active: number };
    t.ok(bytes < maxActiveBytes.one, `${kind}: ${String(Math.round(bytes / 1024))} KiB for ${String(active)} answers`);
  }
  t.end();
});
