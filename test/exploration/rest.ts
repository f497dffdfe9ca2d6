/** What has to hold of a state by itself: nobody is stuck, and when everything is over everybody knows how it ended. */
import type { Reserved } from '../../src/decision/idempotency/record.js';
import { backMs, leaseMs, retentionMs, type Preset, type State } from './model.js';
import type { ModelStore } from './store.js';

/**
 * From every content of the store a caller that asks again later gets a final answer, at most after an operator's word.
 */
export function wayOutOf(preset: Preset, store: ModelStore): (state: State) => readonly string[] {
  const takesOver = preset.receiver === 'deduplicates';
  const known = new Map<number, { readonly stuck: string | null; readonly fence: number | null }>();

  return ({ store: content, row }) => {
    let found = known.get(content);
    if (found === undefined) known.set(content, (found = look(content)));
    const broken = found.stuck === null ? [] : [`way out: ${found.stuck}`];
    // What is overtaken by nobody is never run.
    if (takesOver && found.fence !== null && found.fence < row.fence) {
      broken.push('way out: the next attempt has a lower fence than the receiver saw');
    }
    return broken;
  };

  function look(content: number): { readonly stuck: string | null; readonly fence: number | null } {
    const now = ask(content);
    const later = store.after(content, leaseMs + (preset.budgets.back ?? 0) * backMs);
    const asked = ask(later);
    const fence = now.answer.kind === 'acquired' ? now.answer.fence : null;
    if (asked.answer.kind === 'in_progress') {
      return { stuck: 'in progress after its lease, and as long as the clock went back', fence };
    }
    if (asked.answer.kind === 'unsupported' || asked.answer.kind === 'token_replayed') {
      return { stuck: asked.answer.kind, fence };
    }
    if (asked.answer.kind !== 'unknown') return { stuck: null, fence };
    for (const word of ['committed', 'not-applied'] as const) {
      const resolved = store.run(asked.store, { kind: 'resolve', command: word });
      const after = ask(resolved.store).answer.kind;
      const wanted = word === 'committed' ? 'tombstone' : 'acquired';
      if (resolved.reply !== 'resolved' || after !== wanted) {
        return { stuck: `resolved as ${word}, and then ${after}`, fence };
      }
    }
    return { stuck: null, fence };
  }

  /** Somebody else, with the request that is reserved. */
  function ask(content: number): { readonly answer: Reserved; readonly store: number } {
    const fingerprint = store.slot(content).record?.fingerprint ?? preset.requests[0]?.fingerprint ?? '';
    const key = { fingerprint, route: 'r', leaseMs, retentionMs, takesOver };
    const ran = store.run(content, { kind: 'reserve', command: { attempt: 'Z', key, markerTtlMs: null } });
    return { answer: ran.reply as Reserved, store: ran.store };
  }
}

/** Where nothing is under way any more: everybody has an answer, and what went wrong is counted. */
export function unrestOf(preset: Preset, { attempts, lost, effects, counted }: State): readonly string[] {
  const isOver = attempts.every(({ phase, strays }) => (phase === 'done' || phase === 'dead') && strays.length === 0);
  if (!isOver) return [];
  const broken: string[] = [];
  if (attempts.some(({ phase, told }) => phase === 'done' && told === null)) broken.push('a caller is never answered');
  const ranTwice = effects > 1 && preset.receiver !== 'deduplicates' && preset.keyless !== true;
  // Who was killed counts nothing more, and who gave up has counted the write as in doubt.
  const isWatched = attempts.every(
    ({ phase, request, settlement }) => phase === 'done' && (request === 'none' || settlement !== null),
  );
  if (lost && ranTwice && isWatched && !counted.twice) broken.push('a write ran twice, and no metric says so');
  return broken;
}
