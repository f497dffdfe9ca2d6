import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startIntrospection, type IntrospectionServer } from '../support/introspection-server.js';
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';
import { connectRaw, requestBytes } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { startJwksServer } from '../support/jwks-server.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

const clientSecret = 'what nobody may read in a log';

interface Started {
  readonly proxy: ProxyProcess;
  readonly issuer: IntrospectionServer;
  readonly config: (introspection?: ConfigTree, more?: ConfigTree) => ConfigTree;
  readonly secretFile: string;
}

async function start(t: Scope, more: ConfigTree = {}): Promise<Started> {
  const [issuer, jwks] = await Promise.all([startIntrospection(t), startJwksServer(t)]);
  const secretFile = join(tempDir(t), 'client-secret');
  writeFileSync(secretFile, clientSecret);
  chmodSync(secretFile, 0o600);
  const config: Started['config'] = (introspection = {}, rest = {}) => ({
    issuers: {
      idp: {
        issuer: 'https://idp.example.com',
        profile: 'oauth',
        audience: ['orders', 'orders-v2'],
        jwks_url: jwks.url,
        claims: { subject: 'client_id' },
        introspection: {
          url: issuer.url,
          client_id: 'sallyport',
          client_secret_file: secretFile,
          ...introspection,
        },
      },
    },
    ...rest,
  });
  const proxy = await startProxyProcess(t, { config: config({}, more), jwks });
  proxy.markSecret(clientSecret);
  return { proxy, issuer, config, secretFile };
}

const active = (more: object = {}): object => ({
  active: true,
  iss: 'https://idp.example.com',
  aud: 'orders-v2',
  client_id: 'checkout',
  scope: 'orders:read orders:write',
  token_type: 'Bearer',
  exp: Math.floor(Date.now() / 1_000) + 300,
  ...more,
});

let asked = 0;

async function ask(
  { proxy }: Pick<Started, 'proxy'>,
  token: string,
  path = '/orders',
): Promise<{ readonly status: number; readonly reason: unknown; readonly text: string; readonly line: object }> {
  const id = `opaque-${String((asked += 1))}`;
  const { status, text } = await proxy.request({
    path,
    headers: { Authorization: `Bearer ${token}`, 'X-Request-Id': id },
  });
  const line = await proxy.logOf(id);
  return { status, text, reason: line['reason'], line };
}

t.test('an opaque token passes by its issuer’s word, and the upstream learns who calls', async (t) => {
  const started = await start(t);
  const { proxy, issuer } = started;
  issuer.tokens.set('v1.good/one~token==', active({ jti: 'one' }));
  const { status, line } = await ask(started, 'v1.good/one~token==');
  t.equal(status, 200);
  t.match(line, { issuer: 'idp', subject: 'checkout', kind: 'service', key_id: null, decision: 'forwarded' });
  const received = proxy.receiver.requests.at(-1);
  t.same(
    ['x-auth-subject', 'x-auth-kind', 'x-auth-issuer', 'x-auth-permissions'].map((name) => received?.field(name)),
    [['checkout'], ['service'], ['https://idp.example.com'], ['orders:read orders:write']],
  );
  t.equal((await ask(started, 'v1.good/one~token==')).status, 200);
  t.equal(issuer.questions.length, 1, 'the issuer is asked once');
  const refused = await ask(started, 'nobody.has.issued');
  t.match(refused, { status: 401, reason: 'token_inactive' });
  const forged = await ask(started, proxy.token({ iss: 'https://nobody.example.com' }));
  t.equal(forged.status, 401);
  t.equal(refused.text, forged.text, 'a caller learns nothing of why');
  t.equal(issuer.questions.length, 2, 'and no JWT goes there');
  t.equal((await ask(started, proxy.token())).status, 200, 'JWTs of other issuers pass as ever');

  const metric = async (series: string): Promise<number> => proxy.metric(series);
  t.equal(await metric('sallyport_introspections_total{issuer="idp",result="active"}'), 1);
  t.equal(await metric('sallyport_introspections_total{issuer="idp",result="inactive"}'), 1);
  t.equal(await metric('sallyport_introspection_lookups_total{issuer="idp",result="remembered"}'), 1);
  t.equal(await metric('sallyport_introspection_up{issuer="idp"}'), 1);
  const status_ = JSON.parse((await proxy.admin('/status')).text) as { issuers: { name: string }[] };
  t.match(
    status_.issuers.find(({ name }) => name === 'idp'),
    { introspection: { up: true, problem: null, active: 1, inactive: 1, in_flight: 0 } },
  );
  t.same(await proxy.exposures(), [], 'neither a token nor the secret is told');
});

t.test('what the response says is held to the rules of the issuer', async (t) => {
  const started = await start(t);
  const { issuer } = started;
  for (const [token, answer, status, reason] of [
    ['other-audience', active({ aud: 'billing' }), 401, 'audience_mismatch'],
    ['other-issuer', active({ iss: 'https://evil.example.com' }), 401, 'issuer_mismatch'],
    ['over', active({ exp: 1 }), 401, 'token_expired'],
    ['bound', active({ cnf: {} }), 401, 'binding_unknown'],
    ['poor', active({ scope: 'orders:write' }), 403, 'permission_missing'],
    ['stranger', active({ client_id: 'mallory' }), 403, 'subject_not_approved'],
    ['text', { active: 'true' }, 503, 'introspection_unavailable'],
  ] as const) {
    issuer.tokens.set(token, answer);
    t.match(await ask(started, token), { status, reason }, token);
  }
});

t.test('the issuer is away: 503, ready, and JWTs pass', async (t) => {
  const started = await start(t);
  const { proxy, issuer } = started;
  issuer.tokens.set('good', active());
  t.equal((await ask(started, 'good')).status, 200);
  await issuer.close();
  t.equal((await ask(started, 'good')).status, 200, 'what it said still counts');
  const refused = await ask(started, 'another');
  t.match(refused, { status: 503, reason: 'introspection_unavailable', text: /keys-unavailable/ });
  t.equal((await proxy.admin('/readyz')).status, 200);
  t.equal((await ask(started, proxy.token())).status, 200);
  t.equal(await proxy.metric('sallyport_introspection_up{issuer="idp"}'), 0);
  t.match((await proxy.admin('/status')).text, /the connection was refused/);
});

t.test('a flood of made-up tokens does not reach the issuer', async (t) => {
  const started = await start(t);
  const { proxy, issuer, config } = started;
  proxy.rewrite(config({ unknown_per_second: 2, unknown_per_address: 1 }));
  await proxy.loaded();
  const answers = [];
  for (let index = 0; index < 300; index += 1) {
    answers.push(
      (await proxy.request({ path: '/orders', headers: { Authorization: `Bearer x${String(index)}` } })).status,
    );
  }
  t.ok(issuer.questions.length < 30, `${String(issuer.questions.length)} questions for 300 tokens`);
  t.same([...new Set(answers)].sort(), [401, 503]);
  t.ok((await proxy.metric('sallyport_introspection_lookups_total{issuer="idp",result="limited"}')) > 250);
});

t.test('whoever has a /48 of IPv6 does not use up what others may ask', async (t) => {
  const listen = { host: '127.0.0.1', port: 0, trust_forwarded: ['127.0.0.1'] };
  const { proxy, config } = await start(t, { listen });
  proxy.rewrite(config({ unknown_per_second: 100, unknown_per_address: 1 }, { listen }));
  await proxy.loaded();
  let count = 0;
  const from = async (address: string): Promise<number> => {
    const headers = { Authorization: `Bearer x${String((count += 1))}`, 'X-Forwarded-For': address };
    return (await proxy.request({ path: '/orders', headers })).status;
  };
  const answers: number[] = [];
  for (let index = 0; index < 150; index += 1) answers.push(await from(`2001:db8:1:${index.toString(16)}::1`));
  const held = answers.filter((status) => status === 503).length;
  t.ok(held > 75, `it is held back ${String(held)} times, though each of its networks asked once`);
  t.equal(await from('192.0.2.1'), 401);
  t.equal(await from('2001:db8:2::1'), 401);
});

t.test('behind a proxy, strangers on the connection of a good caller are strangers all the same', async (t) => {
  const listen = { host: '127.0.0.1', port: 0, trust_forwarded: ['127.0.0.1'] };
  const { proxy, issuer, config } = await start(t, { listen });
  proxy.rewrite(config({ unknown_per_second: 1, unknown_per_address: 1 }, { listen }));
  await proxy.loaded();
  for (const token of ['good', 'new']) issuer.tokens.set(token, active());
  const connection = await connectRaw(proxy.port);
  t.teardown(() => connection.end());
  const ask = async (token: string, address: string): Promise<number> => {
    const headers = { Authorization: `Bearer ${token}`, 'X-Forwarded-For': address, Connection: 'keep-alive' };
    connection.write(requestBytes(proxy.port, { path: '/orders', headers }));
    return (await connection.readResponse())?.status ?? 0;
  };
  t.equal(await ask('good', '192.0.2.1'), 200);
  const answers: number[] = [];
  for (let index = 0; index < 40; index += 1) {
    answers.push(await ask(`x${String(index)}`, `198.51.100.${String(index)}`));
  }
  t.ok(answers.includes(503), 'their budget is used up');
  t.equal(await ask('new', '192.0.2.1'), 200, 'and not that of the caller');
});

t.test(
  'a reload takes other settings over, keeps what was asked else, and refuses files that cannot be used',
  async (t) => {
    const started = await start(t);
    const { proxy, issuer, config, secretFile } = started;
    issuer.tokens.set('good', active());
    await ask(started, 'good');
    proxy.rewrite(config({}, { listen: { host: '127.0.0.1', port: 0 }, log: { user_agent: false } }));
    await proxy.loaded();
    t.equal((await ask(started, 'good')).status, 200);
    t.equal(issuer.questions.length, 1, 'nobody is asked anew');
    proxy.rewrite(config({ client_auth: 'client_secret_post' }));
    await proxy.loaded();
    t.equal((await ask(started, 'good')).status, 200);
    t.equal(issuer.questions.at(-1)?.form.get('client_secret'), clientSecret);

    writeFileSync(secretFile, 'renewed');
    proxy.markSecret('renewed');
    await until('taken up', () => proxy.logs().some(({ msg }) => msg === 'the files for introspection were taken up'));
    // Whoever asked before the reload looks at the file a little longer, and may be the first to say so.
    let next = 0;
    await until('the new secret', async () => {
      const token = `next-${String((next += 1))}`;
      issuer.tokens.set(token, active());
      await ask(started, token);
      return issuer.questions.at(-1)?.form.get('client_secret') === 'renewed';
    });

    proxy.rewrite(config({ client_secret_file: `${secretFile}.none` }));
    await until('refused', () => proxy.logs().some(({ msg }) => String(msg).startsWith('the config was not reloaded')));
    t.match(
      proxy.logs().find(({ msg }) => String(msg).startsWith('the config was not reloaded')),
      {
        problems: [`${secretFile}.none: does not exist`],
      },
    );
    t.same(await proxy.exposures(), []);
  },
);

t.test('what the config revokes counts at once, by any of its ways', async (t) => {
  const started = await start(t);
  const { proxy, issuer, config } = started;
  issuer.tokens.set('v1.good', active({ jti: 'one', iat: Math.floor(Date.now() / 1_000) - 60 }));
  t.equal((await ask(started, 'v1.good')).status, 200);
  for (const [revoked, reason] of [
    [{ subjects: ['checkout'] }, 'subject_revoked'],
    [{ token_ids: ['one'] }, 'token_revoked'],
    [{ issued_before: new Date().toISOString() }, 'issue_time_revoked'],
  ] as const) {
    proxy.rewrite(config({}, { revoked }));
    await proxy.loaded();
    t.match(await ask(started, 'v1.good'), { status: 401, reason }, reason);
  }
});

t.test('shadow mode lets pass what is not active, and nothing that is revoked', async (t) => {
  const started = await start(t, { mode: 'shadow' });
  const { proxy, issuer, config } = started;
  issuer.tokens.set('elsewhere', active({ aud: 'billing', jti: 'one' }));
  t.equal((await ask(started, 'made-up')).status, 200);
  t.equal((await ask(started, 'elsewhere')).status, 200);
  proxy.rewrite(config({}, { mode: 'shadow', revoked: { token_ids: ['one'] } }));
  await proxy.loaded();
  t.match(await ask(started, 'elsewhere'), { status: 401, reason: 'token_revoked' });
  t.equal((await ask(started, 'made-up')).status, 200);
});
