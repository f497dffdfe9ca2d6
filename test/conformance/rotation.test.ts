/** Keys that rotate under load. `rotation.long.test.ts` does the same with 10,000 requests. */
import t from 'tap';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { rotateUnderLoad } from './rotation.js';

t.test('while keys rotate every second, each published before it signs, nobody is wrongly refused', async (t) => {
  const report = await rotateUnderLoad(t, { requests: 500, durationMs: 3_500, rotateEvery: '1s' });
  t.same([report.wronglyRefused, report.wronglyAccepted], [[], []]);
  t.ok(report.accepted > 400, `${String(report.accepted)} of 500 were accepted`);
  t.ok(report.keys >= 2, `${String(report.keys)} keys signed`);
  t.ok(report.fetches > report.keys, `${String(report.fetches)} key sets were fetched`);
});

interface Status {
  readonly issuers: readonly { readonly keys: readonly { readonly key_id: string }[] }[];
}

t.test('a key that left the fetched set stops working with that fetch', async (t) => {
  const [first, second] = [rsaKey('d-1'), rsaKey('d-2')];
  const jwks = await startJwksServer(t, { keys: [first] });
  const config = { issuers: { core: { jwks: { min_age: '100ms', max_age: '200ms', cooldown: '100ms' } } } };
  const proxy = await startProxyProcess(t, { jwks, key: first, config });
  const statusWith = async (key: typeof first): Promise<number> =>
    (await proxy.request({ path: '/orders', headers: { Authorization: `Bearer ${mintToken({ key })}` } })).status;
  const fetchedKeys = async (): Promise<readonly string[]> => {
    const { issuers } = JSON.parse((await proxy.admin('/status')).text) as Status;
    return issuers.flatMap(({ keys }) => keys.map(({ key_id: keyId }) => keyId));
  };
  t.equal(await statusWith(first), 200);
  for (const [before, after] of [
    [first, second],
    [second, first],
    [first, second],
  ] as const) {
    jwks.setKeys([before, after]);
    await until('the next key is there', async () => (await fetchedKeys()).includes(after.keyId));
    t.same([await statusWith(before), await statusWith(after)], [200, 200], 'both while both are published');
    jwks.setKeys([after]);
    await until('the key has left', async () => !(await fetchedKeys()).includes(before.keyId));
    t.same([await statusWith(before), await statusWith(after)], [401, 200], 'from that fetch on');
  }
});
