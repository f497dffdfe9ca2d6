import fc from 'fast-check';
import { endings, type Ending } from './schedule-receiver.js';
import { routeNames, type Answer, type Ask } from './schedule-request.js';
import { links, type Link } from './schedule-store.js';
import { createSimulation, type Asked, type Proxy, type Simulation } from './schedule-simulation.js';

/** What may happen next. A `pick` chooses among what there is at that moment. */
export type Step =
  | { readonly kind: 'ask'; readonly proxy: number; readonly ask: Ask }
  | { readonly kind: 'end'; readonly pick: number; readonly ending: Ending }
  | { readonly kind: 'execute'; readonly pick: number }
  | { readonly kind: 'leave'; readonly pick: number }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'link'; readonly proxy: number; readonly link: Link }
  | { readonly kind: 'deliver'; readonly proxy: number }
  | { readonly kind: 'freeze'; readonly proxy: number }
  | { readonly kind: 'thaw'; readonly proxy: number }
  | { readonly kind: 'crash'; readonly proxy: number }
  | { readonly kind: 'break-off'; readonly proxy: number };

const index = fc.nat({ max: 1 });
const pick = fc.nat({ max: 5 });

/** Mostly the same write again: that is what may go wrong. */
const askOf = (routes: readonly Ask['route'][]): fc.Arbitrary<Ask> =>
  fc.record({
    route: fc.constantFrom(...routes),
    subject: fc.constantFrom('checkout', 'checkout', 'checkout', 'migration'),
    key: fc.constantFrom(0, 0, 0, 1),
    body: fc.constantFrom(0, 0, 0, 0, 1),
    token: fc.nat({ max: 5 }),
  });

const stepOf = (routes: readonly Ask['route'][]): fc.Arbitrary<Step> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('ask' as const), proxy: index, ask: askOf(routes) }) },
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant('end' as const), pick, ending: fc.constantFrom(...endings) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('execute' as const), pick }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), pick }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('advance' as const),
        ms: fc.constantFrom(0, 1, 200, 1_500, 6_000, 13_000, 20_000, 60_000),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('link' as const), proxy: index, link: fc.constantFrom('up', ...links) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('deliver' as const), proxy: index }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('freeze' as const), proxy: index }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('thaw' as const), proxy: index }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const), proxy: index }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('break-off' as const), proxy: index }) },
  );

/** No schedule lasts longer than the shortest retention, so that no result is forgotten within one. */
export const schedule: fc.Arbitrary<readonly Step[]> = fc
  .tuple(fc.constantFrom(...routeNames), fc.constantFrom(...routeNames))
  .chain((routes) => fc.array(stepOf(routes), { minLength: 1, maxLength: 40, size: 'max' }));

/** Says that nothing was sent, so nothing of the request may ever be run. */
const notReached: ReadonlySet<string> = new Set([
  'store_unavailable',
  'upstream_unreachable',
  'overloaded',
  'shutting_down',
]);
/** With these something was sent. */
const mayHaveActed: ReadonlySet<string> = new Set(['upstream_failed', 'upstream_timeout']);

/**
 * Runs a schedule and heals everything at its end. Returns what did not hold, of docs/guarantees.md "Promises" and what
 * callers are told.
 */
export async function violationsOf(steps: readonly Step[]): Promise<readonly string[]> {
  const violations: string[] = [];
  const check = (holds: boolean, what: string): void => {
    if (!holds) violations.push(what);
  };
  const executions = new Map<string, number>();
  const usedTokens = new Map<string, string>();
  const answers = new Map<string, string>();
  const simulation = createSimulation({
    violation: (what) => violations.push(what),
    dispatched: (asked, dispatch) => {
      check(asked.dispatches.length === 1, `${asked.id} was sent twice`);
      check(asked.answer === null, `${asked.id} was sent after its answer`);
      // What was surely not applied left nothing at the receiver that a fence could be lower than.
      const earlier = simulation.receiver.dispatches.filter(
        (other) => other !== dispatch && other.record === dispatch.record && !other.wasSurelyNothing,
      );
      check(
        earlier.every(({ fence }) => fence < dispatch.fence),
        `8: the fence of ${asked.id} is not higher than one before`,
      );
      use(asked);
    },
    executed: (asked, { record }) => {
      executions.set(record, (executions.get(record) ?? 0) + 1);
      check(executions.get(record) === 1, `1: ${nameOf(asked)} ran ${executions.get(record) ?? 0} times`);
      check(
        asked.answer?.kind !== 'refused' || !notReached.has(asked.answer.reason),
        `${asked.id} ran after it was told that it was not sent`,
      );
    },
    answered: (asked, answer) => {
      const [dispatch] = asked.dispatches;
      if (answer.kind === 'refused') {
        if (notReached.has(answer.reason)) {
          check((dispatch?.answer ?? null) === null, `${asked.id} was told ${answer.reason} and ran`);
        } else {
          check(mayHaveActed.has(answer.reason) === (dispatch !== undefined), `${asked.id} was told ${answer.reason}`);
        }
        return;
      }
      if (answer.kind === 'given' && answer.isReplayed) {
        check(dispatch === undefined, `${asked.id} was sent and got a replay`);
        use(asked);
      }
      if (answer.kind === 'given' && answer.status !== 429) sameAsBefore(asked, answer);
    },
  });
  await play(simulation, steps);
  await heal(simulation);
  for (const asked of simulation.asked) {
    if (!asked.isGone && !asked.proxy.link.isCut) check(asked.answer !== null, `${asked.id} was never answered`);
  }
  for (const proxy of simulation.proxies) {
    if (!proxy.link.isCut) check(proxy.reserving.active() === 0, 'something never ended');
  }
  await runOnce(simulation, check);
  await simulation.close();
  return violations;

  /** Property 7: of each token one attempt passes. */
  function use(asked: Asked): void {
    if (asked.route !== 'single') return;
    const token = `${asked.subject} ${asked.token}`;
    check((usedTokens.get(token) ?? asked.id) === asked.id, `7: ${token} passed twice`);
    usedTokens.set(token, asked.id);
  }

  /** Properties 3, 4 and 5: an answer is one of the receiver's to this very write, and stays. */
  function sameAsBefore(asked: Asked, { status, body }: Extract<Answer, { kind: 'given' }>): void {
    const name = nameOf(asked);
    const ranBy = simulation.asked.find(({ id }) => body === `${id} ran it`);
    check(ranBy !== undefined, `4: ${asked.id} got what no receiver said: ${body}`);
    if (ranBy !== undefined) {
      check(nameOf(ranBy) === name, `5: ${asked.id} got the answer to another write`);
      check(ranBy.body === asked.body, `5: ${asked.id} got the answer to another request`);
    }
    const text = `${status} ${body}`;
    check((answers.get(name) ?? text) === text, `3: ${name} was answered ${text} after ${answers.get(name) ?? ''}`);
    answers.set(name, text);
  }
}

async function play(simulation: Simulation, steps: readonly Step[]): Promise<void> {
  const current: Proxy[] = [simulation.startProxy(), simulation.startProxy()];
  for (const step of steps) {
    const proxy = 'proxy' in step ? current[step.proxy] : undefined;
    if (proxy !== undefined && 'proxy' in step) {
      if (step.kind === 'crash' || step.kind === 'break-off') {
        if (step.kind === 'crash') proxy.link.isCut = true;
        // A drain ends what is under way; a process that was stopped cannot.
        else if (proxy.link.isFrozen) continue;
        else proxy.reserving.abortAll();
        current[step.proxy] = simulation.startProxy();
      } else touch(simulation, proxy, step);
    } else take(simulation, step);
    await (step.kind === 'advance' ? advance(simulation, step.ms) : settled());
  }
}

function touch(
  simulation: Simulation,
  proxy: Proxy,
  step: Exclude<Extract<Step, { proxy: number }>, { kind: 'crash' | 'break-off' }>,
): void {
  switch (step.kind) {
    case 'ask':
      if (!proxy.link.isFrozen) simulation.ask(proxy, step.ask);
      return;
    case 'link':
      proxy.link.link = step.link;
      return;
    case 'deliver':
      proxy.link.deliver();
      return;
    case 'freeze':
      proxy.link.isFrozen = true;
      return;
    case 'thaw':
      proxy.thaw();
  }
}

function take(simulation: Simulation, step: Step): void {
  if (step.kind === 'end' || step.kind === 'execute') {
    const open = simulation.receiver.dispatches.filter(({ isEnded }) => !isEnded);
    const dispatch = open[step.pick % Math.max(1, open.length)];
    if (dispatch === undefined) return;
    const { link } = simulation.askedOf(dispatch).proxy;
    if (step.kind === 'execute') simulation.receiver.execute(dispatch);
    // Who is stopped hears it later.
    else if (!link.isFrozen) simulation.receiver.end(dispatch, step.ending, !link.isCut);
  } else if (step.kind === 'leave') {
    const waiting = simulation.asked.filter(
      ({ answer, isGone, proxy }) => answer === null && !isGone && !proxy.link.isFrozen,
    );
    waiting[step.pick % Math.max(1, waiting.length)]?.handle.leave();
  }
}

/** Everything works again, every request is answered and every time limit passes. */
async function heal(simulation: Simulation): Promise<void> {
  for (const { link, thaw } of simulation.proxies) {
    link.deliver();
    link.link = 'up';
    thaw();
  }
  await settled();
  for (const dispatch of simulation.receiver.dispatches) {
    simulation.receiver.end(dispatch, 'created', !simulation.askedOf(dispatch).proxy.link.isCut);
  }
  await advance(simulation, 60_000);
}

/** Property 2: where the receiver deduplicates, whoever asks until it is answered gets the effect, once. */
async function runOnce(simulation: Simulation, check: (holds: boolean, what: string) => void): Promise<void> {
  const proxy = simulation.startProxy();
  const writes = new Map(
    simulation.asked.filter(({ route }) => route === 'deduplicates').map((asked) => [nameOf(asked), asked]),
  );
  for (const [name, { route, subject, key, token }] of writes) {
    const tries = [0, 1].map((body) => simulation.ask(proxy, { route, subject, key, body, token }));
    await settled();
    for (const dispatch of simulation.receiver.dispatches) simulation.receiver.end(dispatch, 'created', true);
    await settled();
    // One of the two is the request that the key stands for, or both were free to be.
    const won = tries.find(({ answer }) => answer?.kind === 'given' && answer.status !== 429);
    const record = tries.map(({ dispatches: [dispatch] }) => dispatch?.record).find((id) => id !== undefined);
    const isKept = tries.some(
      ({ answer }) => answer?.kind === 'refused' && answer.reason === 'idempotency_not_replayable',
    );
    check(won !== undefined || isKept, `2: ${name} cannot be run to its end`);
    if (record !== undefined) {
      check(
        simulation.receiver.effects(record) === 1,
        `2: ${name} had its effect ${simulation.receiver.effects(record)} times`,
      );
    }
  }
}

async function advance(simulation: Simulation, ms: number): Promise<void> {
  let left = ms;
  // What a timer starts may set the next one.
  for (;;) {
    const next = simulation.time.due()[0];
    if (next === undefined || next > left) break;
    simulation.time.advance(next);
    left -= next;
    await settled();
  }
  simulation.time.advance(left);
  await settled();
}

/** Lets everything happen that needs no time: bodies are read, the store answers. */
async function settled(): Promise<void> {
  for (let i = 0; i < 3; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

function nameOf({ subject, route, key }: Ask): string {
  return `${subject} ${route} ${key}`;
}
