/** docs/contract.md 3.4: where a credential stands and how it is written. */
import t from 'tap';
import { requestBytes } from '../support/raw-client.js';
import { markedSecret } from '../support/secrets.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { checkRefusal, comparable, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

const proxy = await startProxyProcess(t, { config: { listen: { max_header_bytes: '32KiB' } } });
const token = proxy.token();

t.test('Bearer in any case and one space', async (t) => {
  for (const value of [`Bearer ${token}`, `bearer ${token}`, `BEARER ${token}`, `bEaReR ${token}`]) {
    t.equal(
      (await proxy.request({ path: '/orders', headers: { Authorization: value } })).status,
      200,
      value.slice(0, 8),
    );
  }
});

t.test('every other form is 401, and all of them are the same answer', async (t) => {
  const before = proxy.receiver.requests.length;
  const rows: readonly { name: string; headers: Record<string, string>; path?: string; reason: string }[] = [
    { name: 'nothing', headers: {}, reason: 'credential_missing' },
    { name: 'empty', headers: { Authorization: '' }, reason: 'credential_malformed' },
    { name: 'no token', headers: { Authorization: 'Bearer' }, reason: 'credential_malformed' },
    { name: 'no scheme', headers: { Authorization: token }, reason: 'credential_malformed' },
    { name: 'two spaces', headers: { Authorization: `Bearer  ${token}` }, reason: 'credential_malformed' },
    { name: 'a tab', headers: { Authorization: `Bearer\t${token}` }, reason: 'credential_malformed' },
    { name: 'a colon', headers: { Authorization: `Bearer: ${token}` }, reason: 'credential_malformed' },
    { name: 'a longer scheme', headers: { Authorization: `BearerX ${token}` }, reason: 'credential_malformed' },
    { name: 'another scheme', headers: { Authorization: `Basic ${token}` }, reason: 'credential_malformed' },
    { name: 'DPoP', headers: { Authorization: `DPoP ${token}` }, reason: 'proof_mismatch' },
    {
      name: 'two tokens',
      headers: { Authorization: `Bearer ${token}, Bearer ${token}` },
      reason: 'credential_malformed',
    },
    {
      name: 'two tokens after one scheme',
      headers: { Authorization: `Bearer ${token} ${token}` },
      reason: 'credential_malformed',
    },
    { name: 'a parameter', headers: { Authorization: `Bearer token="${token}"` }, reason: 'credential_malformed' },
    { name: 'quotes', headers: { Authorization: `Bearer "${token}"` }, reason: 'credential_malformed' },
    { name: 'in the query', path: `/orders?access_token=${token}`, headers: {}, reason: 'credential_missing' },
    { name: 'in a cookie', headers: { Cookie: `sAccessToken=${token}` }, reason: 'credential_missing' },
    {
      name: 'in Proxy-Authorization',
      headers: { 'Proxy-Authorization': `Bearer ${token}` },
      reason: 'credential_missing',
    },
    { name: 'in X-Authorization', headers: { 'X-Authorization': `Bearer ${token}` }, reason: 'credential_missing' },
    { name: 'in a look-alike', headers: { Author_ization: `Bearer ${token}` }, reason: 'credential_missing' },
    { name: 'in an access token field', headers: { 'X-Access-Token': token }, reason: 'credential_missing' },
  ];
  const answers = new Set<string>();
  for (const [index, { name, headers, path = '/orders' }] of rows.entries()) {
    const requestId = `form-${String(index)}`;
    const response = await proxy.request({ path, headers: { ...headers, 'X-Request-Id': requestId } });
    checkRefusal(t, response, refusals.unauthorized, name);
    answers.add(comparable(response));
  }
  for (const [index, { name, reason }] of rows.entries()) {
    t.match(
      await proxy.logOf(`form-${String(index)}`),
      { reason, decision: 'denied', status: 401, subject: null, issuer: null, key_id: null },
      `${name}: ${reason}`,
    );
  }
  t.equal(answers.size, 1);
  t.equal(proxy.receiver.requests.length, before);
});

t.test('a token in the body is none', async (t) => {
  const response = await proxy.request({
    method: 'POST',
    path: '/orders',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: `access_token=${token}&x=${markedSecret}`,
  });
  checkRefusal(t, response, refusals.unauthorized, 'form body');
});

t.test('at most 8 KiB', async (t) => {
  const fill = (claim: number): string => proxy.token({ filler: 'a'.repeat(claim) });
  const short = fill(5000);
  const long = fill(6000);
  t.ok(short.length < 8000 && long.length > 8192, 'one on either side');
  t.equal((await proxy.request({ path: '/orders', headers: { Authorization: `Bearer ${short}` } })).status, 200);
  checkRefusal(
    t,
    await proxy.request({ path: '/orders', headers: { Authorization: `Bearer ${long}` } }),
    refusals.unauthorized,
    'more than 8 KiB',
  );
});

t.test('a token of 1 MB', async (t) => {
  const before = proxy.receiver.requests.length;
  const bytes = requestBytes(proxy.port, {
    path: '/orders',
    headers: { Authorization: `Bearer ${'a'.repeat(1024 * 1024)}` },
  });
  const [response] = await proxy.send(bytes);
  // The connection may break while the rest is still on its way.
  if (response !== undefined) checkRefusal(t, response, refusals.headerTooLarge, 'beyond every limit');
  t.equal(proxy.receiver.requests.length, before);
  t.equal(
    (await proxy.request({ path: '/orders', headers: { Authorization: `Bearer ${token}` } })).status,
    200,
    'the next request passes',
  );
});

checkSilence(t, proxy);
