/** Replies that nobody asked for: whatever comes behind one is displaced, and no call may take what is another's. */
import t from 'tap';
import type { StoredResponse } from '../../../../src/decision/idempotency/record.js';
import { startRelay } from '../../../support/tcp-relay.js';
import { startRedis } from '../../../support/redis-server.js';
import { acquire, freshAttempt, freshScope, reserveOf } from '../../store-commands.js';
import { openStore, redisSettings } from '../redis-store.js';

const keys = Array.from({ length: 20 }, (_, index) => ({ scope: { ...freshScope(), token: null }, text: `k${index}` }));

const response = (text: string): StoredResponse => ({ status: 201, headers: ['X', text], body: Buffer.from(text) });

t.test('no call gets the reply to another one', async (t) => {
  const { port } = await startRedis(t);
  const relay = await startRelay(t, port);
  const { store, log, up } = openStore(t, redisSettings(relay.port));
  await up();
  for (const { scope, text } of keys) {
    const attempt = freshAttempt();
    const fence = await acquire(store, scope, reserveOf(attempt));
    const settled = { state: 'completed', response: response(text), retentionMs: 60_000 } as const;
    const completed = await store.complete(scope, { attempt, fence, fingerprint: 'f', ...settled });
    t.same(completed, { ok: true, value: 'completed' });
  }
  let [own, refused] = [0, 0];
  let last: Buffer = Buffer.from(':1\r\n');
  relay.alter((answer) => (last = answer));
  for (let round = 0; round < 60; round += 1) {
    // What was answered last comes once more, before the next or in its midst; or what nobody asked.
    const strays = [last, Buffer.from('+OK\r\n'), Buffer.from('*2\r\n$3\r\nabc\r\n*1\r\n$1\r\n1\r\n')];
    const ask = async ({ scope, text }: (typeof keys)[number]): Promise<void> => {
      const answer = await store.reserve(scope, reserveOf(freshAttempt()));
      if (!answer.ok) return void (refused += 1);
      t.match(answer.value.reserved, { kind: 'replayed', response: response(text) });
      own += 1;
    };
    const half = Math.floor(keys.length / 2);
    await Promise.all(keys.slice(0, half).map(ask));
    relay.inject(strays[round % 3] as Buffer);
    await Promise.all(keys.slice(half).map(ask));
    await up();
  }
  t.ok(own >= 600, `${String(own)} of 1,200 got their own, ${String(refused)} none`);
  t.ok(refused > 0, 'some were displaced');
  t.match(log.lines.join('\n'), /the server answers what was not asked/);
});
