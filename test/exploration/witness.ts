/** The promises, as what may never be seen. */
import { attemptName, type Attempt, type Preset, type State, type Told } from './model.js';

export interface Witness {
  /** An attempt got the key, of the state before. */
  readonly reserved: (state: State, index: number, fence: number) => readonly string[];
  /** A request is sent on, of the state before. */
  readonly sent: (state: State, index: number) => readonly string[];
  /** The receiver acted, of the state after. */
  readonly acted: (state: State, index: number) => readonly string[];
  /** A caller is told something, of the state before. */
  readonly told: (state: State, index: number, told: Told) => readonly string[];
  /** Notes the first answer that was shown. */
  readonly shows: (state: State, told: Told) => State;
}

/** Of a key whose answer is kept nobody who asks the same is told this. */
const isTaken: ReadonlySet<Told['kind']> = new Set(['in progress', 'unknown', 'not replayable']);

/** Whether it is known of an attempt, and has been written down, that it came to nothing. */
function didNothing({ phase, request, nothingDone, strays }: Attempt): boolean {
  return (
    phase === 'idle' ||
    (phase === 'done' && (request === 'none' || nothingDone) && strays.every(({ kind }) => kind !== 'release'))
  );
}

export function createWitness(preset: Preset): Witness {
  const deduplicates = preset.receiver === 'deduplicates';

  return { reserved, sent, acted, told, shows };

  /** Each that gets the key gets a higher fence than all before it that may be sent on, whatever became of them. */
  function reserved(state: State, index: number, fence: number): readonly string[] {
    if (preset.keyless === true || state.lost) return [];
    return state.attempts.flatMap((other, at) =>
      at === index || other.fence < fence || (other.request === 'none' && !other.confirmed)
        ? []
        : [`order: the fence of ${attemptName(index)} is not higher than that of ${attemptName(at)} before it`],
    );
  }

  function sent(state: State, index: number): readonly string[] {
    const broken: string[] = [];
    const name = attemptName(index);
    state.attempts.forEach((other, at) => {
      if (at === index || other.request === 'none') return;
      if (preset.keyless !== true) {
        if (!deduplicates && !state.lost && !other.nothingDone) {
          broken.push(`once: ${name} is sent, and ${attemptName(at)} may have run`);
        }
      }
      if (tokenOf(index) !== null && tokenOf(index) === tokenOf(at)) {
        broken.push(`single use: ${name} is sent with the token of ${attemptName(at)}`);
      }
    });
    return broken;
  }

  function acted(state: State, index: number): readonly string[] {
    const broken: string[] = [];
    const me = attemptOf(state, index);
    if (preset.keyless !== true && state.effects > 1 && (deduplicates || !state.lost)) {
      broken.push(`once: ${attemptName(index)} runs what ran before`);
    }
    if (me.told?.kind === 'not sent') {
      broken.push(`truth: ${attemptName(index)} runs, and its caller was told that nothing was sent`);
    }
    return broken;
  }

  function told(state: State, index: number, what: Told): readonly string[] {
    const broken: string[] = [];
    const name = attemptName(index);
    const { request, acted: hasActed } = attemptOf(state, index);
    const isSteady = state.left.failover === (preset.budgets.failover ?? 0);
    if (isSteady && isTaken.has(what.kind) && state.kept !== null && isSame(index, state.kept)) {
      broken.push(`replay: ${name} is told ${what.kind}, and "${state.kept}" is kept`);
    }
    if (isSteady && what.kind === 'unknown' && state.resolved === 'committed') {
      broken.push(`doubt: ${name} is told that it is in doubt, and it was resolved`);
    }
    // Two doubts are false, and safe: a copy of a reserve that comes after its release reserves anew, which no client
    // of ours makes, for it sends nothing twice; and a mark that comes after an operator and another attempt freed the
    // key cannot tell that from a loss.
    const isExact = isSteady && (preset.budgets.doubled ?? 0) === 0 && state.resolved === null;
    if (
      isExact &&
      what.kind === 'unknown' &&
      !state.counted.unknown &&
      state.attempts.every((other, at) => at === index || didNothing(other))
    ) {
      broken.push(`doubt: ${name} is told that it is in doubt, and nothing can have run`);
    }
    switch (what.kind) {
      case 'not sent':
        if (request === 'flying' || hasActed) broken.push(`truth: ${name} is told that nothing was sent, and it was`);
        break;
      case 'answer':
      case 'replay': {
        if (what.kind === 'answer' && what.status !== 201) break;
        const ranBy = state.attempts.findIndex((other, at) => other.acted && what.text === `ran by ${attemptName(at)}`);
        if (ranBy === -1) broken.push(`truth: ${name} is shown "${what.text}", which nobody did`);
        else if (!isSame(index, what.text)) broken.push(`replay: ${name} is shown the answer to another request`);
        if (preset.keyless !== true && !state.lost && state.shown !== null && state.shown !== what.text) {
          broken.push(`replay: ${name} is shown "${what.text}" after "${state.shown}"`);
        }
        break;
      }
      case 'not replayable':
        if (state.effects === 0) broken.push(`truth: ${name} is told that it ran, and nothing did`);
        break;
      case 'in doubt':
      case 'cut off':
        if (request === 'none') broken.push(`truth: ${name} is told that it may have run, and it was not sent`);
        break;
      case 'mismatch':
        if (preset.requests.every(({ fingerprint }) => fingerprint === preset.requests[index]?.fingerprint)) {
          broken.push(`replay: ${name} is told mismatch`);
        }
        break;
      case 'in progress':
      case 'unknown':
      case 'token replayed':
        break;
    }
    return broken;
  }

  function shows(state: State, what: Told): State {
    const isResult = (what.kind === 'answer' && what.status === 201) || what.kind === 'replay';
    return isResult && state.shown === null ? { ...state, shown: what.text } : state;
  }

  function isSame(index: number, text: string): boolean {
    return preset.requests.some(
      ({ fingerprint }, at) =>
        text === `ran by ${attemptName(at)}` && fingerprint === preset.requests[index]?.fingerprint,
    );
  }

  function tokenOf(index: number): string | null {
    return preset.requests[index]?.token ?? null;
  }
}

function attemptOf(state: State, index: number): Attempt {
  const attempt = state.attempts[index];
  if (attempt === undefined) throw new Error(`there is no attempt ${index}`);
  return attempt;
}
