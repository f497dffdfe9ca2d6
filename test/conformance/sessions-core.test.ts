/**
 * docs/contract.md 2, 3.6 and docs/security-requirements.md R-70 for sessions of users: revoking, reloading, and a Core
 * that is asked or cannot be.
 */
import { revokeSession } from 'supertokens-node/recipe/session';
import t from 'tap';
import { coreApiKey, roles, startSessionService } from '../support/session-service.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { bearer, checkRows, cookie, sessionConfig, unauthorised } from './session-rows.js';

const service = await startSessionService(t);
const [proxy, checking] = await Promise.all([
  startProxyProcess(t, { config: sessionConfig(service) }),
  startProxyProcess(t, { config: sessionConfig(service, {}, { check_database: true }) }),
]);
const user = await service.signIn('user-1', roles('support'));
const token = await service.mint();
for (const secret of [user.accessToken, token, coreApiKey]) proxy.markSecret(secret);

t.test('what is revoked is revoked for sessions too', async (t) => {
  const key =
    /"kid":"([^"]+)"/.exec(Buffer.from(user.accessToken.split('.')[0] ?? '', 'base64url').toString())?.[1] ?? '';
  const inAMinute = new Date(Date.now() + 60_000).toISOString();
  for (const [revoked, reason] of [
    [{ subjects: ['user-1'] }, 'subject_revoked'],
    [{ key_ids: [key] }, 'key_revoked'],
    [{ issued_before: inAMinute }, 'issue_time_revoked'],
  ] as const) {
    proxy.rewrite(sessionConfig(service, { revoked }));
    proxy.signal('SIGHUP');
    await until(`${reason} is in force`, async () => {
      const response = await proxy.request({ path: '/users', headers: bearer(user.accessToken) });
      return (await proxy.logOf(response.field('x-request-id') ?? ''))['reason'] === reason;
    });
    await checkRows(t, proxy, [
      { name: `${reason}: as bearer`, path: '/users', fields: bearer(user.accessToken), reason, body: unauthorised },
      { name: `${reason}: as cookie`, path: '/both', fields: cookie(user.accessToken), reason, body: unauthorised },
    ]);
  }
  proxy.rewrite(sessionConfig(service));
  proxy.signal('SIGHUP');
  await until(
    'nothing is revoked',
    async () => (await proxy.request({ path: '/users', headers: bearer(user.accessToken) })).status === 200,
  );
});

t.test('what a reload changes of sessions waits for a restart', async (t) => {
  proxy.rewrite(sessionConfig(service, {}, { api_domain: 'https://other.example.com', check_database: true }));
  const status = await until('the reload', async () => {
    const read = JSON.parse((await proxy.admin('/status')).text) as {
      readonly restart_needed: readonly string[];
      readonly issuers: readonly unknown[];
    };
    return read.restart_needed.length > 0 ? read : null;
  });
  t.same(status.restart_needed, ['sessions.api_domain', 'sessions.check_database']);
  t.match(status.issuers, [
    { name: 'core' },
    { name: 'sessions', issuer: 'https://api.example.com/auth', usable: true, source: /\.well-known\/jwks\.json$/ },
  ]);
  t.equal(
    (await proxy.request({ path: '/users', headers: bearer(user.accessToken) })).status,
    200,
    'the old API domain still counts',
  );
});

t.test('check_database: a session that was revoked in the Core ends at once', async (t) => {
  const session = await service.signIn('user-3');
  checking.markSecret(session.accessToken);
  await checkRows(t, checking, [
    { name: 'it stands', path: '/users', fields: bearer(session.accessToken), reason: null },
  ]);
  t.equal(await revokeSession(session.handle), true);
  await checkRows(t, checking, [
    {
      name: 'it is over',
      path: '/users',
      fields: bearer(session.accessToken),
      reason: 'session_refused',
      body: unauthorised,
    },
  ]);
  t.equal(
    (await proxy.request({ path: '/users', headers: bearer(session.accessToken) })).status,
    200,
    'without it the token lives on',
  );
  t.same(await checking.exposures(), []);
});

t.test('with the Core away what it has to vouch for is 503, and everything else goes on', async (t) => {
  const { refreshToken } = await service.signIn('user-1');
  const { accessToken: unconfirmed } = await service.refresh(refreshToken);
  proxy.markSecret(unconfirmed);
  service.core.signal('SIGKILL');
  await service.core.exited;
  await checkRows(t, proxy, [
    {
      name: 'a session that needs the Core',
      path: '/users',
      fields: bearer(unconfirmed),
      reason: 'core_unavailable',
      status: 503,
    },
    { name: 'a session that does not', path: '/users', fields: bearer(user.accessToken), reason: null },
    { name: 'a service token', path: '/both', fields: bearer(token), reason: null },
  ]);
  await checkRows(t, checking, [
    {
      name: 'where the Core is asked about every session',
      path: '/users',
      fields: bearer(user.accessToken),
      reason: 'core_unavailable',
      status: 503,
    },
    { name: 'as cookie', path: '/both', fields: cookie(user.accessToken), reason: 'core_unavailable', status: 503 },
  ]);
  t.match(
    proxy.logs().find(({ msg }) => msg === 'sessions cannot be verified with the Core'),
    { reason: /cannot be reached|call of the Core failed/ },
  );
  t.match(JSON.parse((await proxy.admin('/readyz')).text), { status: /ready|degraded/ });
});

t.test('nothing that was sent stands in a log, on /metrics or on /status', async (t) => {
  t.same(await proxy.exposures(), []);
  t.same(await checking.exposures(), []);
});
