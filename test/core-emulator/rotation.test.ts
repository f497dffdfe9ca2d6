import t from 'tap';
import { decoded, jwtCall, publishedKeyIds, startCore, type CoreClient } from './core-client.js';

const twoHoursMs = 7_200_000;

async function signingKeyId(core: CoreClient): Promise<unknown> {
  return decoded(await core.post('/recipe/jwt', JSON.stringify(jwtCall))).header['kid'];
}

t.test('rotating on demand changes the dynamic key and keeps the one before and the static one', async (t) => {
  const core = await startCore(t);
  const [first, fixed] = await publishedKeyIds(core);
  const rotated = await core.post('/emulator/rotate', '');
  t.equal(rotated.status, 200);
  t.same(Object.keys(rotated.json()), ['kid']);
  const kid = rotated.json()['kid'];
  t.not(kid, first);
  t.equal(await signingKeyId(core), kid);
  t.same(await publishedKeyIds(core), [kid, fixed, first]);
});

t.test('a replaced key is published for two hours, the longest life of what it signed', async (t) => {
  let nowMs = 1_700_000_000_000;
  const core = await startCore(t, { now: () => nowMs });
  const [first] = await publishedKeyIds(core);
  await core.post('/emulator/rotate', '');
  nowMs += twoHoursMs - 1;
  t.ok((await publishedKeyIds(core)).includes(String(first)));
  nowMs += 1;
  t.notOk((await publishedKeyIds(core)).includes(String(first)));
});

t.test('a dynamic key is published before it signs, half its interval or a minute', async (t) => {
  let nowMs = 1_700_000_000_000;
  const core = await startCore(t, { now: () => nowMs, rotateEveryMs: 5000 });
  const [first, fixed] = await publishedKeyIds(core);
  t.equal(first, 'd-1700000000000');
  nowMs += 2499;
  t.same(await publishedKeyIds(core), [first, fixed]);
  nowMs += 1;
  t.same(await publishedKeyIds(core), [first, fixed, 'd-1700000002500']);
  nowMs += 2499;
  t.equal(await signingKeyId(core), first);
  nowMs += 1;
  t.equal(await signingKeyId(core), 'd-1700000002500');
  t.same(await publishedKeyIds(core), ['d-1700000002500', fixed, first]);
});

t.test('asked late, the next key signs late: never one that nobody could have fetched', async (t) => {
  let nowMs = 1_700_000_000_000;
  const core = await startCore(t, { now: () => nowMs, rotateEveryMs: 604_800_000 });
  nowMs += 604_800_000;
  t.equal(await signingKeyId(core), 'd-1700000000000');
  t.same(
    (await publishedKeyIds(core)).filter((id) => id.startsWith('d-')),
    ['d-1700000000000', 'd-1700604800000'],
  );
  nowMs += 60_000;
  t.equal(await signingKeyId(core), 'd-1700604800000');
});

t.test('rotating on demand takes the key that waits for its time', async (t) => {
  let nowMs = 1_700_000_000_000;
  const core = await startCore(t, { now: () => nowMs, rotateEveryMs: 60_000 });
  nowMs += 30_000;
  t.same(
    (await publishedKeyIds(core)).filter((id) => id.startsWith('d-')),
    ['d-1700000000000', 'd-1700000030000'],
  );
  t.equal((await core.post('/emulator/rotate', '')).json()['kid'], 'd-1700000030000');
  t.equal(await signingKeyId(core), 'd-1700000030000');
});

t.test('the overlap is twice the life of an access token', async (t) => {
  let nowMs = 1_700_000_000_000;
  const core = await startCore(t, { now: () => nowMs, accessTokenValidityMs: 3000 });
  await core.post('/emulator/rotate', '');
  nowMs += 5999;
  t.equal((await publishedKeyIds(core)).length, 3);
  nowMs += 1;
  t.equal((await publishedKeyIds(core)).length, 2);
});

t.test('key ids differ though the clock stands still, and calls that meet share one rotation', async (t) => {
  const core = await startCore(t, { now: () => 1_700_000_000_000 });
  const together = await Promise.all([core.post('/emulator/rotate', ''), core.post('/emulator/rotate', '')]);
  const ids = new Set(['d-1700000000000', ...together.map((answer) => String(answer.json()['kid']))]);
  ids.add(String((await core.post('/emulator/rotate', '')).json()['kid']));
  t.ok(ids.size >= 3);
  t.equal(new Set(await publishedKeyIds(core)).size, (await publishedKeyIds(core)).length);
});
