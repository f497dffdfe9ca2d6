import { unusedText } from '../../../lib/text.js';
import type { Route, RoutePath, Segment } from '../policy.js';
import { endsInSlash, foldedPath, foldText, type Folding } from './folded-table.js';

/**
 * Spells out requests that one path takes as they are and another takes when folded. Deviates from the second path's
 * literals wherever the first allows it, in a case that no route writes: a route that takes such a spelling away from
 * the first path takes every other one away too, so no more than these have to be tried.
 */
export type Speller = (guard: RoutePath, reached: RoutePath) => Generator<readonly string[]>;

interface Vocabulary {
  readonly folding: Folding;
  /** Spellings that routes write, by their folded text. */
  readonly written: ReadonlyMap<string, ReadonlySet<string>>;
  /** Literals as they are written. */
  readonly literals: ReadonlySet<string>;
  /** Whether a request that is not spelt otherwise may be read otherwise. */
  readonly includesPlain: boolean;
  /** Text that no route writes in any case. */
  readonly fresh: string;
  /** Segments of the longest path: no path but one with `**` is longer. */
  readonly longest: number;
}

/**
 * Combinations of cases tried for one pair of paths, where routes write every case of a text themselves (`/a`, `/A`).
 */
const maxCombinations = 64;

/** Letters whose case is varied: with ten there are 1,024 spellings, and one that no route writes is among them. */
const maxLetters = 10;

/** Prepares to spell requests against the paths of some routes. */
export function createSpeller(routes: readonly Route[], folding: Folding, includesPlain: boolean): Speller {
  const vocabulary = vocabularyOf(routes, folding, includesPlain);
  return function* (guard, reached) {
    const other = foldedPath(reached, folding);
    yield* spell(vocabulary, foldedPath(guard, folding), other);
    // The slash at the end may have a format, even to a router that ignores it.
    const hasFormat = folding.suffix && folding.slash && endsInSlash(guard) && guard.segments.length > 1;
    if (hasFormat && fixedLength(other) <= guard.segments.length) yield* spell(vocabulary, guard.segments, other);
  };
}

function* spell(
  vocabulary: Vocabulary,
  guard: readonly Segment[],
  reached: readonly Segment[],
): Generator<readonly string[]> {
  const choices: (readonly string[])[] = [];
  const bothEndInRest = guard.at(-1)?.kind === 'rest' && reached.at(-1)?.kind === 'rest';
  const length = Math.max(fixedLength(guard), fixedLength(reached));
  for (let at = 0; at < length; at += 1) choices.push(choicesAt(vocabulary, guard[at], reached[at], at === length - 1));
  // Both are among the routes, so that the longest path is longer than what precedes their `**`.
  const tails = bothEndInRest ? vocabulary.longest + 1 - length : 0;
  for (const head of combinations(choices)) {
    for (let tail = 0; tail <= tails; tail += 1) {
      const segments = [...head, ...Array<string>(tail).fill(vocabulary.fresh)];
      if (segments.length > 0) yield segments;
      const endsInSlash = segments.at(-1) === '';
      if ((vocabulary.folding.slash || bothEndInRest) && !endsInSlash) yield [...segments, ''];
    }
  }
}

/** Segments before `**`. */
function fixedLength(path: readonly Segment[]): number {
  return path.at(-1)?.kind === 'rest' ? path.length - 1 : path.length;
}

/** What may stand where two paths meet; past the end of one of them, the other decides. */
function choicesAt(
  vocabulary: Vocabulary,
  guard: Segment | undefined,
  reached: Segment | undefined,
  isLast: boolean,
): readonly string[] {
  if (reached?.kind === 'literal') return [reached.text];
  if (guard?.kind !== 'literal') return [vocabulary.fresh];
  const others = deviations(vocabulary, guard.text, isLast);
  return vocabulary.includesPlain && !others.includes(guard.text) ? [guard.text, ...others] : others;
}

/** Spellings of a text: one that no route writes, else all of them. */
function deviations(vocabulary: Vocabulary, text: string, isLast: boolean): readonly string[] {
  const { folding, written, literals } = vocabulary;
  const known = written.get(foldText(text, folding)) ?? new Set<string>();
  const spellings = new Set<string>();
  for (const spelling of folding.case ? casesOf(text, folding) : [text]) {
    if (!known.has(spelling)) return [spelling];
    spellings.add(spelling);
  }
  const endings = [
    ...(folding.suffix && isLast ? [spellingWith(`${text}.`, literals, vocabulary.fresh)] : []),
    // The slash at the end is a segment without text.
    ...(folding.dots && text !== '' ? [spellingWith(text, literals, '.')] : []),
  ];
  return [...spellings, ...endings];
}

/** The text with so many endings that no route writes it. */
function spellingWith(text: string, literals: ReadonlySet<string>, ending: string): string {
  let spelling = `${text}${ending}`;
  while (literals.has(spelling)) spelling += ending;
  return spelling;
}

/** The cases of a text: the whole in upper case first, since that reads best in a message, then letter by letter. */
function* casesOf(text: string, folding: Folding): Generator<string> {
  const upper = text.toUpperCase();
  if (upper !== text && foldText(upper, folding) === foldText(text, folding)) yield upper;
  const characters = Array.from(text);
  const letters = characters.flatMap((character, at) => {
    const other = character === character.toLowerCase() ? character.toUpperCase() : character.toLowerCase();
    return other !== character && other.toLowerCase() === character.toLowerCase() ? [{ at, other }] : [];
  });
  const counted = letters.slice(0, maxLetters);
  for (let chosen = 0; chosen < 2 ** counted.length; chosen += 1) {
    const spelled = [...characters];
    counted.forEach(({ at, other }, bit) => {
      if ((chosen >> bit) % 2 === 1) spelled[at] = other;
    });
    yield spelled.join('');
  }
}

function* combinations(choices: readonly (readonly string[])[]): Generator<readonly string[]> {
  const total = choices.reduce((product, options) => Math.min(product * options.length, maxCombinations), 1);
  for (let number = 0; number < total; number += 1) {
    let rest = number;
    yield choices.map((options) => {
      const option = options[rest % options.length] ?? '';
      rest = Math.floor(rest / options.length);
      return option;
    });
  }
}

function vocabularyOf(routes: readonly Route[], folding: Folding, includesPlain: boolean): Vocabulary {
  const literals = new Set<string>();
  const written = new Map<string, Set<string>>();
  let longest = 0;
  for (const { segments } of routes.flatMap((route) => route.paths)) {
    longest = Math.max(longest, segments.length);
    for (const segment of segments) {
      if (segment.kind !== 'literal') continue;
      literals.add(segment.text);
      const folded = foldText(segment.text, folding);
      const spellings = written.get(folded);
      if (spellings === undefined) written.set(folded, new Set([segment.text]));
      else spellings.add(segment.text);
    }
  }
  const fresh = unusedText('x', (text) => written.has(text));
  return { folding, written, literals, includesPlain, fresh, longest };
}
