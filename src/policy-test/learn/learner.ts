/** Takes the lines of a log one by one, and keeps what a policy can be learnt from. */
import type { CompiledConfig } from '../../config/types.js';
import type { Route, RoutePath } from '../../decision/route/policy.js';
import { placeOf } from '../../decision/route/route-table.js';
import { noEvidence, witness, type Caller, type Evidence } from './evidence.js';
import { operationsOf, type Operation } from './generalize.js';
import { readLine, type SeenRequest, type SkipReason } from './log-line.js';
import { addRequest, emptyNode, type Callers, type Cut, type PathNode, type Room } from './path-tree.js';
import { hashOf } from './segment-shape.js';
import type { LearnCaps, LearnTerms } from './terms.js';

/** Callers whom a route of the config refuses for want of an approval. */
export interface Unapproved {
  readonly route: Route;
  readonly path: RoutePath;
  readonly callers: Callers;
}

/** What the lines said. */
export interface Findings {
  readonly lines: number;
  /** Lines that something could be learnt from. */
  readonly learntFrom: number;
  /** Lines of verified callers whom a route lets through already. */
  readonly inForce: number;
  readonly skipped: ReadonlyMap<SkipReason, number>;
  /** Lines of callers whom nobody verified, by why that was. */
  readonly unverified: ReadonlyMap<string, number>;
  /** Lines of verified callers that no edit of routes and subjects helps, by route, caller and why. */
  readonly others: ReadonlyMap<string, number>;
  readonly operations: readonly Operation[];
  readonly unapproved: readonly Unapproved[];
  readonly cut: Cut;
}

interface Learner {
  /** `null` is a line that is too long to be held. */
  readonly add: (line: Buffer | null) => void;
  /** Ends the reading. */
  readonly finish: () => Findings;
}

/** Texts that tell why lines were not learnt from are few; more than this somebody makes up. */
const maxOthers = 1_000;
const maxMethods = 32;

export function createLearner(
  { table, routes, issuers }: Pick<CompiledConfig, 'table' | 'routes' | 'issuers'>,
  terms: LearnTerms,
  caps: LearnCaps,
): Learner {
  const trees = new Map<string, PathNode>();
  const room: Room = {
    caps,
    cut: { places: 0, placesOfCaller: 0, pairs: 0, callers: 0, permissionSets: 0 },
    places: 0,
    pairs: 0,
  };
  const callers = new Map<string, Caller>();
  const permissionSets = new Map<string, readonly string[]>();
  const unapproved = new Map<RoutePath, Unapproved>();
  const skipped = new Map<SkipReason, number>();
  const unverified = new Map<string, number>();
  const others = new Map<string, number>();
  const names = new Set(routes.map(({ name }) => name));
  const issuerNames = new Set(issuers.map(({ rules }) => rules.name));
  let lines = 0;
  let learntFrom = 0;
  let inForce = 0;

  function add(line: Buffer | null): void {
    lines += 1;
    const reading = line === null ? ({ kind: 'skipped', why: 'long' } as const) : readLine(line);
    if (reading.kind === 'skipped') {
      increase(skipped, reading.why);
      if (reading.why === 'unverified' && reading.reason !== undefined) increase(unverified, reading.reason);
    } else take(reading.request);
  }

  function take(request: SeenRequest): void {
    const { method, segments, route, reason } = request;
    if (reason === null) {
      inForce += 1;
      return;
    }
    // Its subjects are others than those of the same name here.
    if (!issuerNames.has(request.issuer)) {
      other(`the config has no issuer ${request.issuer}`);
      return;
    }
    const caller = callerOf(request);
    const permissions = interned(request.permissions);
    if (caller === null || permissions === undefined) return;
    const placed = placeOf(table, method, segments);
    if (reason === 'route_unknown') {
      const tree = placed === null ? treeOf(method) : null;
      if (placed !== null) other(`route ${placed.route.name} of the config takes it now`);
      if (tree === null) return;
      learntFrom += 1;
      addRequest(tree, { ...request, permissions }, caller, room);
      return;
    }
    if (route !== null && !names.has(route)) other(`the config has no route ${route} any more`);
    else if (placed === null || placed.route.name !== route) other('another route of the config takes it now');
    else if (reason === 'subject_not_approved') approve(placed.route, placed.path, { ...request, permissions }, caller);
    else {
      const lacks = request.missing.length === 0 ? '' : ` (${request.missing.join(' ')})`;
      other(`route ${placed.route.name}, ${caller.subject}: ${reason}${lacks}`);
    }
  }

  function approve(route: Route, path: RoutePath, request: SeenRequest, caller: Caller): void {
    const found = unapproved.get(path) ?? { route, path, callers: new Map<Caller, Evidence>() };
    unapproved.set(path, found);
    if (!found.callers.has(caller)) {
      if (room.pairs >= caps.pairs) {
        room.cut.pairs += 1;
        return;
      }
      room.pairs += 1;
      found.callers.set(caller, noEvidence());
    }
    const evidence = found.callers.get(caller);
    if (evidence === undefined) return;
    learntFrom += 1;
    const varying = path.segments.flatMap(({ kind }, at) => (kind === 'parameter' ? [at] : []));
    const values = varying.map((at) => [at, hashOf(request.segments[at] ?? '')] as const);
    const numbers = varying.map((at) => Number(request.segments[at])).filter(Number.isInteger);
    witness(evidence, { ...request, values, number: numbers.at(-1) ?? NaN });
  }

  function callerOf({ issuer, subject }: SeenRequest): Caller | null {
    const key = `${issuer} ${subject}`;
    const known = callers.get(key);
    if (known !== undefined) return known;
    if (callers.size >= caps.callers) {
      room.cut.callers += 1;
      return null;
    }
    const caller = { issuer, subject, places: 0 };
    callers.set(key, caller);
    return caller;
  }

  /** The same list for the same permissions; `undefined` where there are too many of them. */
  function interned(permissions: readonly string[] | null): readonly string[] | null | undefined {
    if (permissions === null) return null;
    const key = permissions.join(' ');
    const known = permissionSets.get(key);
    if (known !== undefined) return known;
    if (permissionSets.size >= caps.permissionSets) {
      room.cut.permissionSets += 1;
      return undefined;
    }
    permissionSets.set(key, permissions);
    return permissions;
  }

  function treeOf(method: string): PathNode | null {
    const known = trees.get(method);
    if (known !== undefined) return known;
    if (trees.size >= maxMethods) {
      other('too many different methods');
      return null;
    }
    const tree = emptyNode();
    trees.set(method, tree);
    return tree;
  }

  function other(why: string): void {
    if (others.has(why) || others.size < maxOthers) increase(others, why);
    else increase(others, 'for other reasons');
  }

  return {
    add,
    finish: () => ({
      lines,
      learntFrom,
      inForce,
      skipped,
      unverified,
      others,
      operations: [...trees].flatMap(([method, tree]) => operationsOf(method, tree, terms)),
      unapproved: [...unapproved.values()],
      cut: room.cut,
    }),
  };
}

function increase<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
