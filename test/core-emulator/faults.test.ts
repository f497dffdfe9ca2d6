import t from 'tap';
import { createFaults } from '../../src/core-emulator/faults.js';
import { freshEmail, importing, statusOf } from './contract/core-under-test.js';
import { startCore } from './core-client.js';

t.test('so many calls as asked for meet trouble, of every kind, the same for the same seed', (t) => {
  const draw = (share: number, seed: number): readonly string[] => {
    const next = createFaults({ share, seed });
    return Array.from({ length: 10_000 }, () => next() ?? 'none');
  };
  const drawn = draw(0.1, 7);
  const count = (kind: string): number => drawn.filter((one) => one === kind).length;
  t.ok(Math.abs(count('none') - 9000) < 200, String(count('none')));
  for (const kind of ['too_many_requests', 'server_error', 'cut_before', 'cut_after']) {
    t.ok(count(kind) > 150, `${kind} ${String(count(kind))}`);
  }
  t.same(draw(0.1, 7), drawn);
  t.not(draw(0.1, 8).join(), drawn.join());
  t.same(new Set(draw(0, 1)), new Set(['none']));
  t.notOk(draw(1, 1).includes('none'));
  t.end();
});

t.test('a call that meets trouble was done or not done, as the kind says', async (t) => {
  const core = await startCore(t, { faults: { share: 1, seed: 3 } });
  const seen = new Set<string>();
  for (let count = 0; count < 40; count += 1) {
    const email = freshEmail();
    const body = { thirdPartyId: 'google', thirdPartyUserId: email, email: { id: email } };
    seen.add(
      await core.post('/recipe/signinup', body, importing).then(
        (answer) => String(statusOf(answer)),
        () => 'cut',
      ),
    );
  }
  t.same([...seen].sort(), ['429 Too many requests', '500 Internal Error', 'cut']);
  t.equal((await core.get('/hello')).status, 200, 'who only looks meets none');
  t.equal((await core.get('/.well-known/jwks.json')).status, 200);
});

t.test('a connection cut after the call: it took effect', async (t) => {
  const core = await startCore(t, { faults: { share: 0.5, seed: 5 } });
  let done = 0;
  for (let count = 0; count < 60; count += 1) {
    const email = freshEmail();
    const sent = await core
      .post('/recipe/signinup', { thirdPartyId: 'g', thirdPartyUserId: email, email: { id: email } }, importing)
      .then(statusOf, () => 'cut');
    if (sent === 'OK') done += 1;
  }
  let count = 0;
  while (count === 0) {
    count = await core.get('/users/count').then(
      (answer) => (answer.status === 200 ? Number(answer.json()['count']) : 0),
      () => 0,
    );
  }
  t.ok(count > done, `${String(count)} users, of ${String(done)} that were answered`);
});
