/** How long the callers' own tokens wait for which the issuer fails. */
import t from 'tap';
import { createSuspects } from '../../../src/adapters/tokens/suspects.js';
import type { TokenFailure } from '../../../src/ports/tokens.js';

type Suspects = ReturnType<typeof createSuspects>;

interface Made extends Suspects {
  readonly advance: (ms: number) => void;
  /** Milliseconds for which nothing is fetched for this token. */
  readonly restMs: (token: string) => number;
  /** Asks each 100 ms for a minute, where it may, and the issuer fails. Says how often it was asked. */
  readonly hammer: (token: string) => number;
}

const away: TokenFailure = { problem: 'away', reason: 'away', retryAfterMs: null, mayBeOfSubject: true };
const busy: TokenFailure = { ...away, retryAfterMs: 3_600_000 };

function suspects(): Made {
  let nowMs = 1_000;
  const made = createSuspects({ clock: { now: () => 0, monotonic: () => nowMs }, random: () => 0 });
  const restMs = (token: string): number => Math.max(0, (made.resting(token)?.untilMs ?? 0) - nowMs);
  const hammer = (token: string): number => {
    let asked = 0;
    for (let turn = 0; turn < 600; turn += 1) {
      if (restMs(token) === 0) {
        asked += 1;
        made.fail(away, token);
      }
      nowMs += 100;
    }
    return asked;
  };
  return { ...made, restMs, hammer, advance: (ms) => (nowMs += ms) };
}

/** A token of this caller that differs from the others by a number. */
function own(sub: string, number: number): string {
  const parts = ['{"alg":"none"}', JSON.stringify({ iss: 'i', sub, number }), 'x'];
  return parts.map((part) => Buffer.from(part).toString('base64url')).join('.');
}

t.test('a token goes on waiting as it did when its caller is known no longer, or is known now', async (t) => {
  const { hammer: ofStranger } = suspects();
  const usual = ofStranger(own('ann', 1));
  t.ok(usual < 20, String(usual));

  const forgotten = suspects();
  forgotten.succeed(own('ann', 0));
  forgotten.fail(away, own('ann', 1));
  forgotten.advance(60_000);
  for (let number = 0; number < 10_000; number += 1) forgotten.succeed(own(`caller-${String(number)}`, 0));
  const asked = forgotten.hammer(own('ann', 1));
  t.ok(asked <= usual, String(asked));

  const met = suspects();
  met.hammer(own('ann', 1));
  met.succeed(own('ann', 0));
  const more = met.hammer(own('ann', 1));
  t.ok(more < usual / 2, `${String(more)}: its failures are still in a row`);
});

t.test('however long the issuer asks to be left alone, strangers wait together for 30 s at most', async (t) => {
  const made = suspects();
  made.succeed(own('known', 0));
  made.fail(busy, own('a', 0));
  made.fail(busy, own('b', 0));
  t.equal(made.restMs(own('new', 0)), 30_000);
  t.equal(made.restMs(own('a', 0)), 300_000, 'the token itself waits for as long as the issuer says');
  t.equal(made.restMs(own('known', 1)), 0);
});

t.test('so do the next tokens of a stranger that had many', async (t) => {
  const made = suspects();
  made.succeed(own('known', 0));
  for (let number = 0; number < 10; number += 1) made.fail(busy, own('ann', number));
  t.equal(made.restMs(own('ann', 10)), 30_000);
});

t.test('a token that waits for long does not have others remembered', async (t) => {
  const made = suspects();
  made.succeed(own('known', 0));
  made.fail(busy, own('long', 0));
  made.fail(away, own('a', 0));
  made.advance(310_000);
  made.fail(away, own('a', 1));
  made.fail(away, own('b', 0));
  t.ok(made.restMs(own('new', 0)) > 0, 'a is new again, and so the strangers wait');
});
