import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

const route = {
  name: 'orders',
  methods: ['GET'],
  path: '/orders/{id}',
  subjects: ['checkout'],
  permissions: ['orders:read'],
};
const old: ConfigTree = {
  receiver: { case_sensitive: true, strict_slash: true, format_suffix: false, trailing_dots: false },
  routes: [route],
};

async function diff(t: Scope, next: ConfigTree, ...words: readonly string[]): Promise<CapturedIo> {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'old.yaml'), baseConfig(old));
  writeFileSync(join(cwd, 'new.yaml'), baseConfig({ ...old, ...next }));
  const io = captureIo({ cwd });
  await run(['diff', 'old.yaml', 'new.yaml', ...words], io);
  return io;
}

const wider: ConfigTree = {
  issuers: { core: { clock_skew: '60s' } },
  routes: [
    { ...route, subjects: ['checkout', 'x'], name: 'order' },
    { ...route, name: 'export', path: '/orders/export', subjects: ['reporting'] },
    { ...route, name: 'all', path: ['/a/**'] },
    { ...route, name: 'some', path: ['/a/', '/a/{x}', '/a/{x}/**'] },
  ],
};

t.test('what an edit changes in effect, in words', async (t) => {
  const io = await diff(t, {
    ...wider,
    issuers: {
      core: {
        issuer: 'https://api.example.com',
        audience: 'orders',
        source: 'microservice',
        token_type: 'service',
        clock_skew: '60s',
      },
    },
  });
  t.equal(io.code(), 1, io.err());
  for (const line of [
    '  routes added: order, export, all, some',
    '  routes removed: orders',
    '  never reached any more: all /a/**',
    '! issuers.core.clock_skew: 5 -> 60',
    '  GET /orders/export (orders -> export)',
    '!   gains: reporting with orders:read',
    '    loses: checkout with orders:read',
    '  GET /orders/{any} (orders -> order)',
    '!   gains: x with orders:read',
    'access widens',
  ]) {
    t.ok(io.out().split('\n').includes(line), `${line}\n${io.out()}`);
  }
});

t.test('exit 1 when access widens, unless that is allowed', async (t) => {
  const more: ConfigTree = { routes: [{ ...route, subjects: ['checkout', 'x'] }] };
  t.equal((await diff(t, more)).code(), 1);
  t.equal((await diff(t, more, '--allow-widening')).code(), 0);
  const less = await diff(t, { routes: [{ ...route, permissions: ['orders:read', 'all'] }] });
  t.equal(less.code(), 0);
  t.match(less.out(), /^ {4}loses: checkout with orders:read\naccess does not widen\n$/m);
  const none = await diff(t, {});
  t.equal(none.code(), 0);
  t.equal(none.out(), 'no change in effect\n');
});

t.test('--json', async (t) => {
  const io = await diff(t, { routes: [{ ...route, max_body: '2MiB' }] }, '--json');
  t.same(JSON.parse(io.out()), {
    widens: true,
    settings: [],
    added: [],
    removed: [],
    shadowed: [],
    complete: true,
    operations: [
      {
        method: 'GET',
        path: '/orders/{any}',
        from: 'orders',
        to: 'orders',
        gains: [],
        loses: [],
        changes: [{ setting: 'max_body', from: '1048576', to: '2097152', widens: true }],
      },
    ],
  });
});

t.test('many operations with the same change are counted', async (t) => {
  const many = Array.from({ length: 20 }, (_, index) => `/p${index}`);
  const io = await diff(t, { routes: [route, { ...route, name: 'many', path: many }] });
  t.match(io.out(), /^ {2}GET \/p0, .* and 8 more \(no route -> many\)$/m);
});

t.test('configs with errors, and files that are not there', async (t) => {
  const bad = await diff(t, { routes: [] });
  t.equal(bad.code(), 1);
  t.match(bad.err(), /^new\.yaml:\d+:\d+: error: /);
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'old.yaml'), baseConfig(old));
  for (const words of [['none.yaml', 'old.yaml'], ['old.yaml', 'none.yaml'], ['old.yaml']]) {
    const io = captureIo({ cwd });
    await run(['diff', ...words], io);
    t.equal(io.code(), 2, words.join(' '));
  }
});
