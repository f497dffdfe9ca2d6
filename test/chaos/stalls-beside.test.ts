/**
 * The same of `stalls` with everything that a proxy asks beside its upstream: keys, introspection, Redis, the
 * collector, token sources and the targets of egress, all of them hostile at once.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { ConfigTree, ProxyProcess } from '../support/proxy-process.js';
import { request } from '../support/raw-client.js';
import { long, short, standStillWithEach, transports, trust, urlOf, type Ask, type Part } from './stalls.js';

t.setTimeout(600_000);

const open: ConfigTree = { subjects: ['checkout'], permissions: [] };

/** Everything that a proxy asks beside its upstream. */
const others: Part = (stall) => {
  const url = urlOf(stall);
  const issuer = { issuer: url, audience: 'orders', allow_http: true, ...trust(stall) };
  const secretFile = join(stall.files.dir, 'secret');
  writeFileSync(secretFile, 'a secret of a test', { mode: 0o600 });
  const rest: ConfigTree = { connect_timeout: short, response_timeout: long, ...trust(stall) };
  return {
    issuers: {
      keys: {
        ...issuer,
        issuer: 'https://keys.example.com',
        jwks_url: `${url}/jwks.json`,
        profile: 'oauth',
        jwks: { timeout: long, cooldown: '100ms', min_age: '100ms' },
      },
      questions: {
        ...issuer,
        issuer: 'https://questions.example.com',
        profile: 'oauth',
        jwks_url: `${url}/jwks.json`,
        introspection: {
          url: `${url}/introspect`,
          client_id: 'sallyport',
          client_secret_file: secretFile,
          token_prefix: 'opaque_',
          timeout: long,
        },
      },
    },
    store: {
      redis: {
        url: urlOf(stall, 'redis'),
        ...(stall.transport.secure === 's' ? { tls: trust(stall) } : {}),
        reserve_timeout: short,
        settle_timeout: long,
        start_without_revocations: true,
        durability: 'unverified',
      },
    },
    telemetry: {
      otlp: { endpoint: url, ...trust(stall) },
      traces: { ratio: 1 },
      metrics: true,
      logs: true,
    },
    routes: [
      { name: 'read', methods: ['GET'], path: '/orders', ...open },
      { name: 'write', methods: ['POST'], path: '/orders', ...open, idempotency: 'required' },
    ],
    egress: {
      listen: { port: 0 },
      tokens: {
        granted: {
          oauth: {
            issuer: 'https://idp.example.com',
            token_url: `${url}/token`,
            client_id: 'checkout',
            auth: { secret_file: secretFile },
            timeout: long,
            ...trust(stall),
          },
        },
      },
      targets: [
        { name: 'bare', prefix: '/bare', url, allow: [{ methods: ['GET'], path: '/**' }], ...rest },
        { name: 'streams', prefix: '/streams', url, allow: [{ methods: ['GET'], path: '/**' }], http2: true, ...rest },
        {
          name: 'granted',
          prefix: '/granted',
          url,
          token: 'granted',
          allow: [{ methods: ['GET'], path: '/**' }],
          ...rest,
        },
      ],
    },
  };
};

const withToken =
  (token: (proxy: ProxyProcess) => string): Ask =>
  async (proxy) =>
    (await proxy.request({ path: '/orders', headers: { Authorization: `Bearer ${token(proxy)}` } })).status;

const write: Ask = async (proxy) => {
  const headers = { ...proxy.authorization(), 'Idempotency-Key': `key-${String(Math.random()).slice(2)}` };
  return (await proxy.request({ method: 'POST', path: '/orders', headers, body: '{}' })).status;
};

const throughEgress =
  (target: string): Ask =>
  async (proxy) => {
    const port = await proxy.process.port('egress');
    return (await request(port, { path: `/${target}/v1` })).status;
  };

const asksOfOthers: readonly Ask[] = [
  withToken((proxy) => proxy.token({ iss: 'https://keys.example.com' }, { kid: 'unseen', typ: 'at+jwt' })),
  withToken(() => `opaque_${String(Math.random()).slice(2)}`),
  write,
  throughEgress('bare'),
  throughEgress('streams'),
  throughEgress('granted'),
];

for (const transport of transports) {
  t.test(transport.name, async (t) => {
    await standStillWithEach(t, transport, others, asksOfOthers);
  });
}
