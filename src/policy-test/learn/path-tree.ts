/** The paths of one method as they came: words apart, values of one shape together. Bounded in every direction. */
import {
  addBounded,
  addValue,
  hasWorked,
  mergeEvidence,
  noEvidence,
  witness,
  type Caller,
  type Evidence,
} from './evidence.js';
import type { SeenRequest } from './log-line.js';
import { hashOf, mayBeName, shapeOf, type SegmentShape } from './segment-shape.js';
import type { LearnCaps } from './terms.js';

/** Who used an operation. */
export type Callers = Map<Caller, Evidence>;

/** What may follow after some segments. */
export interface PathNode {
  readonly words: Map<string, PathNode>;
  readonly varying: Map<SegmentShape, Varying>;
  /** Of requests whose path ends here. */
  readonly callers: Callers;
}

/** Values of one shape at one place. */
interface Varying {
  readonly node: PathNode;
  /** Their hashes, as many as count. */
  readonly values: Set<number>;
  /** The one value that there is, where it may be a name; else `null`. */
  only: string | null;
}

/** What was not kept for want of room, by what was full. */
export type Cut = Record<'places' | 'placesOfCaller' | 'pairs' | 'callers' | 'permissionSets', number>;

/** What all trees hold together. */
export interface Room {
  readonly caps: LearnCaps;
  readonly cut: Cut;
  places: number;
  pairs: number;
}

export function emptyNode(): PathNode {
  return { words: new Map(), varying: new Map(), callers: new Map() };
}

/**
 * Adds a request. One that the upstream refused or had no answer for makes no place in the tree: whoever tries paths
 * leaves nothing behind.
 */
export function addRequest(root: PathNode, request: SeenRequest, caller: Caller, room: Room): void {
  const grows = hasWorked(request.status);
  const values: (readonly [number, number])[] = [];
  let number = NaN;
  let node = root;
  for (const [at, text] of request.segments.entries()) {
    const shape = text === '' ? 'word' : shapeOf(text);
    if (shape === 'number') number = Number(text);
    const next = step(node, shape, text, grows, caller, room);
    if (next === null) return;
    if (next.isValue) values.push([at, hashOf(text)]);
    node = next.node;
  }
  let evidence = node.callers.get(caller);
  if (evidence === undefined) {
    if (!grows) return;
    if (room.pairs >= room.caps.pairs) {
      room.cut.pairs += 1;
      return;
    }
    room.pairs += 1;
    evidence = noEvidence();
    node.callers.set(caller, evidence);
  }
  witness(evidence, { ...request, values, number });
}

interface Step {
  readonly node: PathNode;
  readonly isValue: boolean;
}

function step(
  node: PathNode,
  shape: SegmentShape,
  text: string,
  grows: boolean,
  caller: Caller,
  room: Room,
): Step | null {
  if (shape === 'word') {
    const known = node.words.get(text);
    if (known !== undefined) return { node: known, isValue: false };
    if (node.words.size < room.caps.words) {
      if (!grows || !takesPlace(caller, room)) return null;
      const grown = emptyNode();
      // A piece of a long text would keep all of it in memory.
      node.words.set(Buffer.from(text).toString(), grown);
      return { node: grown, isValue: false };
    }
  }
  const known = node.varying.get(shape);
  if (known !== undefined) {
    if (grows) {
      addBounded(known.values, hashOf(text));
      if (known.only !== text) known.only = null;
    }
    return { node: known.node, isValue: true };
  }
  if (!grows || !takesPlace(caller, room)) return null;
  const grown = emptyNode();
  const only = mayBeName(shape, text) ? text : null;
  node.varying.set(shape, { node: grown, values: new Set([hashOf(text)]), only });
  return { node: grown, isValue: true };
}

function takesPlace(caller: Caller, room: Room): boolean {
  if (caller.places >= room.caps.placesOfCaller) {
    room.cut.placesOfCaller += 1;
    return false;
  }
  if (room.places >= room.caps.places) {
    room.cut.places += 1;
    return false;
  }
  caller.places += 1;
  room.places += 1;
  return true;
}

/** Adds all that another node has to a node, and what is below. */
export function mergeNode(into: PathNode, from: PathNode): void {
  for (const [caller, evidence] of from.callers) mergeCaller(into.callers, caller, evidence);
  for (const [text, node] of from.words) {
    const known = into.words.get(text);
    if (known === undefined) into.words.set(text, node);
    else mergeNode(known, node);
  }
  for (const [shape, { node, values, only }] of from.varying) {
    const known = into.varying.get(shape);
    if (known === undefined) into.varying.set(shape, { node, values, only });
    else {
      mergeNode(known.node, node);
      for (const value of values) addBounded(known.values, value);
      if (known.only !== only) known.only = null;
    }
  }
}

function mergeCaller(into: Callers, caller: Caller, evidence: Evidence): void {
  const known = into.get(caller);
  if (known === undefined) into.set(caller, evidence);
  else mergeEvidence(known, evidence);
}

/** All who used something at a node or below it, with how often it worked. */
export function usersOf(node: PathNode, users = new Map<Caller, number>()): ReadonlyMap<Caller, number> {
  for (const [caller, { worked }] of node.callers) users.set(caller, (users.get(caller) ?? 0) + worked);
  for (const below of childrenOf(node)) usersOf(below, users);
  return users;
}

/** Says of everything below that a word, which stands at a place, is a value there. */
export function markValue(node: PathNode, at: number, text: string): void {
  const hash = hashOf(text);
  for (const evidence of node.callers.values()) addValue(evidence, at, hash);
  for (const below of childrenOf(node)) markValue(below, at, text);
}

function childrenOf({ words, varying }: PathNode): readonly PathNode[] {
  return [...words.values(), ...[...varying.values()].map(({ node }) => node)];
}
