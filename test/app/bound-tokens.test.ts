/** Tokens that a real authorization server bound, from real clients, over TLS: docs/bound-tokens.md. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { calculateThumbprint, generateKeyPair, generateProof } from 'dpop';
import * as oauth from 'oauth4webapi';
import {
  clientCredentialsGrant,
  fetchProtectedResource,
  getDPoPHandle,
  randomDPoPKeyPair,
  type DPoPHandle,
} from 'openid-client';
import t from 'tap';
import { Agent, fetch } from 'undici';
import { certificates } from '../support/certificates.js';
import { runCurl } from '../support/curl.js';
import { makeProof, proofKey } from '../support/dpop.js';
import { freePort } from '../support/listening.js';
import { oidcClient, startOidcProvider } from '../support/oidc-provider.js';
import { request } from '../support/raw-client.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { startRedis } from '../support/redis-server.js';
import { mintToken } from '../support/tokens.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { startInProcessProxy, type InProcessProxy } from './in-process-proxy.js';
import { rsaKey } from '../support/keys.js';

const { ca, client, server, stranger } = certificates(t);
const withCertificate = {
  client_id: 'certificate',
  token_endpoint_auth_method: 'tls_client_auth',
  tls_client_auth_subject_dn: 'CN=client',
  tls_client_certificate_bound_access_tokens: true,
};
const asking = { client_id: 'proxy', client_secret: 'secret', token_endpoint_auth_method: 'client_secret_basic' };
const idp = await startOidcProvider(t, [withCertificate, asking]);
const redis = await startRedis(t);
const receiver = await startUpstreamServer(t);
const dir = tempDir(t);
const secretFile = join(dir, 'secret');
const nonceKeyFile = join(dir, 'nonces');
writeFileSync(secretFile, asking.client_secret, { mode: 0o600 });
writeFileSync(nonceKeyFile, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });

interface Deployed {
  readonly proxy: InProcessProxy;
  readonly origin: string;
}

async function deploy(dpop: ConfigTree = {}, publicOrigin: string | null = null): Promise<Deployed> {
  const port = await freePort();
  const origin = publicOrigin ?? `https://127.0.0.1:${port}`;
  const config: ConfigTree = {
    listen: {
      port,
      tls: { cert_file: server.certFile, key_file: server.keyFile, client_auth: 'request' },
      dpop: { origins: [origin], clock_skew: '1s', ...dpop },
    },
    store: { redis: { url: `redis://127.0.0.1:${redis.port}`, durability: 'none' } },
    issuers: {
      idp: {
        profile: 'oauth',
        issuer: idp.issuer,
        audience: 'orders',
        ca_file: idp.caFile,
        claims: { subject: 'client_id' },
        binding: 'require',
        introspection: { client_id: 'proxy', client_secret_file: secretFile },
      },
    },
    routes: [
      {
        name: 'orders',
        methods: ['GET', 'POST'],
        path: '/orders/{id}',
        subjects: ['checkout', 'certificate'],
        permissions: ['orders:read'],
        idempotency: 'none',
      },
    ],
  };
  const proxy = await startInProcessProxy(t, { receiver, config });
  await until('proofs from after the start of the store', async () => (await askBound(proxy.port, origin)) !== 503);
  return { proxy, origin };
}

const own = proofKey();
const tls = { ca: ca.cert, servername: 'localhost' };

/** A request with a token of the Core that is bound to a key, and a new proof. */
async function askBound(port: number, origin: string): Promise<number> {
  const token = mintToken({ key: rsaKey(), claims: { cnf: { jkt: own.thumbprint } } });
  const headers = { Authorization: `DPoP ${token}`, DPoP: makeProof(own, { uri: `${origin}/orders/1`, token }) };
  return (await request(port, { path: '/orders/1', headers }, { tls })).status;
}

async function tokenFor(DPoP: DPoPHandle, resource: string): Promise<string> {
  const parameters = { scope: 'orders:read', resource: `urn:orders:${resource}` };
  const issued = await clientCredentialsGrant(await idp.configuration(), parameters, { DPoP });
  t.equal(issued.token_type, 'dpop');
  return issued.access_token;
}

t.test('openid-client proves the keys of tokens from oidc-provider, JWTs and opaque ones', async (t) => {
  const config = await idp.configuration();
  const { origin, proxy } = await deploy();
  for (const [keys, resource] of [
    ['ES256', 'ES256'],
    ['Ed25519', 'RS256'],
    ['ES256', 'opaque'],
  ] as const) {
    const DPoP = getDPoPHandle(config, await randomDPoPKeyPair(keys));
    const token = await tokenFor(DPoP, resource);
    for (const path of ['/orders/1', '/orders/1?a=b', '/orders/caf%C3%A9', '/orders/~a']) {
      const url = new URL(`${origin}${path}`);
      const response = await fetchProtectedResource(config, token, url, 'GET', null, undefined, { DPoP });
      t.equal(response.status, 200, `${keys}, ${resource}: ${path}`);
    }
    const posted = await fetchProtectedResource(config, token, new URL(`${origin}/orders/1`), 'POST', 'x', undefined, {
      DPoP,
    });
    t.equal(posted.status, 200, 'POST');
    const thief = getDPoPHandle(config, await randomDPoPKeyPair('ES256'));
    for (const stolen of [{ DPoP: thief }, {}]) {
      const url = new URL(`${origin}/orders/1`);
      const refused = await fetchProtectedResource(config, token, url, 'GET', null, undefined, stolen).then(
        ({ status }) => status,
        (error: unknown) => (error as { readonly status: number }).status,
      );
      t.equal(refused, 401, 'a thief, with a key of its own and as a bearer');
    }
  }
  t.equal(await proxy.metric('sallyport_denials_total{route="orders",reason="proof_mismatch"}'), 3);
  t.equal(await proxy.metric('sallyport_denials_total{route="orders",reason="proof_missing"}'), 3);
});

t.test('nonces: openid-client asks again with the one that it was told, of whichever proxy', async (t) => {
  const config = await idp.configuration();
  const [one, other] = await Promise.all([
    deploy({ nonce_key_file: nonceKeyFile }),
    deploy({ nonce_key_file: nonceKeyFile }),
  ]);
  const DPoP = getDPoPHandle(config, await randomDPoPKeyPair('ES256'));
  const token = await tokenFor(DPoP, 'ES256');
  for (const { origin } of [one, one, other]) {
    const ask = async (): Promise<number> => {
      const url = new URL(`${origin}/orders/1`);
      return (await fetchProtectedResource(config, token, url, 'GET', null, undefined, { DPoP })).status;
    };
    t.equal(await ask(), 200);
  }
  t.equal(await other.proxy.metric('sallyport_denials_total{route="orders",reason="proof_nonce"}'), 2);
});

t.test('npm dpop proves a key, for the request that it is asked for', async (t) => {
  const config = await idp.configuration();
  const { origin, proxy } = await deploy();
  for (const algorithm of ['ES256', 'Ed25519', 'RS256', 'PS256'] as const) {
    const keypair = await generateKeyPair(algorithm);
    const isRsa = algorithm.endsWith('S256') && algorithm !== 'ES256';
    // The authorization server binds no tokens to keys of RSA.
    const token = isRsa
      ? mintToken({ key: rsaKey(), claims: { cnf: { jkt: await calculateThumbprint(keypair.publicKey) } } })
      : await tokenFor(getDPoPHandle(config, keypair), 'ES256');
    const ask = async (proof: string, method = 'GET', path = '/orders/1'): Promise<number> =>
      (await request(proxy.port, { method, path, headers: { Authorization: `DPoP ${token}`, DPoP: proof } }, { tls }))
        .status;
    const proof = async (method = 'GET', url = `${origin}/orders/1`, of = token): Promise<string> =>
      generateProof(keypair, url, method, undefined, of);
    const once = await proof();
    t.equal(await ask(once), 200, algorithm);
    t.equal(await ask(once), 401, 'once');
    t.equal(await ask(await proof('POST')), 401, 'another method');
    t.equal(await ask(await proof('GET', `${origin}/orders/2`)), 401, 'another path');
    t.equal(await ask(await proof('GET', 'https://other.example/orders/1')), 401, 'another host');
    t.equal(await ask(await proof('GET', `${origin}/orders/1`, 'another')), 401, 'another token');
    t.equal(await ask(await generateProof(keypair, `${origin}/orders/1`, 'GET')), 401, 'of no token');
    t.equal(await ask(await generateProof(await generateKeyPair(algorithm), origin, 'GET', undefined, token)), 401);
    t.equal(await ask(await proof(), 'GET', '/orders/1?a=b'), 200, 'a query is no part of it');
  }
});

t.test('oauth4webapi gets a bound token, proves it, and repeats a nonce', async (t) => {
  const { origin, proxy } = await deploy({ nonce_key_file: nonceKeyFile });
  const issuer = (await idp.configuration()).serverMetadata();
  const caller: oauth.Client = { client_id: oidcClient.id };
  const DPoP = oauth.DPoP(caller, await oauth.generateKeyPair('ES256'));
  const options = { DPoP, [oauth.customFetch]: idp.fetch };
  const granted = await oauth.clientCredentialsGrantRequest(
    issuer,
    caller,
    oauth.ClientSecretBasic(oidcClient.secret),
    new URLSearchParams({ scope: 'orders:read', resource: 'urn:orders:ES256' }),
    options,
  );
  const { access_token: token } = await oauth.processClientCredentialsResponse(issuer, caller, granted);
  const ask = async (): Promise<number> => {
    const url = new URL(`${origin}/orders/1`);
    return (await oauth.protectedResourceRequest(token, 'GET', url, undefined, undefined, options)).status;
  };
  const refused = await ask().catch((error: unknown) => error);
  t.ok(oauth.isDPoPNonceError(refused), 'it reads the challenge as one for a nonce');
  t.equal(await ask(), 200, 'it repeats the nonce that came with it');
  t.equal(await ask(), 200);
  const asked = 'sallyport_denials_total{route="orders",reason="proof_nonce"}';
  t.equal(await proxy.metric(asked), 2, 'with the request that the proxy was tried with');
});

t.test('two proxies on one Redis that get a proof at once: one lets it pass', async (t) => {
  const origin = 'https://orders.example';
  const proxies = await Promise.all([1, 2].map(async () => deploy({}, origin)));
  const token = mintToken({ key: rsaKey(), claims: { cnf: { jkt: own.thumbprint } } });
  for (let round = 0; round < 20; round += 1) {
    const headers = {
      Authorization: `DPoP ${token}`,
      DPoP: makeProof(own, { uri: `${origin}/orders/1`, token }),
    };
    const statuses = await Promise.all(
      [...proxies, ...proxies].map(
        async ({ proxy }) => (await request(proxy.port, { path: '/orders/1', headers }, { tls })).status,
      ),
    );
    t.same(statuses.sort(), [200, 401, 401, 401]);
  }
  const found = await redis.client.keys('sallyport:*:t:*');
  t.ok(found.length >= 20);
  for (const name of found) {
    const left = await redis.client.pttl(name);
    t.ok(left > 0 && left <= 76_000, `${name} ends`);
  }
});

t.test('curl shows the certificate that oidc-provider bound its token to', async (t) => {
  const { origin } = await deploy();
  const dispatcher = new Agent({ connect: { ca: ca.cert, cert: client.cert, key: client.key } });
  t.teardown(async () => dispatcher.destroy());
  for (const resource of ['ES256', 'opaque']) {
    const answer = await fetch(`${idp.issuer}/token`, {
      dispatcher,
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: 'certificate',
        scope: 'orders:read',
        resource: `urn:orders:${resource}`,
      }).toString(),
    });
    const { access_token: token } = (await answer.json()) as { readonly access_token: string };
    const statusOf = async (...args: readonly string[]): Promise<string> => {
      const config = join(dir, 'curl');
      writeFileSync(config, `header = "Authorization: Bearer ${token}"\n`, { mode: 0o600 });
      const common = [
        '--config',
        config,
        '--cacert',
        ca.certFile,
        '--output',
        '/dev/null',
        '--write-out',
        '%{http_code}',
      ];
      return (await runCurl(...common, ...args, `${origin}/orders/1`)).stdout;
    };
    t.equal(await statusOf('--cert', client.certFile, '--key', client.keyFile), '200', resource);
    t.equal(await statusOf('--cert', client.certFile, '--key', client.keyFile, '--tls-max', '1.2'), '200', resource);
    t.equal(await statusOf('--cert', stranger.certFile, '--key', stranger.keyFile), '401', resource);
    t.equal(await statusOf(), '401', resource);
  }
});
