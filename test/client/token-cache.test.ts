import t from 'tap';
import {
  createTokenCache,
  createTokenMint,
  type AttemptFailure,
  type TokenSupply,
} from '../../src/client/token/cache.js';
import { TokenError } from '../../src/client/token/error.js';
import type { MintedToken } from '../../src/core-api/mint-response.js';
import { accept, refuse, type Result } from '../../src/lib/result.js';
import type { Clock } from '../../src/ports/system.js';

type Outcome = Result<MintedToken, AttemptFailure>;

interface Setup {
  readonly supply: TokenSupply;
  /** Attempts so far. */
  readonly attempts: () => number;
  /** Ends the oldest attempt under way. */
  readonly end: (outcome: Outcome) => Promise<void>;
  /** Both clocks. */
  readonly advance: (ms: number) => void;
  /** The clock of the day alone, as in a machine that sleeps. */
  readonly sleep: (ms: number) => void;
}

function setup(create: typeof createTokenCache): Setup {
  let monotonicMs = 1_000;
  let dayMs = 1_800_000_000_000;
  const clock: Clock = { now: () => dayMs, monotonic: () => monotonicMs };
  const open: ((outcome: Outcome) => void)[] = [];
  let attempts = 0;
  const attempt = (): Promise<Outcome> => {
    attempts += 1;
    return new Promise((resolve) => open.push(resolve));
  };
  return {
    supply: create({ attempt, clock, random: () => 0 }),
    attempts: () => attempts,
    end: async (outcome) => {
      open.shift()?.(outcome);
      await new Promise((resolve) => setImmediate(resolve));
    },
    advance: (ms) => {
      monotonicMs += ms;
      dayMs += ms;
    },
    sleep: (ms) => {
      dayMs += ms;
    },
  };
}

/** A token of 300 s: renewed from 210 s on, given out until 270 s. */
function token(name: string): Outcome {
  const claims = { aud: 'a', sub: 's', source: 'x', token_type: 'y', permissions: [] };
  return accept({
    token: name,
    keyId: 'd-1',
    claims,
    issuer: 'https://a',
    tokenId: null,
    issuedAtS: 1_000,
    expiresAtS: 1_300,
  });
}

const away: Outcome = refuse({
  code: 'unreachable',
  reason: 'the connection was refused',
  status: null,
  retryAfterMs: null,
});

async function failure(promise: Promise<string>): Promise<TokenError> {
  const error: unknown = await promise.then(
    () => 'a token',
    (reason: unknown) => reason,
  );
  if (error instanceof TokenError) return error;
  throw new Error(String(error));
}

t.test('many callers at once cause one attempt, and get the one token', async (t) => {
  const { supply, attempts, end } = setup(createTokenCache);
  const waiting = [1, 2, 3].map(() => supply.get());
  t.equal(attempts(), 1);
  await end(token('first'));
  t.same(await Promise.all(waiting), ['first', 'first', 'first']);
  t.equal(supply.get(), supply.get(), 'a token in hand is one promise for all');
  t.equal(attempts(), 1);
});

t.test('renewed ahead of its end while it is given out; nobody waits', async (t) => {
  const { supply, attempts, end, advance } = setup(createTokenCache);
  const first = supply.get();
  await end(token('first'));
  t.equal(await first, 'first');
  advance(209_999);
  t.equal(await supply.get(), 'first');
  t.equal(attempts(), 1, 'not yet');
  advance(1);
  t.equal(await supply.get(), 'first', 'the one in hand');
  t.equal(await supply.get(), 'first');
  t.equal(attempts(), 2, 'one attempt');
  await end(token('second'));
  t.equal(await supply.get(), 'second');
});

t.test(
  'a token is given out until shortly before its end, then callers wait for the next or learn why there is none',
  async (t) => {
    const { supply, attempts, end, advance } = setup(createTokenCache);
    void supply.get();
    await end(token('first'));
    advance(269_999);
    t.equal(await supply.get(), 'first');
    const renewed = attempts();
    advance(1);
    const waiting = supply.get();
    t.equal(attempts(), renewed, 'the renewal that is under way');
    const failed = failure(waiting);
    await end(away);
    t.match(await failed, { code: 'unreachable' });
    advance(250);
    const next = supply.get();
    await end(token('second'));
    t.equal(await next, 'second');
  },
);

t.test('a machine that slept does not give out what expired meanwhile', async (t) => {
  const { supply, attempts, end, sleep } = setup(createTokenCache);
  void supply.get();
  await end(token('first'));
  sleep(269_999);
  t.equal(await supply.get(), 'first');
  sleep(1);
  const next = supply.get();
  t.equal(attempts(), 2);
  await end(token('second'));
  t.equal(await next, 'second');
});

t.test('its life counts from before the call', async (t) => {
  const { supply, attempts, end, advance } = setup(createTokenCache);
  const first = supply.get();
  advance(5_000);
  await end(token('first'));
  await first;
  advance(205_000);
  await supply.get();
  t.equal(attempts(), 2);
});

t.test('a failed renewal is not noticed while the token lives, and is tried again after a rest', async (t) => {
  const { supply, attempts, end, advance } = setup(createTokenCache);
  void supply.get();
  await end(token('first'));
  advance(210_000);
  t.equal(await supply.get(), 'first');
  await end(away);
  advance(249);
  t.equal(await supply.get(), 'first');
  t.equal(attempts(), 2, 'it rests');
  advance(1);
  t.equal(await supply.get(), 'first');
  t.equal(attempts(), 3);
  await end(away);
  advance(499);
  await supply.get();
  t.equal(attempts(), 3, 'twice as long after the second failure');
  advance(1);
  await supply.get();
  t.equal(attempts(), 4);
  await end(token('second'));
  t.equal(await supply.get(), 'second');
});

t.test('without a token callers fail at once while the Core is left alone', async (t) => {
  const { supply, attempts, end, advance } = setup(createTokenCache);
  const first = failure(supply.get());
  await end(refuse({ code: 'rate_limited', reason: 'too many', status: 429, retryAfterMs: 2_000 }));
  t.match(await first, {
    code: 'rate_limited',
    status: 429,
    retryAfterMs: 2_000,
    message: 'no service token: too many',
    name: 'TokenError',
  });
  advance(500);
  t.match(await failure(supply.get()), { code: 'rate_limited', retryAfterMs: 1_500 });
  t.equal(attempts(), 1);
  advance(1_500);
  const second = supply.get();
  t.equal(attempts(), 2);
  await end(token('second'));
  t.equal(await second, 'second');
});

t.test('a token that a receiver refused is forgotten, another one is not', async (t) => {
  const { supply, attempts, end } = setup(createTokenCache);
  void supply.get();
  await end(token('first'));
  supply.forget('other');
  t.equal(await supply.get(), 'first');
  supply.forget('first');
  const second = supply.get();
  t.equal(attempts(), 2);
  await end(token('second'));
  t.equal(await second, 'second');
  supply.forget('first');
  t.equal(await supply.get(), 'second');
  supply.clear();
  void supply.get().catch(() => undefined);
  t.equal(attempts(), 3);
});

t.test('single-use: an attempt for each call, held back together after failures', async (t) => {
  const { supply, attempts, end, advance } = setup(createTokenMint);
  const two = [supply.get(), supply.get()];
  t.equal(attempts(), 2);
  await end(token('a'));
  await end(token('b'));
  t.same(await Promise.all(two), ['a', 'b']);
  const failing = [failure(supply.get()), failure(supply.get())];
  await end(away);
  await end(away);
  t.match(await Promise.all(failing), [{ retryAfterMs: 250 }, { retryAfterMs: 250 }], 'one outage is one failure');
  t.match(await failure(supply.get()), { code: 'unreachable' });
  t.equal(attempts(), 4);
  advance(250);
  const next = supply.get();
  await end(token('c'));
  t.equal(await next, 'c');
  supply.forget('c');
  supply.clear();
});
