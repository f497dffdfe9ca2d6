import t from 'tap';
import { connectCore, startCore } from './core-client.js';
import { startCoreEmulator } from '../../src/core-emulator/server.js';
import { importing, statusOf } from './contract/core-under-test.js';

t.test('a code that is over is refused, one of its last millisecond is not', async (t) => {
  let nowMs = 1_700_000_000_000;
  const core = await startCore(t, { now: () => nowMs, codeLifetimeMs: 90_000 });
  const consumedAfter = async (ms: number): Promise<unknown> => {
    const code = (await core.post('/recipe/signinup/code', { email: 'ada@example.com' }, importing)).json();
    t.match(code, { timeCreated: nowMs, codeLifetime: 90_000 });
    nowMs += ms;
    const { preAuthSessionId, linkCode } = code;
    return statusOf(await core.post('/recipe/signinup/code/consume', { preAuthSessionId, linkCode }, importing));
  };
  t.equal(await consumedAfter(90_001), 'RESTART_FLOW_ERROR');
  t.same((await core.get('/users/count')).json(), { status: 'OK', count: 0 }, 'nobody was created');
  t.equal(await consumedAfter(90_000), 'OK');
});

t.test('codes of 15 minutes where nobody configured another life', async (t) => {
  const core = await startCore(t);
  t.match((await core.post('/recipe/signinup/code', { email: 'ada@example.com' }, importing)).json(), {
    codeLifetime: 900_000,
  });
});

t.test('a token does not tell which API key asked for it', async (t) => {
  const apiKeys = ['first-key-of-twenty-characters', 'other-key-of-twenty-characters'];
  const emulator = await startCoreEmulator({
    host: '127.0.0.1',
    port: 0,
    rotateEveryMs: 604_800_000,
    apiKeys,
    now: () => 1_700_000_000_000,
  });
  t.teardown(() => emulator.close());
  const call = {
    algorithm: 'RS256',
    jwksDomain: 'https://api.example.com',
    payload: { sub: 'checkout' },
    validity: 300,
    useStaticSigningKey: false,
  };
  const [one, other] = await Promise.all(
    apiKeys.map(async (key) => {
      return (await connectCore(emulator.url, { 'api-key': key }).post('/recipe/jwt', call)).json()['jwt'];
    }),
  );
  t.match(one, /^eyJ/);
  t.equal(one, other, 'byte for byte');
});
