/** Tokens that are bound to keys, where a proxy in front asks that is set up as docs/decide.md says. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { calculateThumbprint, generateKeyPair, generateProof } from 'dpop';
import * as oauth from 'oauth4webapi';
import t from 'tap';
import { fetch } from 'undici';
import { parse } from 'yaml';
import { blockThatBegins } from '../docs/fenced-blocks.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { request, type RawResponse } from '../support/raw-client.js';
import { tempDir } from '../support/temp-dir.js';
import { answerOf, checkClient, checkRequest, described } from './check-client.js';
import { startDeciding, startShown, type Deciding, type Fronted } from './deciding.js';

t.setTimeout(240_000);

const page = parse(blockThatBegins('docs/decide.md', 'listen:').text) as {
  readonly listen: { readonly dpop: { readonly origins: readonly [string] } };
};
const { dpop: shown } = page.listen;
/** Where clients reach the service, whatever port its proxy has in a test. */
const [origin] = shown.origins;
const nonceKeyFile = join(tempDir(t), 'nonces');
writeFileSync(nonceKeyFile, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });

const open = { methods: ['GET'], subjects: ['checkout'], permissions: [] };
const configWith = (dpop: ConfigTree = {}): ConfigTree => ({
  listen: { dpop: { ...shown, ...dpop } },
  store: { memory: {} },
  routes: [
    { ...open, name: 'files', path: '/files/**' },
    { ...open, name: 'kept', path: '/kept', forward_authorization: true },
  ],
});
const withNonces = configWith({ nonce_key_file: nonceKeyFile });

const keys = await generateKeyPair('ES256');
const cnf = { jkt: await calculateThumbprint(keys.publicKey) };

/** What the receiver got of a header with the last request; an empty value is none. */
const got = ({ proxy: { receiver } }: Deciding, name: string): readonly string[] =>
  (receiver.requests.at(-1)?.field(name) ?? []).filter((value) => value !== '');

async function proved({ proxy }: Deciding, path: string, nonce?: string): Promise<Record<string, string>> {
  const token = proxy.token({ cnf });
  return {
    Authorization: `DPoP ${token}`,
    DPoP: await generateProof(keys, `${origin}${path}`, 'GET', nonce, token),
  };
}

/** A request of oauth4webapi, which goes by what a 401 says. */
async function askByLibrary({ proxy, frontPort }: Fronted, DPoP: oauth.DPoPHandle, path: string): Promise<Response> {
  const options = {
    DPoP,
    [oauth.customFetch]: async (url: string, { headers }: { readonly headers: Headers | Record<string, string> }) =>
      (await fetch(`http://127.0.0.1:${String(frontPort)}${new URL(url).pathname}`, {
        headers: Object.fromEntries(new Headers(headers)),
      })) as unknown as Response,
  };
  const url = new URL(`${origin}${path}`);
  return oauth.protectedResourceRequest(proxy.token({ cnf }), 'GET', url, undefined, undefined, options);
}

for (const name of ['nginx', 'caddy', 'haproxy', 'apache'] as const) {
  t.test(`${name}: a client is told of DPoP and of a nonce, proves its key, and the proof ends here`, async (t) => {
    const front = await startShown(t, name, withNonces);
    const DPoP = oauth.DPoP({}, keys);
    const refused: unknown = await askByLibrary(front, DPoP, '/files/a').catch((error: unknown) => error);
    t.ok(oauth.isDPoPNonceError(refused), 'oauth4webapi reads the challenge as one for a nonce');
    t.equal((await askByLibrary(front, DPoP, '/files/a')).status, 200, 'and repeats the nonce that came with it');
    t.same(got(front, 'x-auth-subject'), ['checkout']);
    t.same([got(front, 'dpop'), got(front, 'authorization')], [[], []], 'neither proof nor token goes on');

    const nobody = await front.ask({ path: '/files/a' });
    t.equal(nobody.status, 401);
    const challenges = nobody.fields.filter(([field]) => field.toLowerCase() === 'www-authenticate');
    t.match(
      challenges.map(([, value]) => value).join(', '),
      /^Bearer realm="sallyport", DPoP realm="sallyport", error="use_dpop_nonce", algs="ES256 /,
    );
    const nonce = nobody.field('dpop-nonce') ?? '';
    t.match(nonce, /^[\w-]{20,}$/);
    const headers = await proved(front, '/files/a', nonce);
    t.equal((await front.ask({ path: '/files/a', headers })).status, 200, 'a proof of npm dpop');
    t.equal((await front.ask({ path: '/files/a', headers })).status, 401, 'once');
    t.equal((await front.ask({ path: '/files/b', headers })).status, 401, 'for its path');
    const bearer = {
      ...(await proved(front, '/files/a', nonce)),
      Authorization: `Bearer ${front.proxy.token({ cnf })}`,
    };
    t.equal((await front.ask({ path: '/files/a', headers: bearer })).status, 401, 'not as a bearer');

    const kept = await proved(front, '/kept', nonce);
    t.equal((await front.ask({ path: '/kept', headers: kept })).status, 200);
    t.same([got(front, 'dpop'), got(front, 'authorization')], [[kept['DPoP']], [kept['Authorization']]]);
    const unbound = await front.askAs({ path: '/files/a', headers: { DPoP: 'of no token that is bound' } });
    t.equal(unbound.status, 200);
    t.same(got(front, 'dpop'), [], 'what is no proof ends here, too');
  });
}

const asks: Readonly<Record<'nginx' | 'traefik' | 'caddy' | 'haproxy' | 'apache' | 'envoy', Record<string, string>>> = {
  nginx: { 'X-Original-URI': '/files/a', 'X-Original-Method': 'GET' },
  traefik: forwarded(),
  caddy: forwarded(),
  haproxy: forwarded(),
  apache: forwarded(),
  envoy: {},
};

function forwarded(): Record<string, string> {
  return {
    'X-Forwarded-Method': 'GET',
    'X-Forwarded-Uri': '/files/a',
    'X-Forwarded-Host': 'a.example',
    'X-Forwarded-Proto': 'https',
  };
}

for (const [form, description] of Object.entries(asks) as [keyof typeof asks, Record<string, string>][]) {
  t.test(`${form} is answered with both challenges, and never hands the proof on`, async (t) => {
    const deciding = await startDeciding(t, form, configWith());
    const ask = async (headers: Record<string, string>): Promise<RawResponse> =>
      request(deciding.decidePort, {
        path: form === 'envoy' ? '/files/a' : '/',
        headers: { ...description, ...headers },
      });
    const refused = await ask({});
    t.equal(refused.status, 401);
    const told = refused.fields.flatMap(([field, value]) =>
      field.toLowerCase() === 'www-authenticate' ? [value] : [],
    );
    t.match(told.join(', '), /^Bearer realm="sallyport", DPoP realm="sallyport", algs="/);
    if (form === 'nginx') t.equal(told.length, 1, 'releases before 1.23 hand on one line');
    t.equal(refused.field('dpop-nonce'), null);
    const allowed = await ask(await proved(deciding, '/files/a'));
    t.equal(allowed.status, 200);
    const removed = allowed.field(form === 'envoy' ? 'x-envoy-auth-headers-to-remove' : 'x-sallyport-remove');
    if (removed === null) t.equal(allowed.field('dpop'), '', 'to be set in its place');
    else t.ok(removed.split(',').includes('DPoP'));
  });
}

t.test('Envoy over gRPC is told both challenges and the nonce, and to remove the proof', async (t) => {
  const deciding = await startDeciding(t, 'envoy', withNonces);
  const check = checkClient(t, deciding.decidePort);
  const { response } = await check(checkRequest(described({ path: '/files/a' })));
  const told = response?.deniedResponse?.headers ?? [];
  t.match(
    told
      .filter(({ header: { key } }) => key === 'www-authenticate')
      .map(({ header, append }) => [header.value, append]),
    [
      ['Bearer realm="sallyport"', {}],
      [/^DPoP realm="sallyport", error="use_dpop_nonce"/, { value: true }],
    ],
  );
  const nonce = answerOf(response).field('dpop-nonce') ?? undefined;
  const headers = await proved(deciding, '/files/a', nonce);
  const allowed = await check(checkRequest(described({ path: '/files/a', headers })));
  t.ok(allowed.response?.okResponse?.headersToRemove.includes('dpop'));
});

t.test('without listen.dpop nobody is told of it', async (t) => {
  const deciding = await startDeciding(t, 'nginx', { store: { memory: {} } });
  const refused = await request(deciding.decidePort, { path: '/', headers: asks.nginx });
  t.equal(refused.field('www-authenticate'), 'Bearer realm="sallyport"');
});
