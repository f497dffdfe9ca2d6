/** `sallyport explain` on a policy with a route of each kind. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../../src/cli/program.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

const routes = [
  {
    name: 'list-orders',
    methods: ['GET'],
    path: '/orders',
    subjects: ['checkout', 'reporting'],
    permissions: ['orders:read'],
  },
  { name: 'read-order', methods: ['GET', 'HEAD'], path: '/orders/{id}', subjects: ['checkout'], permissions: [] },
  {
    name: 'export-orders',
    methods: ['GET'],
    path: '/orders/export',
    subjects: ['reporting'],
    permissions: ['orders:read'],
    issuers: ['core'],
  },
  {
    name: 'create-order',
    methods: ['POST'],
    path: '/orders',
    idempotency: 'required',
    single_use: true,
    any_of: [
      { subjects: ['checkout'], permissions: ['orders:write', 'orders:read'] },
      { subjects: ['migration'], permissions: ['orders:import'] },
    ],
  },
  {
    name: 'try-order',
    methods: ['PUT'],
    path: '/orders/{id}',
    subjects: ['checkout'],
    permissions: ['orders:write'],
    mode: 'shadow',
  },
  {
    name: 'count',
    methods: ['POST'],
    path: '/counts',
    subjects: ['checkout'],
    permissions: [],
    single_use: true,
    idempotency: { mode: 'none', because: 'one more or less is no matter' },
  },
  { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
];

export interface Given {
  readonly config?: ConfigTree;
  readonly stdin?: string;
  readonly files?: Readonly<Record<string, string>>;
}

/** Runs `explain` with these words beside `--config`. */
export async function explain(
  t: Scope,
  words: readonly string[],
  { config = {}, stdin = '', files = {} }: Given = {},
): Promise<CapturedIo> {
  const cwd = tempDir(t);
  const receiver = {
    case_sensitive: true,
    strict_slash: true,
    format_suffix: false,
    trailing_dots: false,
    head_as_get: false,
  };
  const all = {
    routes,
    store: { memory: {} },
    receiver,
    revoked: { subjects: ['mallory'], token_ids: ['stolen'] },
    ...config,
  };
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig(all));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
  const io = captureIo({ cwd, stdin });
  await run(['explain', '--config', 'sallyport.yaml', ...words], io);
  return io;
}

export const get = (path: string): readonly string[] => ['--method', 'GET', '--path', path];
export const post = (path: string): readonly string[] => ['--method', 'POST', '--path', path];
