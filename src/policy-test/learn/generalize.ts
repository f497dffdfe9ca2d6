/** Makes operations of paths: says of each segment that differs whether it is a value, and which words stay. */
import type { Caller } from './evidence.js';
import { emptyNode, markValue, mergeNode, usersOf, type Callers, type PathNode } from './path-tree.js';
import { slugTerms, type LearnTerms } from './terms.js';

/** Why an operation is not learnt, whoever calls, in words. */
export const unclearWords = {
  few_values: 'a segment that looks like a value took too few different ones',
  odd_value: 'a segment holds a value and a colon, which a parameter cannot take apart',
  too_many_words: 'too many different words at one place, of too few callers',
} as const;

/** A method and a path. */
export interface Operation {
  readonly method: string;
  /** Decoded words; `null` is a value. */
  readonly segments: readonly (string | null)[];
  readonly callers: Callers;
  /** `null` where nothing stands in the way. */
  readonly unclear: keyof typeof unclearWords | null;
}

interface Settled {
  /** What follows `{id}`. */
  readonly parameter: PathNode | null;
  readonly unclear: readonly (readonly [PathNode, keyof typeof unclearWords])[];
}

/** A caller that would have been expected so often at a word, and was never there: it is no value like the others. */
const expectedAtLeast = 10;

/** Lists the operations of one method's paths. The tree is used up. */
export function operationsOf(method: string, root: PathNode, terms: LearnTerms): readonly Operation[] {
  const found: Operation[] = [];
  visit(root, [], null);
  return found;

  function visit(node: PathNode, segments: Operation['segments'], unclear: Operation['unclear']): void {
    if (node.callers.size > 0) found.push({ method, segments, callers: node.callers, unclear });
    const settled = settle(node, segments.length, terms);
    for (const [text, below] of node.words) visit(below, [...segments, text], unclear);
    if (settled.parameter !== null) visit(settled.parameter, [...segments, null], unclear);
    for (const [below, why] of settled.unclear) visit(below, [...segments, null], unclear ?? why);
  }
}

/** Decides what becomes of the values and words at one place. Words that are values leave `words`. */
function settle(node: PathNode, at: number, terms: LearnTerms): Settled {
  const values: PathNode[] = [];
  const unclear: (readonly [PathNode, keyof typeof unclearWords])[] = [];
  const slugs = slugsOf(node);
  for (const [shape, { node: below, values: hashes, only }] of node.varying) {
    const isSlug = shape === 'word' && slugs.length > 0;
    if (shape === 'odd') unclear.push([below, 'odd_value']);
    else if (shape === 'word' && !isSlug) unclear.push([below, 'too_many_words']);
    else if (isSlug || hashes.size >= terms.minValues) values.push(below);
    else if (only !== null && hashes.size === 1) node.words.set(only, below);
    else unclear.push([below, 'few_values']);
  }
  for (const text of slugs) {
    const below = node.words.get(text);
    if (below === undefined) continue;
    node.words.delete(text);
    markValue(below, at, text);
    values.push(below);
  }
  const parameter = emptyNode();
  for (const value of values) mergeNode(parameter, value);
  return { parameter: values.length === 0 ? null : parameter, unclear };
}

/** The words at a place that are values, such as slugs; none where they are names. */
function slugsOf({ words }: PathNode): readonly string[] {
  if (words.size < slugTerms.words) return [];
  const users = new Map([...words].filter(([text]) => text !== '').map(([text, node]) => [text, usersOf(node)]));
  const wordsOfCaller = new Map<Caller, number>();
  const requests = new Map<Caller, number>();
  let all = 0;
  for (const counts of users.values()) {
    for (const [caller, count] of counts) {
      wordsOfCaller.set(caller, (wordsOfCaller.get(caller) ?? 0) + 1);
      requests.set(caller, (requests.get(caller) ?? 0) + count);
      all += count;
    }
  }
  const broad = [...wordsOfCaller.values()].filter((count) => count >= slugTerms.wordsOfCaller);
  const isBroad = broad.length >= slugTerms.callers || broad.some((count) => count >= slugTerms.wordsOfOneCaller);
  if (!isBroad) return [];
  return [...users].filter(([, counts]) => isLikeOthers(counts, requests, all)).map(([text]) => text);
}

/** Whether a word has callers that the others have too, as far as there were enough requests to tell. */
function isLikeOthers(
  counts: ReadonlyMap<Caller, number>,
  requests: ReadonlyMap<Caller, number>,
  all: number,
): boolean {
  const own = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const restOf = (caller: Caller): number => (requests.get(caller) ?? 0) - (counts.get(caller) ?? 0);
  if ([...counts.keys()].some((caller) => restOf(caller) === 0)) return false;
  return [...requests.keys()].every(
    (caller) => counts.has(caller) || (own * restOf(caller)) / Math.max(1, all - own) < expectedAtLeast,
  );
}
