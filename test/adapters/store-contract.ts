import { setTimeout as sleep } from 'node:timers/promises';
import type { Test } from 'tap';
import type { Complete } from '../../src/decision/idempotency/record.js';
import type { ReservationScope } from '../../src/decision/idempotency/scope.js';
import type { ReservationStore } from '../../src/ports/idempotency.js';
import { acquire, freshAttempt, freshScope, markOf, reserveOf } from './store-commands.js';

const response = {
  status: 201,
  headers: ['Content-Type', 'application/json', 'X-Ünicode', 'ÿ'],
  body: Buffer.from([0, 255, 10, 13, 128]),
};

function completion(attempt: string, fence: number, change: Partial<Complete> = {}): Complete {
  return { attempt, fence, fingerprint: 'f', state: 'completed', response, retentionMs: 60_000, ...change };
}

/**
 * What every store promises, whatever it keeps its records in (docs/storage.md "Keys and values", "States of a write").
 */
export function storeContract(t: Test, store: () => ReservationStore): void {
  t.test('a first reserve acquires, a second attempt finds it in progress with the time left', async (t) => {
    const scope = freshScope();
    const fence = await acquire(store(), scope, reserveOf('first'));
    t.ok(fence > 1_600_000_000_000, "the fence is the store's time at least");
    const second = await store().reserve(scope, reserveOf('second'));
    t.match(second, { ok: true, value: { reserved: { kind: 'in_progress' } } });
    const left = second.ok && second.value.reserved.kind === 'in_progress' ? second.value.reserved.retryAfterMs : 0;
    t.ok(left > 0 && left <= 60_000);
  });

  t.test('the same attempt acquires again with the same fence: a resent command is no second write', async (t) => {
    const scope = freshScope();
    const fence = await acquire(store(), scope, reserveOf('mine', {}, 60_000));
    t.equal(await acquire(store(), scope, reserveOf('mine', {}, 60_000)), fence);
  });

  t.test('a kept response comes back byte for byte, also to its owner', async (t) => {
    const scope = freshScope();
    const fence = await acquire(store(), scope, reserveOf('mine'));
    t.same(await store().complete(scope, completion('mine', fence)), { ok: true, value: 'completed' });
    for (const attempt of ['other', 'mine']) {
      const again = await store().reserve(scope, reserveOf(attempt));
      const reserved = again.ok ? again.value.reserved : null;
      if (reserved?.kind !== 'replayed') return t.fail(`not replayed: ${JSON.stringify(again)}`);
      t.equal(reserved.response.status, response.status);
      t.same(reserved.response.headers, response.headers);
      t.same(Buffer.from(reserved.response.body), response.body);
    }
    return undefined;
  });

  t.test('with a kept response comes the span of the request that got it, where that was traced', async (t) => {
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    for (const traced of [{ traceparent }, {}]) {
      const scope = freshScope();
      const fence = await acquire(store(), scope, reserveOf('mine'));
      await store().complete(scope, completion('mine', fence, { response: { ...response, ...traced } }));
      const again = await store().reserve(scope, reserveOf('next'));
      const reserved = again.ok ? again.value.reserved : null;
      t.same(reserved?.kind === 'replayed' ? reserved.response : null, { ...response, ...traced });
    }
  });

  t.test('a completion sent twice is completed once', async (t) => {
    const scope = freshScope();
    const fence = await acquire(store(), scope, reserveOf('mine'));
    await store().complete(scope, completion('mine', fence));
    const other = { ...response, status: 500 };
    t.same(await store().complete(scope, completion('mine', fence, { response: other })), {
      ok: true,
      value: 'completed',
    });
    t.match(await store().reserve(scope, reserveOf('next')), {
      value: { reserved: { kind: 'replayed', response: { status: 201 } } },
    });
  });

  t.test('guard owner: another attempt can neither complete, mark nor release', async (t) => {
    const scope = freshScope();
    const fence = await acquire(store(), scope, reserveOf('mine'));
    t.same(await store().complete(scope, completion('thief', fence)), { ok: true, value: 'fenced' });
    t.same(await store().mark(scope, markOf('thief', fence)), { ok: true, value: 'fenced' });
    t.same(await store().release(scope, { attempt: 'thief' }), { ok: true, value: 'kept' });
    t.match(await store().reserve(scope, reserveOf('second')), { value: { reserved: { kind: 'in_progress' } } });
  });

  t.test('guard fence: a completion with an older fence is fenced', async (t) => {
    const scope = freshScope();
    const fence = await acquire(store(), scope, reserveOf('mine'));
    t.same(await store().complete(scope, completion('mine', fence - 1)), { ok: true, value: 'fenced' });
    t.same(await store().mark(scope, markOf('mine', fence - 1)), { ok: true, value: 'fenced' });
  });

  t.test('guard fingerprint before state: another request learns nothing and changes nothing', async (t) => {
    const scope = freshScope();
    const fence = await acquire(store(), scope, reserveOf('mine'));
    t.match(await store().reserve(scope, reserveOf('other', { fingerprint: 'g' })), {
      value: { reserved: { kind: 'mismatch' } },
    });
    await store().complete(scope, completion('mine', fence));
    t.match(await store().reserve(scope, reserveOf('other', { fingerprint: 'g' })), {
      value: { reserved: { kind: 'mismatch' } },
    });
    t.match(await store().reserve(scope, reserveOf('same')), { value: { reserved: { kind: 'replayed' } } });
  });

  t.test(
    'guard marker: a single-use token passes one attempt only, whatever the request, and nothing is written',
    async (t) => {
      const scope = freshScope();
      await acquire(store(), scope, reserveOf('mine', {}, 60_000));
      const elsewhere = { ...scope, operation: freshScope().operation };
      t.match(await store().reserve(elsewhere, reserveOf('thief', {}, 60_000)), {
        value: { reserved: { kind: 'token_replayed' } },
      });
      t.same(await store().show(elsewhere), { ok: true, value: null });
      t.match(
        await store().reserve({ ...scope, operation: null }, { attempt: 'thief', key: null, markerTtlMs: 60_000 }),
        { value: { reserved: { kind: 'token_replayed' } } },
      );
    },
  );

  t.test('a release frees the key and leaves the token used', async (t) => {
    const scope = freshScope();
    await acquire(store(), scope, reserveOf('mine', {}, 60_000));
    t.same(await store().release(scope, { attempt: 'mine' }), { ok: true, value: 'released' });
    t.match(await store().reserve(scope, reserveOf('next', {}, 60_000)), {
      value: { reserved: { kind: 'token_replayed' } },
    });
    await acquire(store(), { ...scope, token: null }, reserveOf('next'));
  });

  t.test(
    'guard withdrawal: a late reserve never takes the key after its release, whoever had the key meanwhile',
    async (t) => {
      const late = async (scope: ReservationScope, attempt: string): Promise<void> => {
        t.match(
          await store().reserve(scope, reserveOf(attempt)),
          { ok: true, value: { reserved: { kind: 'unsupported' } } },
          attempt,
        );
        t.same(await store().show(scope), { ok: true, value: null }, `${attempt} wrote nothing`);
      };
      const release = async (scope: ReservationScope, attempt: string): Promise<unknown> =>
        store().release(scope, { attempt });

      const inTurn = freshScope();
      await acquire(store(), inTurn, reserveOf('a'));
      t.match(await store().reserve(inTurn, reserveOf('b')), { value: { reserved: { kind: 'in_progress' } } });
      t.same(await release(inTurn, 'a'), { ok: true, value: 'released' });
      for (const attempt of ['b', 'c']) t.same(await release(inTurn, attempt), { ok: true, value: 'released' });
      for (const attempt of ['c', 'b']) await late(inTurn, attempt);
      await acquire(store(), inTurn, reserveOf('d'));

      const overtaken = freshScope();
      await acquire(store(), overtaken, reserveOf('a'));
      t.same(await release(overtaken, 'b'), { ok: true, value: 'kept' });
      t.match(await store().show(overtaken), { value: { record: { state: 'pending', owner: 'a' } } });
      t.same(await release(overtaken, 'a'), { ok: true, value: 'released' });
      await late(overtaken, 'b');
      await acquire(store(), overtaken, reserveOf('d'));

      const both = freshScope();
      for (const attempt of ['a', 'b']) t.same(await release(both, attempt), { ok: true, value: 'released' });
      for (const attempt of ['a', 'b']) await late(both, attempt);
      const fence = await acquire(store(), both, reserveOf('d'));
      t.match(await store().reserve(both, reserveOf('a')), { value: { reserved: { kind: 'unsupported' } } });
      await store().mark(both, markOf('d', fence));
      t.same(await store().resolve(both, 'not-applied'), { ok: true, value: 'resolved' });
      for (const attempt of ['a', 'b']) await late(both, attempt);
      t.same(await store().complete(both, completion('d', fence)), { ok: true, value: 'repaired' });
      t.match(await store().reserve(both, reserveOf('e')), { value: { reserved: { kind: 'replayed' } } });
    },
  );

  t.test(
    'a record that its owner marked is in doubt: not run again, but its owner may still complete it',
    async (t) => {
      const scope = freshScope();
      const fence = await acquire(store(), scope, reserveOf('mine'));
      t.same(await store().mark(scope, markOf('mine', fence)), { ok: true, value: 'unknown' });
      t.match(await store().reserve(scope, reserveOf('next')), { value: { reserved: { kind: 'unknown' } } });
      t.same(await store().release(scope, { attempt: 'mine' }), { ok: true, value: 'kept' });
      t.same(
        await store().complete(
          scope,
          completion('mine', fence, {
            state: 'tombstone',
            response: { status: 502, headers: [], body: Buffer.alloc(0) },
          }),
        ),
        { ok: true, value: 'completed' },
      );
      t.match(await store().reserve(scope, reserveOf('next')), {
        value: { reserved: { kind: 'tombstone', status: 502 } },
      });
    },
  );

  t.test(
    'a lease that is over leaves the write in doubt; an upstream that deduplicates takes it over with a higher fence',
    async (t) => {
      const scope = freshScope();
      const fence = await acquire(store(), scope, reserveOf('slow', { leaseMs: 1 }));
      await sleep(20);
      t.match(await store().reserve(scope, reserveOf('next')), { value: { reserved: { kind: 'unknown' } } });
      const taken = await store().reserve(scope, reserveOf('next', { takesOver: true }));
      t.match(taken, { value: { reserved: { kind: 'acquired', takenOver: true } } });
      t.ok(taken.ok && taken.value.reserved.kind === 'acquired' && taken.value.reserved.fence > fence);
      t.same(await store().complete(scope, completion('slow', fence)), { ok: true, value: 'fenced' });
    },
  );

  t.test(
    'a release after the lease frees the key: that nothing was sent holds still, whoever has asked meanwhile',
    async (t) => {
      const scope = freshScope();
      const fence = await acquire(store(), scope, reserveOf('slow', { leaseMs: 1 }));
      await sleep(20);
      t.match(await store().reserve(scope, reserveOf('early')), { value: { reserved: { kind: 'unknown' } } });
      t.same(await store().release(scope, { attempt: 'slow' }), { ok: true, value: 'released' });
      t.ok((await acquire(store(), scope, reserveOf('next'))) > fence);
    },
  );

  t.test(
    'guard fence: it grows with each attempt, also within a millisecond, whatever became of the one before',
    async (t) => {
      const scope = { ...freshScope(), token: null };
      let last = 0;
      for (let index = 0; index < 20; index += 1) {
        const attempt = `attempt ${String(index)}`;
        const fence = await acquire(store(), scope, reserveOf(attempt));
        t.ok(fence > last, `${String(fence)} after ${String(last)}`);
        last = fence;
        if (index % 2 === 0) {
          t.same(await store().release(scope, { attempt }), { ok: true, value: 'released' });
          t.same(await store().show(scope), { ok: true, value: null }, 'the key is free');
          continue;
        }
        t.same(await store().mark(scope, markOf(attempt, fence)), { ok: true, value: 'unknown' });
        t.same(await store().resolve(scope, 'not-applied'), { ok: true, value: 'resolved' });
        t.same(
          await store().mark(scope, markOf(attempt, fence)),
          { ok: true, value: 'kept' },
          'a mark that comes late does not undo what an operator said',
        );
      }
    },
  );

  t.test(
    'a mark that finds its record lost writes it anew, in doubt: no retry runs, and its owner may still complete it',
    async (t) => {
      const scope = freshScope();
      t.same(await store().mark(scope, markOf('mine', 7)), { ok: true, value: 'repaired' });
      t.same(await store().mark(scope, markOf('mine', 7)), { ok: true, value: 'unknown' });
      t.match(await store().show(scope), {
        value: { record: { state: 'unknown', owner: 'mine', fence: 7, fingerprint: 'f', route: 'create-order' } },
      });
      t.match(await store().reserve(scope, reserveOf('next')), { value: { reserved: { kind: 'unknown' } } });
      t.match(await store().reserve(scope, reserveOf('next', { fingerprint: 'g' })), {
        value: { reserved: { kind: 'mismatch' } },
      });
      t.same(await store().complete(scope, completion('mine', 7)), { ok: true, value: 'completed' });
      t.match(await store().reserve(scope, reserveOf('next')), { value: { reserved: { kind: 'replayed' } } });
    },
  );

  t.test(
    'a mark that was written anew with a later fence is its attempt’s still: offered again it is no second run',
    async (t) => {
      const scope = freshScope();
      const later = await acquire(store(), scope, reserveOf('between'));
      t.same(await store().release(scope, { attempt: 'between' }), { ok: true, value: 'released' });
      t.same(await store().mark(scope, markOf('mine', later - 1)), { ok: true, value: 'repaired' });
      t.match(await store().show(scope), { value: { record: { state: 'unknown', owner: 'mine', fence: later } } });
      t.same(await store().mark(scope, markOf('mine', later - 1)), { ok: true, value: 'unknown' });
      t.same(await store().mark(scope, markOf('between', later)), { ok: true, value: 'fenced' });
      t.same(await store().complete(scope, completion('between', later)), { ok: true, value: 'fenced' });
      for (const time of ['first', 'second']) {
        t.same(await store().complete(scope, completion('mine', later - 1)), { ok: true, value: 'completed' }, time);
      }
      t.same(await store().mark(scope, markOf('mine', later - 1)), { ok: true, value: 'kept' });
      t.match(await store().reserve(scope, reserveOf('next')), { value: { reserved: { kind: 'replayed' } } });
    },
  );

  t.test(
    'a key that an operator freed stays free where a mark that was written anew with a later fence comes again',
    async (t) => {
      const scope = freshScope();
      const later = await acquire(store(), scope, reserveOf('between'));
      t.same(await store().release(scope, { attempt: 'between' }), { ok: true, value: 'released' });
      t.same(await store().mark(scope, markOf('mine', later - 1)), { ok: true, value: 'repaired' });
      t.same(await store().resolve(scope, 'not-applied'), { ok: true, value: 'resolved' });
      t.same(await store().mark(scope, markOf('mine', later - 1)), { ok: true, value: 'kept' });
      t.same(await store().show(scope), { ok: true, value: null });
      const next = await acquire(store(), scope, reserveOf('next'));
      t.ok(next > later, 'guard fence');
    },
  );

  t.test(
    'guard doubt: a takeover that is sent again is one still, and its release leaves the write in doubt',
    async (t) => {
      const scope = freshScope();
      const fence = await acquire(store(), scope, reserveOf('first'));
      await store().mark(scope, markOf('first', fence));
      for (const time of ['first', 'second']) {
        const taken = await store().reserve(scope, reserveOf('taker', { takesOver: true }));
        t.match(taken, { value: { reserved: { kind: 'acquired', takenOver: true } } }, time);
      }
      t.same(await store().release(scope, { attempt: 'taker' }), { ok: true, value: 'kept' });
      t.match(await store().reserve(scope, reserveOf('next')), { value: { reserved: { kind: 'unknown' } } });
    },
  );

  t.test('a completion that finds its record lost writes it anew', async (t) => {
    const scope = freshScope();
    t.same(await store().complete(scope, completion('mine', 7)), { ok: true, value: 'repaired' });
    t.match(await store().reserve(scope, reserveOf('next')), { value: { reserved: { kind: 'replayed' } } });
  });

  t.test('what is over its retention is gone', async () => {
    const scope = freshScope();
    const fence = await acquire(store(), scope, reserveOf('mine', {}, 1));
    await store().complete(scope, completion('mine', fence, { retentionMs: 1 }));
    await sleep(20);
    await acquire(store(), scope, reserveOf('next', {}, 1));
  });

  t.test('an operator settles what is in doubt, and only that', async (t) => {
    const scope = freshScope();
    t.same(await store().resolve(scope, 'committed'), { ok: true, value: 'absent' });
    const fence = await acquire(store(), scope, reserveOf('mine'));
    t.same(await store().resolve(scope, 'not-applied'), { ok: true, value: 'not_in_doubt' });
    await store().mark(scope, markOf('mine', fence));
    t.same(await store().resolve(scope, 'not-applied'), { ok: true, value: 'resolved' });
    const again = await acquire(store(), scope, reserveOf('again'));
    await store().mark(scope, markOf('again', again));
    t.same(await store().resolve(scope, 'committed'), { ok: true, value: 'resolved' });
    t.match(await store().reserve(scope, reserveOf('next')), { value: { reserved: { kind: 'tombstone', status: 0 } } });
  });

  t.test('a shown record says where it stands', async (t) => {
    const scope = freshScope();
    const attempt = freshAttempt();
    const fence = await acquire(store(), scope, reserveOf(attempt, { leaseMs: 5_000, retentionMs: 7_000 }));
    const shown = await store().show(scope);
    const found = shown.ok ? shown.value : null;
    t.match(found?.record, { version: 1, state: 'pending', fingerprint: 'f', owner: attempt, fence, response: null });
    t.equal((found?.record.leaseEndsAtMs ?? 0) - (found?.record.createdAtMs ?? 0), 5_000);
    t.ok(Math.abs((found?.record.expiresAtMs ?? 0) - (found?.record.createdAtMs ?? 0) - 12_000) <= 50);
  });

  t.test('200 identical requests at once: one acquires', async (t) => {
    const scope = { ...freshScope(), token: null };
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => store().reserve(scope, reserveOf(freshAttempt()))),
    );
    const kinds = answers.map((answer) => (answer.ok ? answer.value.reserved.kind : answer.error.kind));
    t.equal(kinds.filter((kind) => kind === 'acquired').length, 1);
    t.equal(kinds.filter((kind) => kind === 'in_progress').length, 199);
  });
}
