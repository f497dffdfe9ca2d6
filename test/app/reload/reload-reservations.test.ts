import t from 'tap';
import { parse, stringify } from 'yaml';
import { droppedOperations, movedOperations, movedScopes } from '../../../src/config/moved-scopes.js';
import { reserves } from '../../../src/app/reload/restart-needed.js';
import type { CompiledConfig } from '../../../src/config/types.js';
import { compiled, compiledText } from '../../proxy/harness.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';
import { startInProcessProxy, type InProcessProxy } from '../in-process-proxy.js';

const memory = { store: { memory: {} } };

function write(name: string, idempotency: unknown, more: object = {}): object {
  return { name, methods: ['POST'], path: `/${name}`, subjects: ['checkout'], permissions: [], idempotency, ...more };
}

function compile(...routes: readonly object[]): CompiledConfig {
  return compiled({ ...memory, routes });
}

const none = write('a', 'none');

t.test('operations whose keys no longer count', (t) => {
  const rows: readonly {
    name: string;
    before: readonly object[];
    after: readonly object[];
    dropped: readonly string[];
  }[] = [
    { name: 'nothing changes', before: [write('a', 'required')], after: [write('a', 'optional')], dropped: [] },
    {
      name: 'the route is gone',
      before: [write('a', 'required'), write('b', 'required')],
      after: [write('b', 'required')],
      dropped: ['a'],
    },
    { name: 'it reserves no more', before: [write('a', 'required')], after: [none], dropped: ['a'] },
    {
      name: 'only its token is reserved',
      before: [write('a', 'required')],
      after: [write('a', 'none', { single_use: true })],
      dropped: ['a'],
    },
    { name: 'it is renamed', before: [write('a', 'required')], after: [write('b', 'required')], dropped: ['a'] },
    {
      name: 'it is renamed and keeps its operation',
      before: [write('a', 'required')],
      after: [write('b', { mode: 'required', operation: 'a' })],
      dropped: [],
    },
    { name: 'it had none', before: [write('a', 'none', { single_use: true })], after: [none], dropped: [] },
  ];
  for (const { name, before, after, dropped } of rows) {
    t.same(droppedOperations(compile(...before), compile(...after)), dropped, name);
  }
  t.equal(reserves(compile(none)), false);
  t.equal(reserves(compile(write('a', 'none', { single_use: true }))), true);
  t.end();
});

t.test('writes whose operation is another one now', (t) => {
  const all = write('w', 'required', { path: '/w/**' });
  const bulk = write('bulk', 'required', { path: '/w/bulk' });
  const rows: readonly (readonly [string, readonly object[], readonly object[], readonly string[]])[] = [
    ['nothing changed', [all, bulk], [all, bulk], []],
    ['a narrower route comes', [all], [all, bulk], ['w -> bulk']],
    ['with a parameter', [all], [all, write('one', 'required', { path: '/w/{id}' })], ['w -> one']],
    ['of the same operation', [all], [all, write('b', { mode: 'required', operation: 'w' }, { path: '/w/b' })], []],
    [
      'of the same operation, and what is further below has another one',
      [all],
      [write('one', { mode: 'required', operation: 'w' }, { path: '/w/{id}' }), { ...all, name: 'rest' }],
      ['w -> rest'],
    ],
    [
      'that reserves nothing',
      [all],
      [all, write('b', { mode: 'none', because: 'a test' }, { path: '/w/b' })],
      ['w -> none'],
    ],
    ['a route beside it', [all], [all, write('b', 'required', { path: '/b' })], []],
    ['a narrower one goes: its operation is gone', [all, bulk], [all], []],
    [
      'a narrower one goes whose operation stays elsewhere',
      [all, write('b', 'required', { path: ['/w/bulk', '/b'] })],
      [all, write('b', 'required', { path: '/b' })],
      ['b -> w'],
    ],
    [
      'they change places',
      [write('a', 'required', { path: '/a' }), write('b', 'required', { path: '/b' })],
      [write('a', 'required', { path: '/b' }), write('b', 'required', { path: '/a' })],
      ['a -> b', 'b -> a'],
    ],
  ];
  for (const [name, before, after, moved] of rows) {
    t.same(movedOperations(compile(...before), compile(...after)), moved, name);
  }
  t.end();
});

type Issuers = Readonly<Record<string, object>>;

/** With these issuers and no other. */
function configOf(tree: ConfigTree, issuers: Issuers): CompiledConfig {
  return compiledText(stringify({ ...(parse(baseConfig(tree)) as object), issuers }));
}

t.test('callers whose keys no longer count', (t) => {
  const config = (issuers: Issuers, ...routes: readonly object[]): CompiledConfig => {
    const issuer = { issuer: 'https://a.example', audience: 'orders', source: 's', token_type: 't' };
    const all = Object.fromEntries(Object.entries(issuers).map(([name, over]) => [name, { ...issuer, ...over }]));
    const sessions = { core_url: 'http://127.0.0.1:3567', api_domain: 'https://shop.example' };
    return configOf({ ...memory, sessions, routes }, all);
  };
  const users = write('u', 'required', {
    accept: ['session'],
    subjects: undefined,
    permissions: undefined,
    session: { claims: {} },
  });
  const service = write('a', 'required');
  const b = { issuer: 'https://b.example', audience: 'stock' };
  const [first, second] = [config({ one: {}, two: b }, service, users), config({ two: b, one: {} }, service, users)];
  t.same(movedScopes(first, first), []);
  t.same(movedScopes(first, second), ['users'], 'the issuers change places');
  t.same(
    movedScopes(config({ one: {}, two: b }, service), config({ two: b, one: {} }, service)),
    [],
    'which is nothing to services',
  );
  t.same(
    movedScopes(config({ one: {} }, service), config({ other: {} }, service)),
    [],
    'the name of an issuer counts for nothing',
  );
  t.same(movedScopes(config({ one: {} }, service), config({ one: { audience: 'stock' } }, service)), [
    'callers of issuers.one',
  ]);
  t.same(movedScopes(config({ one: {} }, service), config({ one: { issuer: 'https://b.example' } }, service)), [
    'callers of issuers.one',
  ]);
  t.same(movedScopes(config({ one: {} }, none), config({ one: { audience: 'stock' } }, none)), [], 'no key was kept');
  t.same(
    movedScopes(config({ one: {} }, users), config({ one: { audience: 'stock' } }, users)),
    ['users'],
    'no service kept one',
  );
  t.end();
});

t.test('callers whose name or audience changes with their entries', (t) => {
  const oauth = (audience: string | readonly string[], subject = 'sub'): object => ({
    issuer: 'https://a.example',
    profile: 'oauth',
    audience,
    claims: { subject },
  });
  const kubernetes = { issuer: 'https://a.example', profile: 'kubernetes', audience: 'orders' };
  const core = { issuer: 'https://a.example', audience: 'orders', source: 's', token_type: 't' };
  const rows: readonly (readonly [string, Issuers, Issuers, readonly string[]])[] = [
    ['another claim names them', { one: oauth('orders') }, { one: oauth('orders', 'client_id') }, ['one']],
    ['the same claim', { one: oauth('orders') }, { one: { ...oauth('orders'), claims: {} } }, []],
    ['a profile that names them otherwise', { one: oauth('orders') }, { one: kubernetes }, ['one']],
    ['a profile that names them alike', { one: core }, { one: oauth('orders') }, []],
    [
      'the entry that comes first is gone',
      { one: oauth('orders'), two: oauth('billing') },
      { two: oauth('billing') },
      ['one', 'two'],
    ],
    [
      'the entries change places',
      { one: oauth('orders'), two: oauth('billing') },
      { two: oauth('billing'), one: oauth('orders') },
      ['one', 'two'],
    ],
    [
      'the audience of the second changes',
      { one: oauth('orders'), two: oauth('billing') },
      { one: oauth('orders'), two: oauth('stock') },
      [],
    ],
    [
      'the entries change names',
      { one: oauth('orders'), two: oauth('billing', 'azp') },
      { two: oauth('orders'), one: oauth('billing', 'azp') },
      [],
    ],
    [
      'an entry for another audience names them as before',
      { one: oauth('orders') },
      { one: oauth('orders', 'azp'), two: oauth('billing') },
      ['one'],
    ],
    [
      'one of two audiences gets an entry that names them otherwise',
      { one: oauth(['orders', 'billing']) },
      { one: oauth('orders', 'azp'), two: oauth('billing') },
      ['one'],
    ],
    [
      'both audiences get an entry that names them as before',
      { one: oauth(['orders', 'billing']) },
      { one: oauth('orders'), two: oauth('billing') },
      [],
    ],
    [
      'of two entries for one audience one names them as before',
      { one: oauth('orders'), two: { ...oauth('orders', 'azp'), token_typ: ['x'] } },
      { one: oauth('orders'), two: { ...oauth('orders', 'azp'), token_typ: ['x'] } },
      [],
    ],
  ];
  const compileWith = (issuers: Issuers): CompiledConfig =>
    configOf({ ...memory, routes: [write('a', 'required')] }, issuers);
  for (const [name, before, after, moved] of rows) {
    t.same(
      movedScopes(compileWith(before), compileWith(after)),
      moved.map((entry) => `callers of issuers.${entry}`),
      name,
    );
  }
  t.end();
});

t.test('a reload that moves the scope of keys warns', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { ...memory, routes: [write('a', 'required')] } });
  proxy.rewrite({ ...memory, issuers: { core: { audience: 'stock' } }, routes: [write('a', 'required')] });
  await proxy.app.reload();
  t.match(
    proxy.logs().filter(({ of }) => of !== undefined),
    [{ level: 'warn', of: ['callers of issuers.core'], msg: /count no more/ }],
  );
});

function status(proxy: InProcessProxy, key: string): Promise<number> {
  return proxy
    .request({ method: 'POST', path: '/a', headers: { 'Idempotency-Key': key }, body: 'x' })
    .then((answer) => answer.status);
}

t.test('a reload that drops an operation warns, and keeps what is reserved', async (t) => {
  const proxy = await startInProcessProxy(t, {
    config: { ...memory, routes: [write('a', 'required'), write('b', 'required')] },
  });
  t.equal(await status(proxy, 'k'), 200);
  proxy.rewrite({ ...memory, routes: [write('a', 'optional')] });
  await proxy.app.reload();
  const [warning, ...others] = proxy.logs().filter(({ operations }) => operations !== undefined);
  t.match(warning, { level: 'warn', operations: ['b'], msg: /count no more/ });
  t.same(others, []);
  t.equal(await status(proxy, 'k'), 200);
  t.equal(proxy.receiver.requests.length, 1, 'the same store, the same operation');
});

t.test('the store is opened at start: a reload leaves it as it is', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { ...memory, routes: [write('a', 'required')] } });
  t.equal(await status(proxy, 'k'), 200);
  proxy.rewrite({ store: { redis: { url: 'redis://127.0.0.1:1' } }, routes: [write('a', 'required')] });
  await proxy.app.reload();
  t.same(proxy.app.status().restart_needed, ['store']);
  t.match(proxy.app.status().store, { kind: 'memory', up: true });
  t.equal(await status(proxy, 'k'), 200);
  t.equal(proxy.receiver.requests.length, 1);
});

t.test('a reload to routes that reserve is refused where no store was opened', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { routes: [none] } });
  t.equal(proxy.app.status().store, null);
  t.notMatch((await proxy.admin('/metrics')).text, /^sallyport_store_up /m);
  const { sha256 } = proxy.app.status().config;
  proxy.rewrite({ ...memory, routes: [write('a', 'required')] });
  await proxy.app.reload();
  t.equal(proxy.app.status().config.sha256, sha256, 'the old config stays in force');
  t.match(proxy.app.status().config.last_reload_error?.problems, [
    /a route reserves its writes, and the store is opened at start only: restart/,
  ]);
  t.equal(await status(proxy, 'k'), 200);
  proxy.rewrite({ ...memory, routes: [none] });
  await proxy.app.reload();
  t.equal(proxy.app.status().config.last_reload_error, null);
  t.same(proxy.app.status().restart_needed, ['store']);
});
