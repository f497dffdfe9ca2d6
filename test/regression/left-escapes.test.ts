/**
 * Routers that leave some escapes while they look for literals: where a target has a route by the policy, each of them
 * runs that one.
 */
import { createServer } from 'node:http';
import express from 'express';
import fastify from 'fastify';
import fc from 'fast-check';
import t from 'tap';
import { readTarget } from '../../src/decision/http/request-target.js';
import { createRouteTable, matchRoute } from '../../src/decision/route/route-table.js';
import { routeOf, routePath } from '../decision/route/route-samples.js';
import { listen } from '../support/listening.js';
import { request } from '../support/raw-client.js';

/** What may stand in a segment as it is. */
const plain = "aB-.~!$&'()*+,:=@";
const names = ['@me', "it's", 'a+b', 'x:run', 'a=b', '(a)', 'c!', '$a', 'a,b', 'a&b', 'caf\u00e9', 'a b'];

const table = createRouteTable([
  ...names.map((name) =>
    routeOf('GET', 'public', { name: `literal ${encodeURIComponent(name)}`, paths: [routePath(`/r/${name}`)] }),
  ),
  routeOf('GET /r/{id}', 'public', { name: 'any' }),
]);

const escaped = (character: string): string =>
  encodeURIComponent(character) === character
    ? `%${character.charCodeAt(0).toString(16).toUpperCase()}`
    : encodeURIComponent(character);

/** One character in one of its spellings. */
function spelled(character: string): fc.Arbitrary<string> {
  const escape = escaped(character);
  return plain.includes(character) ? fc.constantFrom(character, escape, escape.toLowerCase()) : fc.constant(escape);
}

const target = fc
  .oneof(
    fc.constantFrom(...names),
    fc.string({ unit: fc.constantFrom(...plain.split('')), minLength: 1, maxLength: 4 }),
  )
  .chain((name) => fc.tuple(...Array.from(name).map(spelled)))
  .map((spellings) => `/r/${spellings.join('')}`);

type Ran = (path: string) => Promise<string>;

async function agrees(ran: Ran): Promise<number> {
  let judged = 0;
  await fc.assert(
    fc.asyncProperty(target, async (path) => {
      const read = readTarget(path, 1_000);
      const route = read.ok ? matchRoute(table, 'GET', read.value) : null;
      if (route === null) return true;
      judged += 1;
      return (await ran(path)) === route.name;
    }),
    { numRuns: 600, examples: [...names.map((name): [string] => [`/r/${encodeURIComponent(name)}`]), ['/r/%40me']] },
  );
  return judged;
}

t.test('Fastify', async (t) => {
  const app = fastify();
  t.teardown(async () => app.close());
  for (const name of names) app.get(`/r/${name.replace(':', '::')}`, () => `literal ${encodeURIComponent(name)}`);
  app.get('/r/:id', () => 'any');
  t.ok((await agrees(async (path) => (await app.inject({ url: path })).body)) > 100);
});

t.test('Express', async (t) => {
  const app = express();
  app.enable('case sensitive routing').enable('strict routing');
  for (const name of names) {
    const path = Array.from(name, (character) =>
      /[\x20\u0080-\uffff]/.test(character) ? escaped(character) : `\\${character}`,
    );
    app.get(`/r/${path.join('')}`, (_, response) => void response.send(`literal ${encodeURIComponent(name)}`));
  }
  app.get('/r/:id', (_, response) => void response.send('any'));
  const { port } = await listen(t, createServer(app));
  t.ok((await agrees(async (path) => (await request(port, { path })).text)) > 100);
});

t.test('a route of several paths, of which the readings find different ones', async (t) => {
  const several = createRouteTable([
    routeOf('GET /!a/@b /{x}/{y}', 'public', { name: 'open' }),
    routeOf('GET /!a/{y}', ['root'], { name: 'guarded' }),
  ]);
  const app = fastify();
  t.teardown(async () => app.close());
  for (const path of ['/!a/@b', '/:x/:y']) app.get(path, () => 'open');
  app.get('/!a/:y', () => 'guarded');
  const rows = [
    // Fastify decodes the one escape and leaves the other.
    { path: '/%21a/%40b', ran: 'guarded', judged: null },
    { path: '/!a/%40b', ran: 'guarded', judged: null },
    { path: '/%21a/@b', ran: 'open', judged: null },
    { path: '/!a/@b', ran: 'open', judged: 'open' },
    { path: '/!a/%40c', ran: 'guarded', judged: 'guarded' },
    { path: '/%40a/%40b', ran: 'open', judged: 'open' },
    { path: '/a/@b', ran: 'open', judged: 'open' },
  ];
  for (const { path, ran, judged } of rows) {
    t.equal((await app.inject({ url: path })).body, ran, `Fastify, ${path}`);
    const read = readTarget(path, 1_000);
    t.equal(read.ok ? (matchRoute(several, 'GET', read.value)?.name ?? null) : 'malformed', judged, path);
  }
});

const part = fc.constantFrom('!a', '%21a', '@b', '%40b', "'c", '%27c', 'c');

t.test('Fastify, with routes of several paths', async (t) => {
  const paths = ['/!a/@b', '/!a/{y}', '/{x}/@b', "/'c/{y}", '/{x}/{y}'];
  let judged = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(...paths.map(() => fc.constantFrom('one', 'two'))),
      fc.uniqueArray(fc.tuple(part, part), { minLength: 8, maxLength: 8, selector: (parts) => parts.join('/') }),
      async (names, targets) => {
        const routes = ['one', 'two']
          .map((name) => ({ name, own: paths.filter((_, at) => names[at] === name) }))
          .filter(({ own }) => own.length > 0)
          .map(({ name, own }) => routeOf(`GET ${own.join(' ')}`, 'public', { name }));
        const app = fastify();
        for (const [at, path] of paths.entries()) {
          app.get(path.replace(/\{(.)\}/g, ':$1'), () => names[at] ?? '');
        }
        for (const target of targets.map((parts) => `/${parts.join('/')}`)) {
          const read = readTarget(target, 1_000);
          const route = read.ok ? matchRoute(createRouteTable(routes), 'GET', read.value) : null;
          if (route === null) continue;
          judged += 1;
          if ((await app.inject({ url: target })).body !== route.name) throw new Error(target);
        }
        await app.close();
      },
    ),
    { numRuns: 60 },
  );
  t.ok(judged > 60);
});
