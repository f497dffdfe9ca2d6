/**
 * What docs/migration.md shows: ours and the middleware run as they stand, what is for others held to the names of its
 * fields.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { validateConfig } from '../../src/config/load/validate-config.js';
import { refuse } from '../../src/lib/result.js';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { projectDir } from '../support/project-dir.js';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken, type Claims } from '../support/tokens.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { blockThatBegins } from './fenced-blocks.js';

const page = 'docs/migration.md';
const shown = (begins: string): string => blockThatBegins(page, begins).text;

interface OurConfig {
  readonly issuers: { readonly core: object };
  readonly routes: readonly object[];
}

t.test('what is written for Sallyport are configs without an error', async (t) => {
  for (const from of ['Envoy', 'Oathkeeper', 'middleware']) {
    const { problems } = validateConfig(shown(`# Sallyport, from ${from}`), {
      file: 'sallyport.yaml',
      folder: '/',
      env: {},
      readFile: () => refuse('none'),
    });
    t.same(problems, [], from);
  }
});

/** Serves with a middleware of the page, as Express and its like call one. Answers the port. */
async function startService(t: Scope, middleware: string, name: string): Promise<number> {
  const dir = tempDir(t);
  mkdirSync(join(dir, 'node_modules'));
  symlinkSync(join(projectDir, 'node_modules/jose'), join(dir, 'node_modules/jose'));
  writeFileSync(join(dir, 'middleware.mjs'), middleware);
  writeFileSync(
    join(dir, 'service.mjs'),
    `
    import { createServer } from 'node:http';
    import { ${name} } from './middleware.mjs';
    const server = createServer((req, res) => void ${name}(req, res, () => res.end(req.user)));
    server.listen(0, '127.0.0.1', () => console.log(server.address().port));
  `,
  );
  const child = spawn(process.execPath, [join(dir, 'service.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => {
    child.kill('SIGKILL');
  });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return Number(port);
}

const soon = Math.floor(Date.now() / 1000) + 300;
const cases: readonly {
  readonly name: string;
  readonly claims: Claims;
  readonly before: number;
  readonly after: number;
}[] = [
  { name: 'an approved caller', claims: {}, before: 200, after: 200 },
  { name: 'without the permission', claims: { permissions: [] }, before: 403, after: 403 },
  { name: 'expired', claims: { exp: soon - 900 }, before: 401, after: 401 },
  { name: 'for another service', claims: { aud: 'invoices' }, before: 200, after: 401 },
  {
    name: 'of another issuer with the same keys',
    claims: { iss: 'https://staging.example.com' },
    before: 200,
    after: 401,
  },
  { name: 'without an end', claims: { exp: undefined }, before: 200, after: 401 },
  { name: 'with an end in ten years', claims: { exp: soon + 315_360_000 }, before: 200, after: 401 },
  { name: 'of a caller that nobody approved', claims: { sub: 'somebody' }, before: 200, after: 403 },
];

t.test(
  'the middleware before, Sallyport and the middleware after: the same for good tokens, and what only one of them lets through',
  async (t) => {
    const key = rsaKey();
    const jwks = await startJwksServer(t, { keys: [key] });
    const before = await startService(
      t,
      shown('import { createRemoteJWKSet').replace('https://api.example.com/auth/jwt/jwks.json', jwks.url),
      'authorize',
    );
    const service = await startService(t, shown('export function identify'), 'identify');
    const { issuers, routes } = parse(shown('# Sallyport, from middleware')) as OurConfig;
    const upstream = { url: `http://127.0.0.1:${String(service)}` };
    const proxy = await startProxyProcess(t, {
      key,
      jwks,
      config: { upstream, issuers: { core: { ...issuers.core, jwks_url: jwks.url } }, routes },
    });
    for (const { name, claims, before: then, after: now } of cases) {
      const input = {
        method: 'POST',
        path: '/orders',
        headers: { Authorization: `Bearer ${mintToken({ key, claims })}`, 'X-Auth-Subject': 'root' },
      };
      const old = await request(before, input);
      const answer = await proxy.request(input);
      t.same([old.status, answer.status], [then, now], name);
      if (now === 200) t.same([old.text, answer.text], ['checkout', 'checkout'], `${name}: as whom`);
    }
  },
);

/**
 * Names of fields, from Envoy's `jwt_authn/v3/config.proto` and what it uses, and Oathkeeper's schemas of a rule, `jwt`
 * and `header`.
 */
const fieldsOf: Readonly<Record<string, readonly string[]>> = {
  '# Envoy': [
    'providers',
    'providers.*.issuer',
    'providers.*.audiences',
    'providers.*.remote_jwks',
    'providers.*.remote_jwks.http_uri',
    'providers.*.remote_jwks.http_uri.uri',
    'providers.*.remote_jwks.http_uri.cluster',
    'providers.*.remote_jwks.http_uri.timeout',
    'providers.*.remote_jwks.cache_duration',
    'providers.*.forward',
    'providers.*.claim_to_headers',
    'providers.*.claim_to_headers.header_name',
    'providers.*.claim_to_headers.claim_name',
    'rules',
    'rules.match',
    'rules.match.prefix',
    'rules.requires',
    'rules.requires.provider_name',
  ],
  '# Oathkeeper': [
    'id',
    'upstream',
    'upstream.url',
    'match',
    'match.url',
    'match.methods',
    'authenticators',
    'authenticators.handler',
    'authenticators.config',
    'authenticators.config.required_scope',
    'authenticators.config.target_audience',
    'authenticators.config.trusted_issuers',
    'authorizer',
    'authorizer.handler',
    'mutators',
    'mutators.handler',
    'mutators.config',
    'mutators.config.headers',
  ],
};

/** Every field, as a path; lists are what their items are, names of the writer's own are `*`. */
function fieldPaths(value: unknown, path = ''): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((item) => fieldPaths(item, path));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (path === 'mutators.config.headers') return [];
    const next = path === 'providers' ? 'providers.*' : [path, key].filter((part) => part !== '').join('.');
    return [...(next.endsWith('*') ? [] : [next]), ...fieldPaths(inner, next)];
  });
}

t.test(
  'what is written for Envoy and Oathkeeper has fields of theirs only; neither is run: no package of npm or Debian has it',
  async (t) => {
    for (const [begins, known] of Object.entries(fieldsOf)) {
      const used = fieldPaths(parse(shown(begins)));
      t.ok(used.length > 8, begins);
      t.same(
        used.filter((path) => !known.includes(path)),
        [],
        begins,
      );
    }
    t.same(
      fieldPaths({ rules: [{ match: { prefixx: '/' } }] }).filter((path) => !fieldsOf['# Envoy']?.includes(path)),
      ['rules.match.prefixx'],
    );
  },
);
