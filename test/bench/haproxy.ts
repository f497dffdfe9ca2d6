import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyObject } from 'node:crypto';
import { runHaproxy } from '../support/haproxy.js';
import { ask, connectHttp2 } from '../support/http2-client.js';
import { freePort } from '../support/listening.js';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import type { Certificate } from './certificate.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { oauthIssuer } from './algorithms.js';
import type { Child } from './child.js';
import { scoped } from './scoped.js';

const plain = [
  'global',
  '  nbthread 1',
  '  maxconn 4000',
  'defaults',
  '  mode http',
  '  timeout client 60s',
  '  timeout server 60s',
  '  timeout connect 5s',
];

/** Whose tokens it takes: those of the Core, or access tokens of an authorization server by one algorithm. */
export type HaproxyTokens = { readonly kind: 'core' } | { readonly kind: 'oauth'; readonly algorithm: string };

/** What is HTTP/2, with prior knowledge; the rest is HTTP/1.1. */
export interface HaproxyHttp2 {
  readonly callers: boolean;
  readonly receiver: boolean;
}

const coreClaims = [
  ['iss', 'https://api.example.com'],
  ['aud', 'orders'],
  ['source', 'microservice'],
  ['token_type', 'service'],
  ['sub', 'checkout'],
] as const;

const oauthClaims = [
  ['iss', oauthIssuer],
  ['aud', 'orders'],
  ['client_id', 'checkout'],
  ['sub', 'checkout'],
] as const;

/** The rules of one issuer and one route as HAProxy spells them, and the caller's identity for the receiver. */
function tokenRules(keyFile: string, tokens: HaproxyTokens): string[] {
  const deny = '  http-request deny deny_status 401 unless';
  const isCore = tokens.kind === 'core';
  const typ = isCore
    ? []
    : [
        "  http-request set-var(txn.typ) var(txn.token),jwt_header_query('$.typ')",
        `${deny} { var(txn.typ) -m str at+jwt }`,
      ];
  return [
    '  http-request set-var(txn.token) http_auth_bearer',
    "  http-request set-var(txn.alg) var(txn.token),jwt_header_query('$.alg')",
    `${deny} { var(txn.alg) -m str ${isCore ? 'RS256' : tokens.algorithm} }`,
    ...typ,
    `${deny} { var(txn.token),jwt_verify(txn.alg,"${keyFile}") -m int 1 }`,
    ...(isCore ? coreClaims : oauthClaims).flatMap(([claim, value]) => [
      `  http-request set-var(txn.${claim}) var(txn.token),jwt_payload_query('$.${claim}')`,
      `${deny} { var(txn.${claim}) -m str ${value} }`,
    ]),
    "  http-request set-var(txn.exp) var(txn.token),jwt_payload_query('$.exp','int')",
    '  http-request set-var(txn.left) date,neg,add(txn.exp)',
    `${deny} { var(txn.left) -m int gt 0 }`,
    // HAProxy 2.6 reads no array as a whole; the token measured with has this permission first.
    `  http-request set-var(txn.permissions) var(txn.token),jwt_payload_query('$.${isCore ? 'permissions[0]' : 'scope'}')`,
    `${deny} { var(txn.permissions) -m str orders:read }`,
    '  http-request del-header Authorization',
    '  http-request set-header X-Auth-Subject %[var(txn.sub)]',
    '  http-request set-header X-Auth-Permissions %[var(txn.permissions)]',
  ];
}

/** Runs HAProxy in front of the receiver; with a key it verifies tokens as Sallyport does. */
export async function startHaproxy(
  t: Scope,
  receiverPort: number,
  publicKey: KeyObject | null,
  token: string,
  tokens: HaproxyTokens = { kind: 'core' },
  http2: HaproxyHttp2 = { callers: false, receiver: false },
  certificate: Certificate | null = null,
): Promise<Child> {
  const dir = tempDir(t);
  const port = await freePort();
  const keyFile = join(dir, 'key.pem');
  if (publicKey !== null) writeFileSync(keyFile, publicKey.export({ format: 'pem', type: 'spki' }));
  const rules = publicKey === null ? [] : tokenRules(keyFile, tokens);
  const pemFile = join(dir, 'server.pem');
  if (certificate !== null) writeFileSync(pemFile, `${certificate.cert}${certificate.key}`, { mode: 0o600 });
  const config = [
    ...plain,
    'frontend callers',
    `  bind 127.0.0.1:${String(port)}${http2.callers ? ' proto h2' : ''}${certificate === null ? '' : ` ssl crt ${pemFile}`}`,
    ...rules,
    '  default_backend receiver',
    'backend receiver',
    `  server one 127.0.0.1:${String(receiverPort)}${http2.receiver ? ' proto h2' : ''}`,
    '',
  ];
  const { pid } = runHaproxy(t, config.join('\n'));
  const headers = { Authorization: `Bearer ${token}` };
  const over = certificate === null ? {} : { tls: { rejectUnauthorized: false } };
  const status = http2.callers
    ? async () => statusOverHttp2(port, headers)
    : async () => (await request(port, { path: '/orders', headers }, over).catch(() => null))?.status;
  await until('HAProxy answers', async () => (await status()) === 200);
  return { pid, port };
}

/** Of `GET /orders`; `null` where nobody listens yet. */
async function statusOverHttp2(port: number, headers: Readonly<Record<string, string>>): Promise<number | null> {
  return scoped(async (scope) => {
    const session = await connectHttp2(scope, `http://127.0.0.1:${String(port)}`).catch(() => null);
    return session === null ? null : (await ask(session, { ':path': '/orders', ...headers })).status;
  });
}
