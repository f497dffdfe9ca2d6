/** What the findings say a policy should let through, and what they do not. */
import type { CompiledConfig } from '../../config/types.js';
import type { Approval, Route } from '../../decision/route/policy.js';
import { encodeSegment } from '../../decision/http/request-target.js';
import { common, doubtOf, doubtWords, type Caller, type Evidence } from './evidence.js';
import { unclearWords, type Operation } from './generalize.js';
import type { Findings, Unapproved } from './learner.js';
import type { Callers } from './path-tree.js';
import { maxTermValues, type LearnTerms } from './terms.js';

/** What was seen of one caller, for people and programs. */
export interface Sighting {
  readonly subject: string;
  readonly issuer: string;
  readonly count: number;
  readonly days: number;
  readonly first: string;
  readonly last: string;
}

export interface ProposedRoute {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly segments: Operation['segments'];
  /** Of the one issuer whose callers are learnt here. */
  readonly issuer: string;
  readonly approvals: readonly { readonly subjects: readonly string[]; readonly permissions: readonly string[] }[];
  readonly seen: readonly Sighting[];
  /** How many values the parameters took, from left to right, of `maxTermValues` at most. */
  readonly values: readonly number[];
  /** Name of the route whose `{id}` would take this word, too; the word was seen too rarely for more. */
  readonly besides: string | null;
}

/** A subject for a route of the config. */
export interface ProposedSubject {
  readonly route: string;
  /** Which of the route's approvals, in their order. */
  readonly approval: number;
  readonly seen: Sighting;
}

/** What was seen and is not proposed. */
export interface LeftOut {
  readonly method: string;
  readonly path: string;
  readonly subject: string;
  readonly count: number;
  readonly why: string;
}

export interface Proposal {
  readonly routes: readonly ProposedRoute[];
  readonly subjects: readonly ProposedSubject[];
  readonly leftOut: readonly LeftOut[];
}

const byText = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** Proposes. The order of what it says is that of paths and names, whatever order the lines came in. */
export function propose(
  { operations, unapproved }: Pick<Findings, 'operations' | 'unapproved'>,
  { routes, issuers }: Pick<CompiledConfig, 'routes' | 'issuers'>,
  terms: LearnTerms,
): Proposal {
  const leftOut: LeftOut[] = [];
  const proposed: ProposedRoute[] = [];
  const rare: Operation[] = [];
  const names = new Set(['none', ...routes.map(({ name }) => name)]);
  const ordered = operations.toSorted((one, other) => byText(sortKey(one), sortKey(other)));
  for (const operation of ordered) {
    const kept = learntCallers(operation, terms, leftOut);
    if (kept.length === 0) rare.push(operation);
    else proposed.push(routeOf(operation, kept, freshName(operation, names), null));
  }
  const open = [...proposed];
  for (const operation of rare) {
    const wider = open.find((route) => takes(route, operation));
    if (wider === undefined || operation.unclear !== null) continue;
    const subjects = new Set(wider.approvals.flatMap((approval) => approval.subjects));
    const kept = [...operation.callers].filter(
      ([{ issuer, subject }]) => issuer === wider.issuer && subjects.has(subject),
    );
    if (kept.length > 0) proposed.push(routeOf(operation, kept, freshName(operation, names), wider.name));
    else {
      const why = `route ${wider.name} takes it with its {id}: write a route for it if it is another operation`;
      leftOut.push(...leftOutOf(operation, [...operation.callers], why));
    }
  }
  const subjects = unapproved
    .toSorted((one, other) => byText(one.path.text, other.path.text))
    .flatMap((one) => subjectsFor(one, issuers.length, terms, leftOut));
  return { routes: proposed, subjects, leftOut };
}

/** The callers for whom an operation is learnt; what is not goes to `leftOut`. */
function learntCallers(operation: Operation, terms: LearnTerms, leftOut: LeftOut[]): readonly [Caller, Evidence][] {
  const { callers, segments, unclear } = operation;
  const parameters = placesOf(segments);
  const good: [Caller, Evidence][] = [];
  for (const [caller, evidence] of sorted(callers)) {
    const doubt = doubtOf(evidence, parameters, terms);
    const why = unclear === null ? (doubt === null ? null : doubtWords[doubt]) : unclearWords[unclear];
    if (why === null) good.push([caller, evidence]);
    else leftOut.push(...leftOutOf(operation, [[caller, evidence]], why));
  }
  // A route takes each of its subjects from each of its issuers.
  const counts = new Map<string, number>();
  for (const [{ issuer }, { worked }] of good) counts.set(issuer, (counts.get(issuer) ?? 0) + worked);
  const [main] = [...counts].toSorted((one, other) => other[1] - one[1] || byText(one[0], other[0]));
  const others = good.filter(([{ issuer }]) => issuer !== main?.[0]);
  leftOut.push(
    ...leftOutOf(operation, others, 'another issuer calls it more: one route cannot keep their subjects apart'),
  );
  return good.filter(([{ issuer }]) => issuer === main?.[0]);
}

function leftOutOf(operation: Operation, callers: readonly (readonly [Caller, Evidence])[], why: string): LeftOut[] {
  const { method } = operation;
  const path = pathOf(operation);
  return callers.map(([{ subject }, { worked }]) => ({ method, path, subject, count: worked, why }));
}

function routeOf(
  operation: Operation,
  callers: readonly (readonly [Caller, Evidence])[],
  name: string,
  besides: string | null,
): ProposedRoute {
  const { method, segments } = operation;
  return {
    name,
    method,
    path: pathOf(operation),
    segments,
    issuer: callers[0]?.[0].issuer ?? '',
    approvals: approvalsOf(callers),
    seen: callers.map(sightingOf),
    values: placesOf(segments).map((at) => valuesAt(callers, at)),
    besides,
  };
}

/** What all of them hold, if anything; else what each holds, those with the same together. */
function approvalsOf(callers: readonly (readonly [Caller, Evidence])[]): ProposedRoute['approvals'] {
  const lists = callers.map(([, { permissions }]) => permissions ?? []);
  const shared = lists.reduce<readonly string[] | null>((all, list) => (all === null ? list : common(all, list)), null);
  if ((shared ?? []).length > 0 || lists.every((list) => list.length === 0)) {
    return [{ subjects: callers.map(([{ subject }]) => subject), permissions: shared ?? [] }];
  }
  const groups = new Map<string, { subjects: string[]; permissions: readonly string[] }>();
  for (const [{ subject }, { permissions }] of callers) {
    const key = (permissions ?? []).join(' ');
    const group = groups.get(key) ?? { subjects: [], permissions: permissions ?? [] };
    group.subjects.push(subject);
    groups.set(key, group);
  }
  return [...groups.values()];
}

function subjectsFor(
  { route, path, callers }: Unapproved,
  issuerCount: number,
  terms: LearnTerms,
  leftOut: LeftOut[],
): readonly ProposedSubject[] {
  const parameters = path.segments.flatMap(({ kind }, at) => (kind === 'parameter' ? [at] : []));
  const isOneIssuer = (route.issuers?.size ?? issuerCount) === 1;
  return sorted(callers).flatMap(([caller, evidence]) => {
    const doubt = doubtOf(evidence, parameters, terms);
    const approval = nearestApproval(route, evidence.permissions ?? []);
    const why =
      doubt !== null
        ? doubtWords[doubt]
        : !isOneIssuer
          ? 'the route takes several issuers: a subject counts from each of them'
          : approval === null
            ? 'its tokens lack what the route asks for'
            : null;
    if (why === null && approval !== null) {
      return [{ route: route.name, approval, seen: sightingOf([caller, evidence]) }];
    }
    const method = [...(route.methods ?? ['*'])].join(' ');
    leftOut.push({ method, path: path.text, subject: caller.subject, count: evidence.worked, why: why ?? '' });
    return [];
  });
}

/** Of the approvals whose permissions the caller holds the one that asks for most; `null` where there is none. */
function nearestApproval({ approvals }: Pick<Route, 'approvals'>, held: readonly string[]): number | null {
  const asked = (approval: Approval | undefined): number => approval?.permissions.length ?? 0;
  const fitting = approvals.flatMap(({ permissions }, at) =>
    permissions.every((permission) => held.includes(permission)) ? [at] : [],
  );
  return fitting.toSorted((one, other) => asked(approvals[other]) - asked(approvals[one]))[0] ?? null;
}

/** Whether a request of the operation is one of the route's, by its `{id}`. */
function takes({ method, segments }: ProposedRoute, operation: Operation): boolean {
  return (
    method === operation.method &&
    segments.length === operation.segments.length &&
    segments.every((segment, at) => segment === null || segment === operation.segments[at]) &&
    segments.some((segment, at) => segment === null && operation.segments[at] !== '')
  );
}

function sightingOf([{ subject, issuer }, { worked, days, firstMs, lastMs }]: readonly [Caller, Evidence]): Sighting {
  return { subject, issuer, count: worked, days: days.size, first: dayOf(firstMs), last: dayOf(lastMs) };
}

function dayOf(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString().slice(0, '2026-01-31'.length) : 'never';
}

function valuesAt(callers: readonly (readonly [Caller, Evidence])[], at: number): number {
  const hashes = new Set(callers.flatMap(([, { values }]) => [...(values.get(at) ?? [])]));
  return Math.min(hashes.size, maxTermValues);
}

function sorted(callers: Callers): readonly [Caller, Evidence][] {
  return [...callers].toSorted(
    ([one], [other]) => byText(one.subject, other.subject) || byText(one.issuer, other.issuer),
  );
}

function placesOf(segments: Operation['segments']): readonly number[] {
  return segments.flatMap((segment, at) => (segment === null ? [at] : []));
}

/** As a route says it: `{id}`, `{id2}` and so on. */
function pathOf({ segments }: Pick<Operation, 'segments'>): string {
  let parameters = 0;
  const parts = segments.map((segment) => {
    if (segment !== null) return encodeSegment(segment);
    parameters += 1;
    return parameters === 1 ? '{id}' : `{id${String(parameters)}}`;
  });
  return `/${parts.join('/')}`;
}

function sortKey(operation: Operation): string {
  return `${pathOf(operation)} ${operation.method} ${operation.unclear ?? ''}`;
}

const maxNameLength = 100;

function freshName({ method, segments }: Operation, names: Set<string>): string {
  const parts = [method, ...segments.map((segment) => segment ?? 'id')];
  const name =
    parts
      .map((part) => part.replace(/[^A-Za-z0-9._-]+/g, '-'))
      .join('-')
      .toLowerCase()
      .slice(0, maxNameLength)
      .replace(/^[^a-z0-9]+|-+$/g, '') || 'route';
  let fresh = name;
  for (let at = 2; names.has(fresh); at += 1) fresh = `${name}-${String(at)}`;
  names.add(fresh);
  return fresh;
}
