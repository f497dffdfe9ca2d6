/**
 * docs/contract.md 2, 3.5 and 6: several issuers, each with its own keys, rules and troubles; and revocation by config.
 */
import t, { type Test } from 'tap';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey, withKeyId } from '../support/keys.js';
import { mintToken, type Claims } from '../support/tokens.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { checkRefusal, comparable, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

// Both issuers use the same key id for different keys.
const key = rsaKey('d-1');
const revokedKey = rsaKey('d-revoked');
const partnerKey = withKeyId(rsaKey('d-partner'), 'd-1');
const partnerJwks = await startJwksServer(t, { keys: [partnerKey] });
const brokenJwks = await startJwksServer(t);
brokenJwks.behave((_req, res) => res.writeHead(500).end());

const nowS = Math.floor(Date.now() / 1000);
const issuedBefore = nowS - 100;
const common = { methods: ['GET'], subjects: ['checkout', 'mallory'], permissions: [] };
const config = {
  issuers: {
    partner: {
      issuer: 'https://partner.example',
      jwks_url: partnerJwks.url,
      audience: 'orders-b2b',
      source: ['partner', 'partner-old'],
      token_type: 'b2b',
    },
    broken: {
      issuer: 'https://broken.example',
      jwks_url: brokenJwks.url,
      audience: 'orders',
      source: 'x',
      token_type: 'x',
      key_ids: { accept: ['x-*'] },
    },
  },
  revoked: {
    key_ids: ['d-revoked'],
    subjects: ['mallory'],
    token_ids: ['stolen-1'],
    issued_before: new Date(issuedBefore * 1000).toISOString(),
  },
  routes: [
    { ...common, name: 'shared', path: '/shared' },
    { ...common, name: 'partner-only', path: '/partner', issuers: ['partner'] },
    { ...common, name: 'core-only', path: '/core', issuers: ['core'] },
  ],
};
const proxy = await startProxyProcess(t, { key, config, jwks: await startJwksServer(t, { keys: [key, revokedKey] }) });

const partner: Claims = { iss: 'https://partner.example', aud: 'orders-b2b', source: 'partner', token_type: 'b2b' };

interface Row {
  readonly name: string;
  readonly path?: string;
  readonly token: string;
  /** Reason in the log, or `null` for 200. */
  readonly reason: string | null;
}

const answers = new Set<string>();

async function checkRows(t: Test, label: string, rows: readonly Row[]): Promise<void> {
  for (const [index, { name, path = '/shared', token, reason }] of rows.entries()) {
    const requestId = `${label}-${String(index)}`;
    proxy.markSecret(token);
    const response = await proxy.request({
      path,
      headers: { Authorization: `Bearer ${token}`, 'X-Request-Id': requestId },
    });
    if (reason === null) {
      t.equal(response.status, 200, name);
      continue;
    }
    checkRefusal(t, response, refusals.unauthorized, name);
    answers.add(comparable(response));
  }
  for (const [index, { name, reason }] of rows.entries()) {
    t.equal((await proxy.logOf(`${label}-${String(index)}`))['reason'], reason, `${name}: ${String(reason)}`);
  }
}

t.test("each issuer's tokens are held to its own keys and rules", async (t) => {
  await checkRows(t, 'issuer', [
    { name: 'core', token: mintToken({ key }), reason: null },
    { name: 'partner', token: mintToken({ key: partnerKey, claims: partner }), reason: null },
    {
      name: 'partner, another source of its list',
      token: mintToken({ key: partnerKey, claims: { ...partner, source: 'partner-old' } }),
      reason: null,
    },
    {
      name: 'core where only partner counts',
      path: '/partner',
      token: mintToken({ key }),
      reason: 'issuer_not_accepted',
    },
    {
      name: 'partner where only partner counts',
      path: '/partner',
      token: mintToken({ key: partnerKey, claims: partner }),
      reason: null,
    },
    {
      name: 'partner where only core counts',
      path: '/core',
      token: mintToken({ key: partnerKey, claims: partner }),
      reason: 'issuer_not_accepted',
    },
    { name: 'core claims signed by partner', token: mintToken({ key: partnerKey }), reason: 'issuer_mismatch' },
    { name: 'partner claims signed by core', token: mintToken({ key, claims: partner }), reason: 'issuer_mismatch' },
    {
      name: 'audience of the other',
      token: mintToken({ key: partnerKey, claims: { ...partner, aud: 'orders' } }),
      reason: 'audience_mismatch',
    },
    {
      name: 'source of the other',
      token: mintToken({ key: partnerKey, claims: { ...partner, source: 'microservice' } }),
      reason: 'source_mismatch',
    },
    {
      name: 'token type of the other',
      token: mintToken({ key: partnerKey, claims: { ...partner, token_type: 'service' } }),
      reason: 'token_type_mismatch',
    },
  ]);
  await proxy.request({
    path: '/shared',
    headers: { Authorization: `Bearer ${mintToken({ key: partnerKey, claims: partner })}` },
  });
  t.same(
    proxy.receiver.requests.at(-1)?.field('x-auth-issuer'),
    ['https://partner.example'],
    'the receiver learns which one',
  );
});

t.test("one issuer's trouble is no other's", async (t) => {
  const response = await proxy.request({
    path: '/shared',
    headers: { Authorization: `Bearer ${mintToken({ key: withKeyId(key, 'x-1') })}` },
  });
  checkRefusal(t, response, refusals.keysUnavailable, 'an issuer without keys');
  t.equal((await proxy.request({ path: '/shared', headers: proxy.authorization() })).status, 200, 'the other one');
  const ready = await proxy.admin('/readyz');
  t.equal(ready.status, 200);
  t.match(JSON.parse(ready.text), { status: 'degraded' });
  t.match(ready.text, 'broken', 'the failing one is named');
});

t.test('what is revoked is refused before the policy is asked', async (t) => {
  const old = { iat: issuedBefore - 1, exp: nowS + 300 };
  await checkRows(t, 'revoked', [
    { name: 'key', token: mintToken({ key: revokedKey }), reason: 'key_revoked' },
    { name: 'subject', token: mintToken({ key, claims: { sub: 'mallory' } }), reason: 'subject_revoked' },
    {
      name: 'subject on a route that does not exist',
      path: '/unknown',
      token: mintToken({ key, claims: { sub: 'mallory' } }),
      reason: 'subject_revoked',
    },
    { name: 'token id', token: mintToken({ key, claims: { jti: 'stolen-1' } }), reason: 'token_revoked' },
    { name: 'another token id', token: mintToken({ key, claims: { jti: 'stolen-12' } }), reason: null },
    { name: 'issued before', token: mintToken({ key, claims: old }), reason: 'issue_time_revoked' },
    {
      name: 'issued at that very time',
      token: mintToken({ key, claims: { ...old, iat: issuedBefore } }),
      reason: null,
    },
    {
      name: 'no issue time while such a rule is in force',
      token: mintToken({ key, claims: { iat: undefined } }),
      reason: 'issue_time_revoked',
    },
  ]);
  t.equal(answers.size, 1, 'every 401 of this file is the same answer');
});

t.test('a reload lifts a revocation', async (t) => {
  proxy.rewrite({ ...config, revoked: { subjects: [] } });
  await until(
    'mallory passes',
    async () =>
      (await proxy.request({ path: '/shared', headers: proxy.authorization({ sub: 'mallory' }) })).status === 200,
  );
  t.equal(
    (await proxy.request({ path: '/shared', headers: proxy.authorization({ iat: undefined }) })).status,
    200,
    'and tokens without iat',
  );
});

checkSilence(t, proxy);
