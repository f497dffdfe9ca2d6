import t from 'tap';
import { stringify } from 'yaml';
import { inspect } from '../../inspection.js';

const good = { url: 'https://idp.example.com/introspect', client_id: 'sallyport', client_secret_file: '/s' };

interface Row {
  readonly name: string;
  readonly introspection: object | null;
  /** Of the issuer. */
  readonly issuer?: object;
  readonly others?: object;
  readonly route?: object;
  /** What is said; nothing where all is well. */
  readonly says?: RegExp;
}

const rows: readonly Row[] = [
  { name: 'as it should be', introspection: good },
  { name: 'by discovery', introspection: { ...good, url: null } },
  {
    name: 'by no discovery',
    introspection: { ...good, url: null },
    issuer: { jwks_file: '/keys' },
    says: /does not say where the issuer is asked/,
  },
  {
    name: 'an authority for questions alone',
    introspection: good,
    issuer: { jwks_url: 'http://127.0.0.1/k', ca_file: '/ca' },
  },
  {
    name: 'an authority for nothing',
    introspection: { ...good, url: 'http://127.0.0.1:3000/i' },
    issuer: { jwks_url: 'http://127.0.0.1/k', ca_file: '/ca' },
    says: /ca_file has no use without https/,
  },
  { name: 'http on this machine', introspection: { ...good, url: 'http://127.0.0.1:3000/i' } },
  {
    name: 'http elsewhere',
    introspection: { ...good, url: 'http://idp.example.com/i' },
    issuer: { allow_http: true },
    says: /would send tokens and the client’s secret over http.*allowed: https/,
  },
  {
    name: 'another profile',
    introspection: good,
    issuer: { profile: 'kubernetes' },
    says: /introspection has no use with profile: kubernetes/,
  },
  {
    name: 'no secret',
    introspection: { ...good, client_secret_file: null },
    says: /client_secret_file is missing, and client_auth is client_secret_basic/,
  },
  {
    name: 'a key beside a secret',
    introspection: { ...good, key_file: '/k' },
    says: /key_file has no use with client_auth: client_secret_basic/,
  },
  {
    name: 'a key',
    introspection: {
      ...good,
      client_secret_file: null,
      key_file: '/k',
      client_auth: 'private_key_jwt',
      algorithm: 'ES256',
      key_id: 'k',
    },
  },
  {
    name: 'a key that is missing',
    introspection: { ...good, client_auth: 'private_key_jwt' },
    says: /key_file is missing/,
  },
  { name: 'a key id without a key', introspection: { ...good, key_id: 'k' }, says: /key_id has no use/ },
  {
    name: 'a certificate',
    introspection: {
      ...good,
      client_secret_file: null,
      key_file: '/k',
      cert_file: '/c',
      client_auth: 'tls_client_auth',
    },
  },
  {
    name: 'a certificate over http',
    introspection: {
      ...good,
      url: 'http://127.0.0.1/i',
      client_secret_file: null,
      key_file: '/k',
      cert_file: '/c',
      client_auth: 'tls_client_auth',
    },
    says: /a certificate is shown over https only/,
  },
  {
    name: 'a secret in the place of its file',
    introspection: { ...good, client_secret_file: 7 },
    says: /client_secret_file/,
  },
  { name: 'no client', introspection: { ...good, client_id: undefined }, says: /client_id/ },
  { name: 'longer than 30 s', introspection: { ...good, max_age: '31s' }, says: /max_age.*30s/ },
  { name: 'longer than 5 s', introspection: { ...good, max_negative_age: '6s' }, says: /max_negative_age.*5s/ },
  {
    name: 'no audience',
    introspection: { ...good, require_aud: false },
    says: /takes tokens whose audience nobody names/,
  },
  {
    name: 'an address with more than all',
    introspection: { ...good, unknown_per_address: 21 },
    says: /one address may use up everybody’s share/,
  },
  { name: 'two issuers', introspection: good, others: { two: good }, says: /would be asked about the same tokens/ },
  {
    name: 'two with prefixes',
    introspection: { ...good, token_prefix: 'a_' },
    others: { two: { ...good, token_prefix: 'b_' } },
  },
  {
    name: 'two, one prefix within the other',
    introspection: { ...good, token_prefix: 'a_' },
    others: { two: { ...good, token_prefix: 'a_b' } },
    says: /would be asked about the same tokens/,
  },
  {
    name: 'single use',
    introspection: good,
    route: { single_use: true },
    says: /lets a token pass once, and takes opaque tokens/,
  },
  { name: 'single use with jti', introspection: { ...good, has_jti: true }, route: { single_use: true } },
];

t.test('what is wrong is said with its place, and what would be right', (t) => {
  for (const { name, introspection, issuer, others = {}, route = {}, says } of rows) {
    const idp = { issuer: 'https://idp.example.com', profile: 'oauth', audience: 'orders' };
    const text = stringify(
      {
        upstream: { url: 'http://127.0.0.1:3000' },
        issuers: {
          idp: { ...idp, ...issuer, introspection },
          ...Object.fromEntries(
            Object.entries(others).map(([other, settings]) => [
              other,
              { ...idp, issuer: `https://${other}.example.com`, introspection: settings as object },
            ]),
          ),
        },
        store: { memory: {} },
        routes: [
          {
            name: 'create',
            methods: ['POST'],
            path: '/orders',
            subjects: ['checkout'],
            permissions: ['orders:write'],
            idempotency: { mode: 'none', because: 'a test' },
            ...route,
          },
        ],
      },
      { aliasDuplicateObjects: false },
    );
    const { problems } = inspect(text);
    const said = problems
      .filter(({ message }) => says !== undefined || /introspection|token_prefix|single_use/.test(message))
      .map(({ message, allowed }) => `${message}; allowed: ${allowed}`);
    if (says === undefined) t.same(said, [], name);
    else t.match(said.join('\n'), says, name);
  }
  t.end();
});
