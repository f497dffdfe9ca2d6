import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { validateConfig } from '../../../src/config/load/validate-config.js';
import type { CompiledConfig } from '../../../src/config/types.js';
import { refuse } from '../../../src/lib/result.js';
import { projectDir } from '../../support/project-dir.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';

interface FileKey {
  readonly key: string;
  readonly config: (path: string) => ConfigTree;
  readonly of: (config: CompiledConfig) => string | null | undefined;
}

const core = (issuer: object): ConfigTree => ({ issuers: { core: issuer } });
const redis = (store: object): ConfigTree => ({ store: { redis: { url: 'rediss://127.0.0.1', ...store } } });

const idp = (issuer: object): ConfigTree => ({
  issuers: { idp: { issuer: 'https://idp.example.com', audience: 'orders', ...issuer } },
});
const introspected = (settings: object): ConfigTree =>
  idp({ profile: 'oauth', introspection: { client_id: 'sallyport', ...settings } });
const fileOf =
  (name: string) =>
  ({ issuers }: CompiledConfig): string | null => {
    const auth = issuers.find(({ rules }) => rules.name === 'idp')?.introspection?.auth ?? {};
    return Object.entries(auth).find(([key]) => key === name)?.[1] as string | null;
  };
const idpKeys = ({ issuers }: CompiledConfig): CompiledConfig['issuers'][number]['keys'] | undefined =>
  issuers.find(({ rules }) => rules.name === 'idp')?.keys;

const calling = (token: object, target: object = {}): ConfigTree => ({
  egress: {
    tokens: { own: token },
    targets: [
      {
        name: 'orders',
        prefix: '/orders',
        url: 'https://127.0.0.1:1',
        token: 'own',
        allow: [{ methods: ['GET'], path: '/**' }],
        ...target,
      },
    ],
  },
});
const oauth = (auth: object, settings: object = {}): ConfigTree =>
  calling({ oauth: { issuer: 'https://idp.example.com', client_id: 'checkout', auth, ...settings } });
const tokenFileOf =
  (name: string) =>
  ({ egress }: CompiledConfig): string | null => {
    const token = egress?.tokens[0];
    const settings = token?.kind === 'oauth' ? { ...token.auth, caFile: token.caFile } : {};
    return Object.entries(settings).find(([key]) => key === name)?.[1] as string | null;
  };

const keys: readonly FileKey[] = [
  {
    key: 'nonce_key_file',
    config: (path) => ({
      listen: { dpop: { origins: ['https://orders.example.com'], nonce_key_file: path } },
      store: { memory: {} },
    }),
    of: ({ listen }) => listen.dpop?.nonceKeyFile,
  },
  {
    key: 'ca_file',
    config: (path) => calling({ file: '/t' }, { ca_file: path }),
    of: ({ egress }) => egress?.targets[0]?.upstream.caFile,
  },
  {
    key: 'cert_file',
    config: (path) => calling({ file: '/t' }, { cert_file: path, key_file: '/k' }),
    of: ({ egress }) => egress?.targets[0]?.certificate?.certFile,
  },
  {
    key: 'key_file',
    config: (path) => calling({ file: '/t' }, { cert_file: '/c', key_file: path }),
    of: ({ egress }) => egress?.targets[0]?.certificate?.keyFile,
  },
  {
    key: 'ca_file',
    config: (path) => ({ telemetry: { otlp: { endpoint: 'https://collector:4318', ca_file: path } } }),
    of: ({ telemetry }) => telemetry.otlp?.caFile,
  },
  {
    key: 'headers_file',
    config: (path) => ({ telemetry: { otlp: { endpoint: 'https://collector:4318', headers_file: path } } }),
    of: ({ telemetry }) => telemetry.otlp?.headersFile,
  },
  {
    key: 'ca_file',
    config: (path) => oauth({ secret_file: '/s' }, { ca_file: path }),
    of: tokenFileOf('caFile'),
  },
  { key: 'secret_file', config: (path) => oauth({ secret_file: path }), of: tokenFileOf('secretFile') },
  { key: 'private_key_file', config: (path) => oauth({ private_key_file: path }), of: tokenFileOf('keyFile') },
  {
    key: 'certificate_file',
    config: (path) => oauth({ certificate_file: path, key_file: '/k' }),
    of: tokenFileOf('certFile'),
  },
  {
    key: 'key_file',
    config: (path) => oauth({ certificate_file: '/c', key_file: path }),
    of: tokenFileOf('keyFile'),
  },
  {
    key: 'cert_file',
    config: (path) => ({ listen: { tls: { cert_file: path, key_file: '/k' } } }),
    of: ({ listen }) => listen.tls?.certFile,
  },
  {
    key: 'key_file',
    config: (path) => ({ listen: { tls: { cert_file: '/c', key_file: path } } }),
    of: ({ listen }) => listen.tls?.keyFile,
  },
  {
    key: 'client_ca_file',
    config: (path) => ({ listen: { tls: { cert_file: '/c', key_file: '/k', client_ca_file: path } } }),
    of: ({ listen }) => listen.tls?.clientCaFile,
  },
  {
    key: 'ca_file',
    config: (path) => ({ upstream: { url: 'https://127.0.0.1:1', ca_file: path } }),
    of: ({ upstream }) => upstream.caFile,
  },
  {
    key: 'ca_file',
    config: (path) => core({ jwks_url: 'https://127.0.0.1/keys', ca_file: path }),
    of: ({ issuers }) => issuers[0]?.keys.caFile,
  },
  {
    key: 'ca_file',
    config: (path) => redis({ tls: { ca_file: path } }),
    of: ({ store }) => (store?.kind === 'redis' ? store.tls?.caFile : null),
  },
  {
    key: 'password_file',
    config: (path) => redis({ password_file: path }),
    of: ({ store }) => (store?.kind === 'redis' ? store.passwordFile : null),
  },
  {
    key: 'jwks_file',
    config: (path) => core({ jwks_url: null, jwks_file: path }),
    of: ({ issuers: [issuer] }) => (issuer?.keys.source.kind === 'file' ? issuer.keys.source.path : null),
  },
  {
    key: 'key_file',
    config: (path) => ({ identity: { assertion: { key_file: path, audience: 'orders' } } }),
    of: ({ assertion }) => assertion?.keyFile,
  },
  {
    key: 'token_file',
    config: (path) => idp({ profile: 'kubernetes', token_file: path }),
    of: (config) => idpKeys(config)?.tokenFile,
  },
  {
    key: 'bundle_file',
    config: (path) => idp({ profile: 'spiffe', issuer: undefined, trust_domain: 'shop.example', bundle_file: path }),
    of: (config) => {
      const source = idpKeys(config)?.source;
      return source?.kind === 'file' ? source.path : null;
    },
  },
  {
    key: 'client_secret_file',
    config: (path) => introspected({ client_secret_file: path }),
    of: fileOf('secretFile'),
  },
  {
    key: 'key_file',
    config: (path) => introspected({ client_auth: 'private_key_jwt', key_file: path }),
    of: fileOf('keyFile'),
  },
  {
    key: 'cert_file',
    config: (path) => introspected({ client_auth: 'tls_client_auth', cert_file: path, key_file: '/k' }),
    of: fileOf('certFile'),
  },
];

function compiled(config: ConfigTree): CompiledConfig {
  const input = { file: 'x', folder: '/srv/shop', env: {}, readFile: () => refuse('none') };
  const { config: found, problems } = validateConfig(baseConfig(config), input);
  if (found === null) throw new Error(JSON.stringify(problems));
  return found;
}

const rows: readonly (readonly [string, string])[] = [
  ['tls/x.pem', '/srv/shop/tls/x.pem'],
  ['./x.pem', '/srv/shop/x.pem'],
  ['../x.pem', '/srv/x.pem'],
  ['/etc/x.pem', '/etc/x.pem'],
];

for (const { key, config, of } of keys) {
  t.test(`a relative path in ${key} starts from the folder of the config: ${JSON.stringify(config('…'))}`, (t) => {
    for (const [path, expected] of rows) t.equal(of(compiled(config(path))), expected, path);
    t.end();
  });
}

t.test('no key for a file is forgotten here', (t) => {
  const schema = readFileSync(join(projectDir, 'config.schema.json'), 'utf8');
  const named = [...schema.matchAll(/"([a-z_]+_file)": \{/g)].map(([, name]) => name);
  t.same(named.toSorted(), keys.map(({ key }) => key).toSorted());
  t.end();
});
