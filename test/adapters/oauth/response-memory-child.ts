/** Remembers answers of one kind until none more fits, and says how much memory that took. */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { createResponseCache, createCacheBudget } from '../../../src/adapters/oauth/response-cache.js';
import { keepClaims } from '../../../src/decision/token/kept-claims.js';
import { parseStrictJson } from '../../../src/lib/strict-json.js';

const rules = {
  subject: ['sub'],
  permissions: ['realm', 'roles'],
  require: [{ path: ['tenant', 'name'], values: ['acme'] }],
};

const usual = (index: number): object => ({
  active: true,
  sub: `s-${String(index)}`,
  exp: 1e9 + index,
  tenant: { name: 'acme' },
});

/** Each answer has up to 64 KiB, the most that is read. */
const kinds: Readonly<Record<string, (index: number) => object>> = {
  small: usual,
  'a giant scope': (index) => ({ ...usual(index), realm: { roles: `${String(index)} ${'r '.repeat(30_000)}` } }),
  'the longest scope': (index) => ({ ...usual(index), realm: { roles: String(index).padStart(8_192, '\u20ac') } }),
  'many permissions': (index) => ({
    ...usual(index),
    realm: { roles: Array.from({ length: 1_000 }, (_, at) => `r${String(index * 7 + at)}`.slice(0, 8)) },
  }),
  'objects in aud': (index) => ({ ...usual(index), aud: Array(20_000).fill({}) }),
  'objects elsewhere': (index) => ({ ...usual(index), more: Array(20_000).fill({}) }),
  'long names': (index) => ({ ...usual(index), [`${String(index)}${'n'.repeat(60_000)}`]: 1 }),
  'members of what is named': (index) => ({
    ...usual(index),
    tenant: Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`m${String(index)}-${String(at)}`, at])),
  }),
};

const [, , name = '', count = '0'] = process.argv;
const kind = kinds[name];
if (kind === undefined || globalThis.gc === undefined) throw new Error('no such kind, or started without --expose-gc');
const { gc } = globalThis;

function fill(from: number, to: number): ReturnType<typeof createResponseCache> {
  const cache = createResponseCache(createCacheBudget());
  for (let index = from; index < to; index += 1) {
    const parsed = parseStrictJson(Buffer.from(JSON.stringify(kind?.(index))), { maxDepth: 16 });
    if (!parsed.ok) throw new Error(parsed.error);
    const { claims, bytes } = keepClaims(parsed.value, rules);
    cache.set(createHash('sha256').update(String(index)).digest('base64url'), { claims, freshUntilMs: 1e12 }, bytes);
  }
  return cache;
}

/** What stays however often garbage is collected: code that is compiled beside it comes and goes meanwhile. */
async function heldBytes(): Promise<number> {
  let least = Infinity;
  for (let round = 0; round < 4; round += 1) {
    await setImmediate();
    gc();
    least = Math.min(least, process.memoryUsage().heapUsed);
  }
  return least;
}

// What compiling the code takes, and optimizing it, is none of the answers': some before, under other names.
fill(-Math.ceil(Number(count) / 8), 0).close();
const before = await heldBytes();
const cache = fill(0, Number(count));
process.stdout.write(JSON.stringify({ bytes: (await heldBytes()) - before, ...cache.counts() }));
