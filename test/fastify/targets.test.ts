/** What a router reads in another way than it was judged gets through no application, whatever the router is set to. */
import type { FastifyInstance, FastifyServerOptions } from 'fastify';
import t from 'tap';
import { readCorpusTargets } from '../conformance/corpus-targets.js';
import { ambiguousTargets } from '../support/attacks/targets.js';
import { openApp } from './open-app.js';
import { isReadAlike, literalsOfRouter, policyPathsOf, readPattern } from '../../src/fastify/route-pattern.js';

const settings: readonly (readonly [name: string, options: FastifyServerOptions])[] = [
  ['as Fastify comes', {}],
  [
    'as lax as it gets',
    {
      useSemicolonDelimiter: true,
      routerOptions: {
        caseSensitive: false,
        ignoreTrailingSlash: true,
        ignoreDuplicateSlashes: true,
        maxParamLength: 10_000,
      },
    },
  ],
];

const aimed: readonly string[] = [
  '/ADMIN',
  '/Admin',
  '/admin/',
  '//admin',
  '/admin;x',
  '/open;/../admin',
  '/open/..%2fadmin',
  '/%61dmin',
  '/admin%2f',
  '/open/%2e%2e/admin',
  '/a%26b',
  '/closed/%40open',
  '/closed/100%25',
  '/A&B',
];

for (const [name, server] of settings) {
  t.test(name, async (t) => {
    const served: string[] = [];
    const serve = (app: FastifyInstance, url: string): void => {
      app.get(url, () => {
        served.push(url);
        return {};
      });
    };
    const { send } = await openApp(t, {
      server,
      config: {
        routes: [
          {
            name: 'open',
            methods: ['GET'],
            path: ['/open', '/open/**', '/{tenant}', '/a&b', '/closed/@open', '/closed/100%25'],
            access: 'public',
          },
          { name: 'admin', methods: ['GET'], path: ['/admin', '/closed/**'], subjects: ['root'], permissions: [] },
        ],
      },
      routes: (app) => {
        for (const url of ['/admin', '/closed/*', '/closed/@open', '/open', '/open/*', '/:tenant', '/a&b']) {
          serve(app, url);
        }
      },
    });
    const targets = [
      ...aimed,
      ...ambiguousTargets.flatMap((group) => group.targets),
      ...['/open/', '/', '/admin/'].flatMap((prefix) => readCorpusTargets(prefix)),
    ].filter((target) => /^[\x21-\x7e]+$/.test(target));
    t.ok(targets.length > 150);
    for (let at = 0; at < targets.length; at += 64) {
      const some = targets.slice(at, at + 64);
      await Promise.all(
        some.map(async (target) => send(`GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)),
      );
    }
    t.same(
      served.filter((url) => url === '/admin' || url === '/closed/*'),
      [],
    );
    t.ok(served.includes('/open/*'), 'honest ones get through');
  });
}

const rows: readonly (readonly [pattern: string, params: Record<string, string>, path: string, alike: boolean])[] = [
  ['/orders', {}, '/orders', true],
  ['/orders', {}, '/Orders', false],
  ['/orders', {}, '/orders/', false],
  ['/orders/:id', { id: '7' }, '/orders/7', true],
  ['/orders/:id', { id: '7' }, '/orders/8', false],
  ['/orders/:id?', {}, '/orders', true],
  ['/orders/:id?', { id: '7' }, '/orders/7', true],
  ['/files/*', { '*': 'a/b' }, '/files/a/b', true],
  ['*', { '*': '/a' }, '/a', true],
  ['/at/:h(^\\d+)h:m(^\\d+)m', { h: '1', m: '2' }, '/at/1h2m', true],
  ['/:name.png', { name: 'a' }, '/a.png', true],
  ['/::verb', {}, '/:verb', true],
  ['/orders/:id', {}, '/orders/7', false],
];

t.test('put together again, a path is the one that was judged or it is refused', async (t) => {
  for (const [pattern, params, path, alike] of rows) {
    const segments = path.slice(1).split('/');
    t.equal(isReadAlike(readPattern(pattern), params, { segments, encodedSlash: false }), alike, `${pattern} ${path}`);
  }
});

t.test('the paths of a policy beside a route', async (t) => {
  t.same(policyPathsOf(readPattern('/orders/:id')), ['/orders/{p1}']);
  t.same(policyPathsOf(readPattern('/a/:b?')), ['/a/{p1}', '/a']);
  t.same(policyPathsOf(readPattern('/files/*')), ['/files/**']);
  t.same(policyPathsOf(readPattern('*')), ['/**']);
  t.same(policyPathsOf(readPattern('/:name.png')), ['/{p0}']);
  t.same(policyPathsOf(readPattern('/a b/::x')), ['/a%20b/:x']);
  t.equal(literalsOfRouter({ path: '/a%26b/%20' }), null);
  t.same(literalsOfRouter({ path: '/100%25/%20' }), ['100%25', ' ']);
});
