/**
 * Everything that can happen next. The proxy's part follows `proxy/reserving`: reserve, gate, send, settle, answer;
 * what cannot be written is offered again. What is decided, the real functions decide.
 */
import type { Reserved } from '../../src/decision/idempotency/record.js';
import type { Settlement, UpstreamOutcome } from '../../src/decision/idempotency/settlement.js';
import type { Machine } from './machine.js';
import {
  attemptName,
  backMs,
  jumpMs,
  leaseMs,
  markerTtlMs,
  nowMs,
  retentionMs,
  shifted,
  textOf,
  upstreamMs,
  type Answer,
  type Attempt,
  type Command,
  type Disturbance,
  type Preset,
  type State,
  type Told,
} from './model.js';
import type { ModelStore, StoreReply, StoreCommand } from './store.js';
import { createWitness } from './witness.js';
import {
  aged,
  commandOf,
  isRefusal,
  offering,
  releaseOn,
  responseOf,
  spent,
  toldBy,
  toldOf,
  withAttempt,
} from './state-changes.js';

export interface Step {
  readonly label: string;
  readonly to: State;
  /** Promises that it breaks. */
  readonly broken: readonly string[];
}

/** What the proxy leaves out, for a search that has to find it. */
export type Lapse = 'gate' | 'withdrawal' | 'doubt' | 'floor' | 'clock' | 'plain overtaken' | 'patience' | 'offering';

export interface Exploring {
  readonly preset: Preset;
  readonly machine: Machine;
  readonly store: ModelStore;
  readonly lapses: ReadonlySet<Lapse>;
}

const longestLag = 2;

export function createSteps({ preset, machine, store, lapses }: Exploring): (state: State) => readonly Step[] {
  const witness = createWitness(preset);
  const deduplicates = preset.receiver === 'deduplicates';

  return (state) => {
    const steps: Step[] = [];
    const add = (label: string, to: State, broken: readonly string[] = []): void =>
      void steps.push({ label, to, broken });
    state.attempts.forEach((attempt, index) =>
      stepsOf(state, attempt, index, (label, to, broken) => add(`${attemptName(index)} ${label}`, to, broken)),
    );
    surroundings(state, add);
    return steps;
  };

  type Add = (label: string, to: State, broken?: readonly string[]) => void;

  function stepsOf(state: State, attempt: Attempt, index: number, add: Add): void {
    const put = (change: Partial<Attempt>, from = state): State => withAttempt(from, index, change);
    const has = (what: Disturbance): boolean => state.left[what] > 0;
    const tell = (from: State, told: Told): readonly [State, readonly string[]] => {
      const to = withAttempt(from, index, { phase: 'done', told, tells: null });
      return [witness.shows(to, told), witness.told(from, index, told)];
    };

    switch (attempt.phase) {
      case 'idle':
        // Equal requests are interchangeable: the first of them asks first.
        if (
          !state.attempts.some(
            (other, before) => before < index && other.phase === 'idle' && isSameRequest(before, index),
          )
        ) {
          if (isBeforeFloor(state, index)) {
            add('is refused: its token is from before the fail-over', ...tell(state, { kind: 'not sent' }));
          } else add('asks', put({ phase: 'reserving' }));
        }
        break;
      case 'reserving': {
        const reserved = run(state, index, { kind: 'reserve' });
        const answer = reserved.answer as Reserved;
        if (answer.kind === 'acquired') {
          const { fence, takenOver } = answer;
          const noticed = state.jumped && !lapses.has('clock');
          const acquired: Partial<Attempt> = { phase: 'acquired', fence, takenOver, noticed };
          const broken = witness.reserved(state, index, fence);
          add('reserves', confirmed(put({ ...acquired, confirmed: true }, reserved.state)), broken);
          if (has('unconfirmed')) {
            add(
              'reserves, unconfirmed',
              spent(put({ ...acquired, confirmed: false }, reserved.state), 'unconfirmed'),
              broken,
            );
          }
        } else add(`is told ${answer.kind}`, ...tell(reserved.state, toldBy(answer)));
        if (has('doubled')) {
          // The copy arrives later; the first is answered as above.
          add('reserves twice', spent(put({ strays: [...attempt.strays, { kind: 'reserve' }] }), 'doubled'));
        }
        if (has('late')) {
          const [told, broken] = tell(put({ strays: [...attempt.strays, { kind: 'reserve' }] }), { kind: 'not sent' });
          const owes: Partial<Attempt> =
            isKeyless() || lapses.has('withdrawal') ? {} : { phase: 'settling', settlement: { kind: 'release' } };
          add('waits in vain', spent(withAttempt(told, index, owes), 'late'), broken);
        }
        break;
      }
      case 'acquired':
        dispatch(state, attempt, index, false, add);
        if (has('gone')) dispatch(spent(state, 'gone'), attempt, index, true, add);
        break;
      case 'sent':
        if (attempt.answer !== null) {
          conclude('is answered', state, {
            kind: 'whole',
            response: responseOf(attempt.answer),
            outcome: attempt.answer.outcome,
          });
        }
        if (has('broken')) {
          const from = spent(state, 'broken');
          if (attempt.answer !== null) {
            conclude('is answered in part', from, {
              kind: 'cut_off',
              status: attempt.answer.status,
              outcome: attempt.answer.outcome,
            });
          }
          conclude('is not answered', from, { kind: 'no_status' });
          if (attempt.request === 'flying') {
            conclude('does not reach the receiver', put({ request: 'over' }, from), { kind: 'not_dispatched' });
          }
        }
        break;
      case 'settling': {
        if (attempt.settlement === null) break;
        const settled = run(state, index, attempt.settlement);
        const noted = count(settled.state, settled.answer, attempt.settlement);
        add(`settles: ${settled.answer as string}`, ...finish(noted));
        if (has('doubled')) {
          const [to, broken] = finish(put({ strays: [...attempt.strays, attempt.settlement] }, noted));
          add('settles twice', spent(to, 'doubled'), broken);
        }
        if (has('late')) {
          const [to, broken] = finish(put({ strays: [...attempt.strays, attempt.settlement] }));
          add('settles in vain', spent(withAttempt(to, index, { phase: 'owing' }), 'late'), broken);
        }
        break;
      }
      case 'owing': {
        add('tries again', put({ phase: 'settling' }));
        // It goes on for longer than a fail-over takes. What is given up is a doubt only where its record is there:
        // where that is lost, whoever asks next gets the key.
        const isThere = store.slot(state.store).record?.owner === attemptName(index);
        if (attempt.ageMs >= leaseMs && attempt.settlement?.kind === 'mark' && (isThere || lapses.has('patience'))) {
          add('gives up', {
            ...put({ phase: 'done', settlement: isThere ? null : attempt.settlement }),
            counted: { ...state.counted, unknown: state.counted.unknown || isThere },
          });
        }
        break;
      }
      case 'offering': {
        if (attempt.settlement === null) break;
        const offered = run(state, index, attempt.settlement);
        add(
          `offers again: ${offered.answer as string}`,
          withAttempt(count(offered.state, offered.answer, attempt.settlement), index, { phase: 'done' }),
        );
        break;
      }
      case 'done':
      case 'dead':
        break;
    }
    if (has('crash') && attempt.phase !== 'idle' && attempt.phase !== 'done' && attempt.phase !== 'dead') {
      const pending: readonly Command[] =
        attempt.phase === 'reserving'
          ? [{ kind: 'reserve' }]
          : attempt.phase === 'settling' && attempt.settlement !== null
            ? [attempt.settlement]
            : [];
      add(
        'is killed',
        spent(put({ phase: 'dead', strays: [...attempt.strays, ...pending], settlement: null, tells: null }), 'crash'),
      );
    }
    attempt.strays.forEach((stray, place) => {
      const strays = attempt.strays.filter((_, other) => other !== place);
      add(`${stray.kind} arrives late`, put({ strays }, run(state, index, stray).state));
    });
    if (attempt.request === 'flying') receive(state, attempt, index, add);

    function conclude(label: string, from: State, outcome: UpstreamOutcome): void {
      const trustsOutcome = preset.receiver !== 'plain';
      const settlement =
        lapses.has('doubt') && outcome.kind === 'no_status'
          ? ({ kind: 'release' } as const)
          : machine.settle(outcome, { releaseOn, trustsOutcome, takenOver: attempt.takenOver, isGrpc: false });
      const told = toldOf(outcome);
      const refused = attempt.answer !== null && isRefusal(attempt.answer);
      const nothingDone =
        attempt.nothingDone || outcome.kind === 'not_dispatched' || (outcome.kind !== 'no_status' && refused);
      settleWith(label, from, settlement, told, nothingDone);
    }

    function settleWith(label: string, from: State, settlement: Settlement, tells: Told, nothingDone: boolean): void {
      const kept = { nothingDone, answer: null };
      if (isKeyless()) add(label, ...tell(withAttempt(from, index, kept), tells));
      else {
        add(label, withAttempt(from, index, { ...kept, phase: 'settling', settlement: commandOf(settlement), tells }));
      }
    }

    /** Tells the caller, once; what was told before stays. */
    function finish(from: State): readonly [State, readonly string[]] {
      const at = from.attempts[index];
      if (at?.tells === null || at === undefined) return [withAttempt(from, index, { phase: 'done' }), []];
      return tell(from, at.tells);
    }

    /** Hands it to the receiver, or lets it be: what the gate refuses is released. */
    function dispatch(
      from: State,
      { fence, ageMs, confirmed: isConfirmed }: Attempt,
      _index: number,
      callerGone: boolean,
      addStep: Add,
    ): void {
      const isRefused =
        !lapses.has('gate') &&
        machine.checkDispatch({
          sinceReserveMs: ageMs,
          leaseMs,
          upstreamMs,
          confirmedReplicas: isConfirmed ? 1 : 0,
          neededReplicas: 1,
          nowMs: 0,
          tokenExpiresAtMs: 1,
          clockSkewMs: 0,
          callerGone,
        }) !== null;
      if (isRefused || isBeforeFloor(from, index)) {
        const settlement = machine.settle(
          { kind: 'not_dispatched' },
          { releaseOn, trustsOutcome: preset.receiver !== 'plain', takenOver: attempt.takenOver, isGrpc: false },
        );
        settleWith(
          callerGone ? 'is left by its caller' : 'is not let through',
          from,
          settlement,
          { kind: 'not sent' },
          true,
        );
      } else if (!callerGone) {
        addStep(
          `is sent on, fence ${fence - nowMs}`,
          withAttempt(from, index, { phase: 'sent', request: 'flying' }),
          witness.sent(from, index),
        );
      }
    }
  }

  /** The receiver acts on a request, or refuses it; it may do so when nobody waits any more. */
  function receive(state: State, attempt: Attempt, index: number, add: Add): void {
    const waits = attempt.phase === 'sent';
    const answered = (from: State, answer: Answer, acted: boolean): State =>
      withAttempt(from, index, { request: 'over', acted, answer: waits ? answer : null });
    const outcome = (word: string): string | null => (preset.receiver === 'plain' ? null : word);
    if (deduplicates) {
      const { row } = state;
      if (attempt.fence < row.fence) {
        // The receiver rolls back: it changes nothing, and says so.
        const overtaken: Answer = {
          status: 409,
          text: 'overtaken',
          outcome: lapses.has('plain overtaken') ? null : 'not-applied',
        };
        add('is overtaken at the receiver', answered(state, overtaken, false));
        return;
      }
      const seen = { ...state, row: { ...row, fence: attempt.fence } };
      if (row.answer !== null) {
        add('is answered from the table', answered(seen, row.answer, false));
        return;
      }
      if (state.left.refused > 0) {
        add('is refused', spent(answered(seen, { status: 422, text: 'no', outcome: 'not-applied' }, false), 'refused'));
      }
      const answer: Answer = { status: 201, text: `ran by ${attemptName(index)}`, outcome: 'committed' };
      add('is acted on', ...acts({ ...answered(seen, answer, true), row: { fence: attempt.fence, answer } }, index));
      return;
    }
    if (state.left.refused > 0) {
      add(
        'is refused',
        spent(answered(state, { status: 429, text: 'no', outcome: outcome('not-applied') }, false), 'refused'),
      );
    }
    add(
      'is acted on',
      ...acts(
        answered(state, { status: 201, text: `ran by ${attemptName(index)}`, outcome: outcome('committed') }, true),
        index,
      ),
    );
  }

  function acts(state: State, index: number): readonly [State, readonly string[]] {
    const to = { ...state, effects: Math.min(2, state.effects + 1) };
    return [to, witness.acted(to, index)];
  }

  /** What happens to nobody in particular. */
  function surroundings(state: State, add: Add): void {
    const mayBeSent = state.attempts.some(
      ({ phase, ageMs }) => ageMs < leaseMs && (phase === 'reserving' || phase === 'acquired' || phase === 'sent'),
    );
    const isBegun = state.attempts.some(({ phase }) => phase !== 'idle');
    if (!isBegun) return;
    if (state.left.lease > 0) add('a lease passes', spent(timeAt(aged(state, leaseMs), leaseMs), 'lease'));
    if (state.left.back > 0) add('the clock of the store goes back', spent(timeAt(state, -backMs), 'back'));
    if (state.left.forwards > 0) add('the clock of the store goes forwards', spent(timeAt(state, leaseMs), 'forwards'));
    if (state.left.jump > 0) {
      add('the clock of the store jumps', spent({ ...timeAt(state, jumpMs), jumped: true }, 'jump'));
    }
    if (state.left.failover > 0) {
      for (const replica of state.replicas) {
        const attempts = lapses.has('offering') ? state.attempts : state.attempts.map(offering);
        const forgot = {
          ...state,
          attempts,
          store: replica,
          replicas: [],
          floor: true,
          lost: state.lost || preset.forgets === true,
        };
        add('the store falls back', spent(forgot, 'failover'));
      }
    }
    if (state.left.resolve > 0 && !mayBeSent) resolve(state, add);
  }

  /**
   * An operator who found out, once every lease is over: whoever says that it was not applied has made sure that it
   * never will be.
   */
  function resolve(state: State, add: Add): void {
    const word = state.effects > 0 ? 'committed' : 'not-applied';
    const resolved = store.run(state.store, { kind: 'resolve', command: word });
    if (resolved.reply !== 'resolved') return;
    const attempts =
      word === 'committed'
        ? state.attempts
        : state.attempts.map((attempt): Attempt =>
            attempt.request === 'none' ? attempt : { ...attempt, request: 'over', nothingDone: true },
          );
    add(
      `an operator resolves: ${word}`,
      spent(stored({ ...state, attempts, resolved: word }, resolved.store), 'resolve'),
    );
  }

  function run(state: State, index: number, command: Command): { readonly state: State; readonly answer: StoreReply } {
    const ran = store.run(state.store, storeCommand(state, index, command));
    return { state: stored(state, ran.store), answer: ran.reply };
  }

  function stored(state: State, next: number): State {
    if (next === state.store) return state;
    const replicas =
      state.left.failover > 0 ? [...new Set([state.store, ...state.replicas])].slice(0, preset.lag ?? longestLag) : [];
    return { ...state, store: next, replicas };
  }

  function storeCommand(state: State, index: number, command: Command): StoreCommand {
    const attempt = attemptName(index);
    const { fence } = state.attempts[index] ?? { fence: 0 };
    const { fingerprint } = preset.requests[index] ?? { fingerprint: '' };
    switch (command.kind) {
      case 'reserve': {
        const key = isKeyless() ? null : { fingerprint, route: 'r', leaseMs, retentionMs, takesOver: deduplicates };
        return { kind: 'reserve', command: { attempt, key, markerTtlMs: hasToken(index) ? markerTtlMs : null } };
      }
      case 'release':
        return { kind: 'release', command: { attempt } };
      case 'mark':
        return { kind: 'mark', command: { attempt, fence, fingerprint, route: 'r', retentionMs } };
      case 'complete': {
        const { state: kept, status, text } = command;
        const response = { status, headers: [], body: Buffer.from(text) };
        return { kind: 'complete', command: { attempt, fence, fingerprint, state: kept, response, retentionMs } };
      }
    }
  }

  /** Which replicas lack something, once as many as are asked for have confirmed it. */
  function confirmed(state: State): State {
    return preset.forgets === true ? state : { ...state, replicas: [] };
  }

  function timeAt(state: State, ms: number): State {
    const { attempts, row } = shifted({ attempts: state.attempts, row: state.row }, -ms);
    return {
      ...state,
      attempts,
      row,
      store: store.after(state.store, ms),
      replicas: state.replicas.map((replica) => store.after(replica, ms)),
    };
  }

  function count(state: State, answer: StoreReply, settlement: Command): State {
    const { counted } = state;
    const isKept =
      settlement.kind === 'complete' &&
      settlement.state === 'completed' &&
      answer === 'completed' &&
      state.resolved === null;
    if (isKept) return { ...state, kept: settlement.text };
    if (answer === 'fenced' && !deduplicates) return { ...state, counted: { ...counted, twice: true } };
    if (answer === 'repaired') return { ...state, counted: { ...counted, repaired: true } };
    if (answer === 'unknown') return { ...state, counted: { ...counted, unknown: true } };
    return state;
  }

  function isBeforeFloor({ floor, attempts }: State, index: number): boolean {
    return (floor || attempts[index]?.noticed === true) && hasToken(index) && !lapses.has('floor');
  }

  function hasToken(index: number): boolean {
    return (preset.requests[index]?.token ?? null) !== null;
  }

  function isKeyless(): boolean {
    return preset.keyless === true;
  }

  function isSameRequest(one: number, other: number): boolean {
    return textOf(preset.requests[one]) === textOf(preset.requests[other]);
  }
}
