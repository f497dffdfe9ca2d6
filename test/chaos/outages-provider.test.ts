/** A real authorization server that is killed and comes back, while a running proxy gets requests with its tokens. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startOidcProvider, type OidcProvider } from '../support/oidc-provider.js';
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

const secret = 'a secret of the proxy';
const secretFile = join(tempDir(t), 'secret');
writeFileSync(secretFile, secret, { mode: 0o600 });

interface Deployment {
  readonly idp: OidcProvider;
  readonly proxy: ProxyProcess;
  readonly ask: (token: string) => Promise<{ readonly status: number; readonly retryAfter: string | null }>;
}

async function deploy(t: Scope, more: ConfigTree = {}): Promise<Deployment> {
  const idp = await startOidcProvider(t, [{ client_id: 'sallyport', client_secret: secret }]);
  const issuer = {
    profile: 'oauth',
    issuer: idp.issuer,
    audience: 'orders',
    ca_file: idp.caFile,
    claims: { subject: 'client_id' },
    jwks: { cooldown: '100ms' },
    ...more,
  };
  const proxy = await startProxyProcess(t, { config: { issuers: { idp: issuer } } });
  return {
    idp,
    proxy,
    ask: async (token) => {
      const { status, field } = await proxy.request({
        path: '/orders',
        headers: { Authorization: `Bearer ${token}` },
      });
      return { status, retryAfter: field('retry-after') };
    },
  };
}

/** Sends one request after another with a token until it is stopped. */
function steadily({ ask }: Deployment, token: string): { readonly stop: () => Promise<readonly number[]> } {
  const statuses: number[] = [];
  const over = new AbortController();
  const running = (async () => {
    while (!over.signal.aborted) {
      statuses.push((await ask(token)).status);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  return {
    stop: async () => {
      over.abort();
      await running;
      return statuses;
    },
  };
}

t.test('keys: who is known passes, 503 only where a key cannot be had, and nobody restarts the proxy', async (t) => {
  const deployment = await deploy(t);
  const { idp, proxy, ask } = deployment;
  const statusOf = async (token: string): Promise<number> => (await ask(token)).status;
  const [seen, unseen] = [await idp.token('ES256'), await idp.token('RS256')];
  t.equal(await statusOf(seen), 200);
  const traffic = steadily(deployment, seen);

  await idp.kill();
  t.equal(await statusOf(seen), 200, 'a token that was seen before');
  t.equal(await statusOf(unseen), 200, 'a new one with a key that is known');

  await idp.restart('new keys');
  const next = await idp.token('ES256');
  await idp.kill();
  for (let count = 0; count < 5; count += 1) {
    t.match(await ask(next), { status: 503, retryAfter: /^\d+$/ }, 'a key that nobody can say anything of');
    t.same([await statusOf(seen), await statusOf(unseen)], [200, 200], 'the others go on');
  }
  await until('the log says why', () => proxy.logs().some(({ reason }) => reason === 'keys_unavailable'));
  t.equal((await proxy.admin('/readyz')).status, 200);
  const during = await traffic.stop();
  t.ok(during.length > 10, `${String(during.length)} requests`);
  t.same([...new Set(during)], [200], 'no request of a caller that is known was refused in all that');

  await idp.restart('the same keys');
  await until('the new key is taken', async () => (await statusOf(next)) === 200);
  t.equal(await statusOf(await idp.token('RS256')), 200);
  // 503 may come before 401, seen when the machine was busy; 200 never.
  for (const token of [seen, unseen]) {
    const statuses: number[] = [];
    await until('a key that the issuer has no more counts no more', async () => {
      statuses.push(await statusOf(token));
      return statuses.at(-1) === 401;
    });
    t.notOk(statuses.includes(200), statuses.join());
  }

  await idp.kill();
  await idp.restart('the same keys');
  t.equal(await statusOf(await idp.token('ES256')), 200, 'a restart with the same keys is no event');
  t.same(await proxy.exposures(), []);
});

t.test('introspection: what was said counts, else 503; the circuit opens, and closes when it is back', async (t) => {
  const deployment = await deploy(t, {
    introspection: {
      client_id: 'sallyport',
      client_secret_file: secretFile,
      unknown_per_second: 1_000,
      unknown_per_address: 1_000,
    },
  });
  const { idp, proxy, ask } = deployment;
  const statusOf = async (token: string): Promise<number> => (await ask(token)).status;
  const [seen, unseen] = [await idp.token('opaque'), await idp.token('opaque')];
  const signed = await idp.token('ES256');
  t.same([await statusOf(seen), await statusOf(signed)], [200, 200]);
  const looked = (result: string): Promise<number> =>
    proxy.metric(`sallyport_introspection_lookups_total{issuer="idp",result="${result}"}`);
  const failed = (): Promise<number> => proxy.metric('sallyport_introspections_total{issuer="idp",result="failed"}');
  const up = (): Promise<number> => proxy.metric('sallyport_introspection_up{issuer="idp"}');

  await idp.kill();
  const startedAt = performance.now();
  for (let count = 0; count < 40; count += 1) {
    t.match(await ask(unseen), { status: 503, retryAfter: '1' });
    t.same([await statusOf(seen), await statusOf(signed)], [200, 200], 'what was said, and JWTs, pass');
  }
  const trials = 6 + Math.ceil((performance.now() - startedAt) / 500);
  const questions = await failed();
  t.ok(questions >= 5 && questions <= trials, `${String(questions)} questions, at most ${String(trials)}`);
  t.equal(await looked('open'), 40 - questions, 'the others were not put');
  t.equal(await up(), 0);
  t.equal((await proxy.admin('/readyz')).status, 200);
  await until('the log says why', () => proxy.logs().some(({ reason }) => reason === 'introspection_unavailable'));

  await idp.restart('the same keys');
  const next = await idp.token('opaque');
  await until('the circuit is closed', async () => (await statusOf(next)) === 200);
  t.equal(await up(), 1);
  const before = await looked('open');
  t.equal(await statusOf(unseen), 401, 'the server has forgotten it, and says so');
  for (let count = 0; count < 5; count += 1) t.equal(await statusOf(await idp.token('opaque')), 200);
  t.equal(await looked('open'), before);
  t.same(await proxy.exposures(), []);
});
