/** docs/contract.md 5: how the keys of issuers come, stay and go. One proxy, an issuer for each behaviour. */
import t from 'tap';
import type { RawResponse } from '../support/raw-client.js';
import { startJwksServer, type JwksServer } from '../support/jwks-server.js';
import { rsaKey, withKeyId, type RsaKey } from '../support/keys.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { startProxyProcess, usualWorkers, type ProxyProcess } from '../support/proxy-process.js';
import { checkRefusal, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

const key = rsaKey();
const quick = { min_age: '0ms', max_age: '100ms', cooldown: '0ms' };
const never = { min_age: '1h', max_age: '1h', cooldown: '0ms' };
const cooldownMs = 2_000;
/** Name, which its key ids begin with, and how it keeps its keys. */
const behaviours = {
  rotating: never,
  flooded: { ...never, cooldown: `${String(cooldownMs)}ms` },
  failing: { ...never, cooldown: `${String(cooldownMs)}ms` },
  removing: { ...quick, max_stale: '1h' },
  withdrawing: { min_age: '100ms', max_age: '300ms', cooldown: '300ms', max_stale: '1h' },
  patient: { ...never, cooldown: '3s' },
  lasting: { ...never, max_stale: '1h' },
  aging: { ...quick, max_stale: '400ms' },
} as const;
type Name = keyof typeof behaviours;

/** What `/status` says of one. */
interface Issuer {
  readonly name: string;
}

const names = Object.keys(behaviours) as Name[];
const servers = new Map<Name, JwksServer>();
for (const name of names) servers.set(name, await startJwksServer(t, { keys: [withKeyId(key, `${name}-1`)] }));

function serverOf(name: Name): JwksServer {
  const server = servers.get(name);
  if (server === undefined) throw new Error(name);
  return server;
}

const issuers = names.map(
  (name) =>
    [
      name,
      {
        issuer: `https://${name}.example`,
        jwks_url: serverOf(name).url,
        audience: 'orders',
        source: 'microservice',
        token_type: 'service',
        key_ids: { accept: [`${name}-*`] },
        jwks: behaviours[name],
      },
    ] as const,
);
const proxy = await startProxyProcess(t, { config: { issuers: Object.fromEntries(issuers) } });

const ask = async (
  name: Name,
  keyId: string,
  signer: RsaKey = key,
  where: ProxyProcess = proxy,
): Promise<RawResponse> => {
  const token = mintToken({ key: withKeyId(signer, keyId), claims: { iss: `https://${name}.example` } });
  where.markSecret(token);
  return where.request({ path: '/orders', headers: { Authorization: `Bearer ${token}` } });
};

t.test('an unknown key id has the keys fetched again', async (t) => {
  const server = serverOf('rotating');
  t.equal((await ask('rotating', 'rotating-1')).status, 200);
  const before = server.hits();
  server.setKeys([withKeyId(key, 'rotating-1'), withKeyId(rsaKey('d-next'), 'rotating-2')]);
  t.equal((await ask('rotating', 'rotating-2', rsaKey('d-next'))).status, 200, 'the new key counts at once');
  t.equal(server.hits() - before, 1);
  t.equal((await ask('rotating', 'rotating-1')).status, 200, 'and so does the old one');
  t.equal(server.hits() - before, 1, 'known keys cause no fetch');
});

t.test('however many unknown key ids arrive, they cause one fetch per cool-down', async (t) => {
  const server = serverOf('flooded');
  const first = server.hits();
  await until('the cool-down after the start is over', async () => {
    await ask('flooded', 'flooded-unknown');
    return server.hits() > first;
  });
  const [before, startedMs] = [server.hits(), performance.now()];
  const answers = await Promise.all(
    Array.from({ length: 200 }, async (_, index) => ask('flooded', `flooded-${String(index)}-x`)),
  );
  for (const response of answers) t.equal(response.status, 401);
  const most = usualWorkers * Math.ceil((performance.now() - startedMs) / cooldownMs);
  t.ok(
    server.hits() - before <= most,
    `${String(server.hits() - before)} fetches, at most ${String(most)} in that time`,
  );
  t.equal((await ask('flooded', 'flooded-1')).status, 200, 'good tokens pass all the while');
});

t.test('key ids that no issuer accepts never cause a fetch', async (t) => {
  const before = names.map((name) => serverOf(name).hits());
  const fixed = ['rotating', 'flooded', 'failing'].length;
  for (const keyId of ['s-1', 'unknown', '', 'Rotating-1', 'x-rotating-1']) {
    checkRefusal(t, await ask('rotating', keyId), refusals.unauthorized, `kid ${keyId}`);
  }
  t.same(names.map((name) => serverOf(name).hits()).slice(0, fixed), before.slice(0, fixed));
});

t.test('an unknown key id while fetching fails is 503, with one attempt per cool-down', async (t) => {
  const server = serverOf('failing');
  server.behave((_req, res) => res.writeHead(500).end());
  const [before, startedMs] = [server.hits(), performance.now()];
  const refused = await until('the set is asked for again', async () => {
    const response = await ask('failing', 'failing-new');
    return response.status === 401 ? null : response;
  });
  checkRefusal(t, refused, refusals.keysUnavailable, 'unknown while failing');
  for (let i = 0; i < 20; i += 1) t.equal((await ask('failing', `failing-new-${String(i)}`)).status, 503);
  const most = usualWorkers * (Math.ceil((performance.now() - startedMs) / cooldownMs) + 1);
  t.ok(
    server.hits() - before <= most,
    `${String(server.hits() - before)} attempts, at most ${String(most)} in that time: failed ones count`,
  );
  t.equal((await ask('failing', 'failing-1')).status, 200, 'known keys serve');
});

t.test('a key that left the set stops working', async (t) => {
  const server = serverOf('removing');
  t.equal((await ask('removing', 'removing-1')).status, 200);
  server.setKeys([withKeyId(rsaKey('d-next'), 'removing-2')]);
  await until('the key is refused', async () => (await ask('removing', 'removing-1')).status === 401);
  t.equal((await ask('removing', 'removing-2', rsaKey('d-next'))).status, 200);
});

t.test('an issuer that withdraws every key is believed when it says so again: 401, until it lists one', async (t) => {
  const server = serverOf('withdrawing');
  const ofIssuer = async (): Promise<Issuer | undefined> =>
    (JSON.parse((await proxy.admin('/status')).text) as { readonly issuers: readonly Issuer[] }).issuers.find(
      (issuer) => issuer.name === 'withdrawing',
    );
  t.equal((await ask('withdrawing', 'withdrawing-1')).status, 200);
  t.match(await ofIssuer(), { empty_set: null, withdrawn_keys: [] });
  server.setKeys([withKeyId(rsaKey('d-next'), 's-1')]);
  const refused = await until('the key is refused', async () => {
    // Connections go to the processes in turn, and each believes what it was told itself.
    const responses: RawResponse[] = [];
    while (responses.length < usualWorkers) responses.push(await ask('withdrawing', 'withdrawing-1'));
    return responses.every(({ status }) => status !== 200) && responses;
  });
  for (const response of refused) checkRefusal(t, response, refusals.unauthorized, 'static keys alone are left');
  t.match(await ofIssuer(), { usable: false, empty_set: 'confirmed', withdrawn_keys: [{ key_id: 'withdrawing-1' }] });
  t.equal(await proxy.metric('sallyport_jwks_keys{issuer="withdrawing"}'), 0);
  t.ok(
    (await proxy.metric('sallyport_jwks_refreshes_total{issuer="withdrawing",result="empty"}')) >= 2,
    'it was asked twice at least',
  );
  server.behave((_req, res) => res.writeHead(500).end());
  await until(
    'an outage',
    async () => (await proxy.metric('sallyport_jwks_refreshes_total{issuer="withdrawing",result="failed"}')) > 0,
  );
  t.not((await ask('withdrawing', 'withdrawing-1')).status, 200, 'an outage after it brings nothing back');
  server.behave(null);
  server.setKeys([withKeyId(key, 'withdrawing-1')]);
  await until('it counts again', async () => (await ask('withdrawing', 'withdrawing-1')).status === 200);
});

t.test('within the cool-down a new key is waited for, and its caller is not refused', async (t) => {
  const server = serverOf('patient');
  const before = server.hits();
  await until('the cool-down of each process began', async () => {
    await ask('patient', 'patient-made-up');
    return server.hits() >= before + usualWorkers;
  });
  server.setKeys([withKeyId(key, 'patient-1'), withKeyId(rsaKey('d-next'), 'patient-2')]);
  const hits = server.hits();
  const answers = await Promise.all([1, 2, 3].map(async () => ask('patient', 'patient-2', rsaKey('d-next'))));
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  const fetches = server.hits() - hits;
  t.ok(fetches >= 1 && fetches <= usualWorkers, `${String(fetches)} fetches: one, of each process that was asked`);
  t.ok((await proxy.metric('sallyport_jwks_waits_total{issuer="patient",result="found"}')) >= 3);
});

t.test('a broken or foreign answer never replaces a good set', async (t) => {
  const server = serverOf('lasting');
  const elsewhere = await startJwksServer(t, { keys: [withKeyId(rsaKey('d-next'), 'lasting-1')] });
  const bad: readonly (readonly [string, Parameters<JwksServer['behave']>[0]])[] = [
    ['500', (_req, res) => res.writeHead(500).end()],
    ['404 with a set', (_req, res) => res.writeHead(404).end('{"keys":[]}')],
    ['keys that are none', (_req, res) => res.end('{"keys":[7]}')],
    ['no set', (_req, res) => res.end('{}')],
    ['an array', (_req, res) => res.end('[]')],
    ['HTML', (_req, res) => res.end('<html>')],
    ['nothing', (_req, res) => res.end()],
    ['a reset', (req) => req.socket.destroy()],
    [
      'half of it',
      (req, res) => {
        res.writeHead(200, { 'content-length': '900' });
        res.write('{"keys":[', () => req.socket.destroy());
      },
    ],
    ['too much', (_req, res) => res.end(`{"keys":[],"x":"${'x'.repeat(300 * 1024)}"}`)],
    [
      'a redirect to another host',
      (_req, res) => res.writeHead(302, { location: elsewhere.url.replace('127.0.0.1', 'localhost') }).end(),
    ],
  ];
  for (const [name, behaviour] of bad) {
    server.behave(behaviour);
    const failed = 'sallyport_jwks_refreshes_total{issuer="lasting",result="failed"}';
    const [before, failures] = [server.hits(), await proxy.metric(failed)];
    t.equal(
      (await ask('lasting', 'lasting-unknown')).status,
      503,
      `${name}: whether there is such a key is not known now`,
    );
    t.ok(
      server.hits() > before && (await proxy.metric(failed)) > failures,
      `${name}: fetched, and taken for a failure`,
    );
    t.equal((await ask('lasting', 'lasting-1')).status, 200, name);
    checkRefusal(
      t,
      await ask('lasting', 'lasting-1', rsaKey('d-next')),
      refusals.unauthorized,
      `${name}: a foreign key`,
    );
  }
  t.equal(elsewhere.hits(), 0, 'the redirect is not followed');
  server.behave(null);
});

t.test('without its source a set serves up to max_stale, then 503', async (t) => {
  const server = serverOf('aging');
  t.equal((await ask('aging', 'aging-1')).status, 200);
  server.behave((req) => req.socket.destroy());
  const last = await until('the set is too old', async () => {
    const response = await ask('aging', 'aging-1');
    return response.status === 200 ? null : response;
  });
  checkRefusal(t, last, refusals.keysUnavailable, 'too old');
  server.behave(null);
  await until('it is back', async () => (await ask('aging', 'aging-1')).status === 200);
});

t.test('without any keys at start it lives, is not ready, and recovers by itself', async (t) => {
  const server = await startJwksServer(t);
  server.behave((req) => req.socket.destroy());
  const other = await startProxyProcess(t, {
    ready: false,
    jwks: server,
    key,
    config: { issuers: { core: { jwks: { cooldown: '100ms', max_age: '200ms' } } } },
  });
  t.equal((await other.admin('/livez')).status, 200);
  const notReady = await other.admin('/readyz');
  t.equal(notReady.status, 503);
  t.match(notReady.text, /keys/, 'the failing check is named');
  checkRefusal(
    t,
    await other.request({ path: '/orders', headers: other.authorization() }),
    refusals.keysUnavailable,
    'a good token',
  );
  t.equal((await other.request({ path: '/healthz' })).status, 200, 'public routes need no keys');
  server.behave(null);
  await until('ready', async () => (await other.admin('/readyz')).status === 200);
  t.equal((await other.request({ path: '/orders', headers: other.authorization() })).status, 200);
  t.same(await other.exposures(), []);
});

checkSilence(t, proxy);
