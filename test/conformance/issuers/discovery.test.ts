/** docs/issuers.md and docs/contract.md 5: what an issuer’s server may answer; no lie of it brings a key in. */
import type { ServerResponse } from 'node:http';
import t from 'tap';
import type { Behaviour } from '../../support/jwks-server.js';
import { oidcPath, startMetadataServer } from '../../support/metadata-server.js';
import { keyFor, tokenBy } from '../../support/profile-tokens.js';
import { startProxyProcess } from '../../support/proxy-process.js';
import type { RawResponse } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { checkRefusal, refusals } from '../refusals.js';
import { checkSilence } from '../silence.js';

const idp = await startMetadataServer(t);
/** Another origin, whose keys are somebody else's. */
const evil = await startMetadataServer(t);
const key = keyFor('ES256', 'k-1');
const stranger = keyFor('ES256', 'somebody else');
const keySet = { keys: [key.jwk] };
const strangersSet = { keys: [{ ...stranger.jwk, kid: 'k-1' }] };
evil.at('/jwks', strangersSet);

const issuerOf = (name: string): string => `${idp.origin}/${name}`;
const good = (name: string): object => ({ issuer: issuerOf(name), jwks_uri: `${issuerOf(name)}/jwks` });

/** Writes as long as somebody reads. */
const endless: Behaviour = (_req, res) => {
  res.writeHead(200, { 'content-type': 'application/json' });
  const write = (response: ServerResponse): void => {
    if (!response.destroyed) response.write(' '.repeat(65_536), () => setImmediate(write, response));
  };
  write(res);
};
const large =
  (body: object): Behaviour =>
  (_req, res) =>
    res.end(JSON.stringify({ ...body, x: 'x'.repeat(10_000_000) }));
const redirect =
  (location: string): Behaviour =>
  (_req, res) =>
    res.writeHead(302, { location }).end();
const text =
  (body: string): Behaviour =>
  (_req, res) =>
    res.end(body);

/** Answers in the place of good metadata. */
const documentLies: Readonly<Record<string, (name: string) => object | Behaviour>> = {
  'another-issuer': (name) => ({ ...good(name), issuer: issuerOf('somebody') }),
  'nearly-the-issuer': (name) => ({ ...good(name), issuer: `${issuerOf(name)}/` }),
  'no-issuer': (name) => ({ jwks_uri: `${issuerOf(name)}/jwks` }),
  'keys-at-another-origin': (name) => ({ ...good(name), jwks_uri: `${evil.origin}/jwks` }),
  'keys-at-another-host-over-http': (name) => ({ ...good(name), jwks_uri: 'http://192.0.2.1/jwks' }),
  'keys-in-a-file': (name) => ({ ...good(name), jwks_uri: 'file:///etc/passwd' }),
  'keys-in-a-list': (name) => ({ ...good(name), jwks_uri: [`${issuerOf(name)}/jwks`] }),
  'an-issuer-twice': (name) => text(`{"issuer":"x",${JSON.stringify(good(name)).slice(1)}`),
  'ten-megabytes': (name) => large(good(name)),
  'without-an-end': () => endless,
  'redirected-to-another-origin': () => redirect(`${evil.origin}/metadata`),
  'no-json': () => text('<html>'),
  'an-error-with-keys': (name) => (_req, res) => res.writeHead(500).end(JSON.stringify(good(name))),
};

/** Answers in the place of good keys. */
const keyLies: Readonly<Record<string, object | Behaviour>> = {
  'keys-of-ten-megabytes': large(keySet),
  'keys-without-an-end': endless,
  'keys-redirected': redirect(`${evil.origin}/jwks`),
  'keys-twice': text(`{"keys":[],${JSON.stringify(keySet).slice(1)}`),
  'one-kid-for-two-keys': { keys: [...keySet.keys, ...strangersSet.keys] },
  'keys-that-are-none': { keys: [7] },
};

const names = [...Object.keys(documentLies), ...Object.keys(keyLies), 'changing'];
for (const name of names) {
  idp.at(`/${name}${oidcPath}`, documentLies[name]?.(name) ?? good(name));
  idp.at(`/${name}/jwks`, keyLies[name] ?? keySet);
}
evil.at('/metadata', { issuer: issuerOf('redirected-to-another-origin'), jwks_uri: `${evil.origin}/jwks` });

const jwks = { cooldown: '100ms', timeout: '1s', min_age: '0ms', max_age: '300ms', max_stale: '1h' };
const proxy = await startProxyProcess(t, {
  config: {
    issuers: Object.fromEntries(
      names.map((name) => [name, { profile: 'oauth', issuer: issuerOf(name), audience: 'orders', jwks }]),
    ),
    routes: [{ name: 'all', methods: ['GET'], path: '/all', subjects: ['checkout'], permissions: [] }],
  },
});

const nowS = Math.floor(Date.now() / 1000);
async function ask(name: string, signer = key): Promise<RawResponse> {
  const claims = {
    iss: issuerOf(name),
    aud: 'orders',
    sub: 'checkout',
    client_id: 'c',
    jti: 'j',
    iat: nowS,
    exp: nowS + 300,
  };
  const token = tokenBy({ ...signer, keyId: 'k-1' }, claims, { typ: 'at+jwt' });
  proxy.markSecret(token);
  return proxy.request({ path: '/all', headers: { Authorization: `Bearer ${token}` } });
}

t.test('metadata that lies brings no keys in: 503, until it says the truth', async (t) => {
  for (const name of Object.keys(documentLies)) {
    checkRefusal(t, await ask(name), refusals.keysUnavailable, name);
    checkRefusal(t, await ask(name, stranger), refusals.keysUnavailable, `${name}, a stranger`);
    idp.at(`/${name}${oidcPath}`, good(name));
  }
  for (const name of Object.keys(documentLies)) {
    await until(`${name} is believed`, async () => (await ask(name)).status === 200);
    checkRefusal(t, await ask(name, stranger), refusals.unauthorized, `${name}, a stranger`);
  }
});

t.test('a key set that lies brings no keys in: 503, until it says the truth', async (t) => {
  for (const name of Object.keys(keyLies)) {
    checkRefusal(t, await ask(name), refusals.keysUnavailable, name);
    checkRefusal(t, await ask(name, stranger), refusals.keysUnavailable, `${name}, a stranger`);
    idp.at(`/${name}/jwks`, keySet);
  }
  for (const name of Object.keys(keyLies)) {
    await until(`${name} is believed`, async () => (await ask(name)).status === 200);
  }
});

t.test('what was good stays in force while the issuer lies', async (t) => {
  await until('good keys', async () => (await ask('changing')).status === 200);
  const failures = 'sallyport_discovery_refreshes_total{issuer="changing",result="refused"}';
  const before = await proxy.metric(failures);
  idp.at(`/changing${oidcPath}`, { issuer: issuerOf('changing'), jwks_uri: `${evil.origin}/jwks` });
  await until('it lied', async () => (await proxy.metric(failures)) > before);
  t.equal((await ask('changing')).status, 200);
  checkRefusal(t, await ask('changing', stranger), refusals.unauthorized, 'a stranger');
  t.same(evil.asked, [], 'nobody asked the other origin for anything');
});

checkSilence(t, proxy);
