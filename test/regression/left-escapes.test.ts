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
