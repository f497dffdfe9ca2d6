/** Writes a proposal into the text of a config, which keeps its comments, its order and all else that it says. */
import { isMap, isPair, isScalar, isSeq, LineCounter, parseDocument, visit, type Document, type YAMLMap } from 'yaml';
import type { ProposedRoute, ProposedSubject, Proposal, Sighting } from './proposal.js';
import { maxTermValues } from './terms.js';

/** Why nobody reserves on a learnt route: so it was in shadow mode. */
const unreservedBecause =
  'learnt in shadow mode, where nothing is reserved: nobody has decided yet whether this write may run twice';

interface Learnt {
  readonly text: string;
  /** The lines of each learnt route, from its first to its last one, by its name. */
  readonly lines: ReadonlyMap<string, readonly [number, number]>;
}

/** The line that says that a config is whole: parsed with it, comments before it would come behind it. */
const endMarker = /\n\.\.\.\s*$/;

/** Of keys that name files; a relative path starts from the config's folder. */
const fileKey = /(?:^|_)file$|^curl_config$|^unix$/;
const filePlaceholder = /\$\{file:(?!\/)([^}]*)\}/g;

const writing: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** Seen callers that a comment lists. */
const maxListed = 12;

/**
 * Returns the config with what was learnt, enforced. `issuersApart` writes to each route from which issuer its subjects
 * come.
 *
 * @param moved what a relative path of the config is from the folder of the new one.
 */
export function writeConfig(
  text: string,
  { routes, subjects }: Pick<Proposal, 'routes' | 'subjects'>,
  { issuersApart, moved }: { readonly issuersApart: boolean; readonly moved: (path: string) => string },
): Learnt {
  const body = text.replace(endMarker, '\n');
  const document = parseDocument(body, { version: '1.2', schema: 'core', uniqueKeys: false, logLevel: 'silent' });
  document.delete('mode');
  const list = document.get('routes');
  if (isSeq(list)) {
    for (const route of list.items) {
      if (!isMap(route)) continue;
      if (route.get('mode') === 'shadow') route.delete('mode');
      for (const subject of subjects) if (subject.route === route.get('name')) addSubject(document, route, subject);
    }
    list.flow = false;
    for (const route of routes) list.add(routeNode(document, route, issuersApart));
  }
  moveFiles(document, moved);
  const written = document.toString({ lineWidth: 0 }) + (body === text ? '' : '...\n');
  return { text: written, lines: linesOf(written, new Set(routes.map(({ name }) => name))) };
}

function routeNode(document: Document, route: ProposedRoute, issuersApart: boolean): YAMLMap {
  const { name, method, path, approvals, issuer } = route;
  const [only] = approvals;
  const node = document.createNode({
    name,
    methods: [method],
    path,
    ...(approvals.length === 1 && only !== undefined
      ? { subjects: only.subjects, permissions: only.permissions }
      : { any_of: approvals }),
    ...(issuersApart ? { issuers: [issuer] } : {}),
    ...(writing.has(method) ? { idempotency: { mode: 'none', because: unreservedBecause } } : {}),
  }) as YAMLMap;
  visit(node, {
    Seq: (_, list) => {
      if (list.items.every(isScalar)) list.flow = true;
    },
  });
  node.commentBefore = evidenceLines(route)
    .map((line) => ` ${line}`)
    .join('\n');
  node.spaceBefore = true;
  return node;
}

function evidenceLines({ seen, values, besides, approvals }: ProposedRoute): readonly string[] {
  const total = seen.reduce((sum, { count }) => sum + count, 0);
  const listed = seen.slice(0, maxListed);
  return [
    `learnt from ${String(total)} ${total === 1 ? 'request' : 'requests'}`,
    ...listed.map(sightingText),
    ...(seen.length > maxListed ? [`and ${String(seen.length - maxListed)} more callers`] : []),
    ...values.map((count, at) => {
      const most = count >= maxTermValues ? ' or more' : '';
      return `{id${at === 0 ? '' : String(at + 1)}}: ${String(count)}${most} different values`;
    }),
    ...(areUnclear(approvals) ? ['permissions: not learnt which of them it needs; its tokens had all of them'] : []),
    ...(besides === null
      ? []
      : [`seen too rarely, and kept apart so that ${besides} does not take it for all of its callers`]),
  ];
}

/** Whether a route asks for several permissions, of which no line tells the one that it needs. */
export function areUnclear(approvals: ProposedRoute['approvals']): boolean {
  return approvals.some(({ permissions }) => permissions.length > 1);
}

/** One caller, for people. */
export function sightingText({ subject, count, days, first, last }: Sighting): string {
  const span = days === 1 ? `on ${first}` : `on ${String(days)} days from ${first} to ${last}`;
  return `${subject}: ${String(count)}, ${span}`;
}

function addSubject(document: Document, route: YAMLMap, { approval, seen }: ProposedSubject): void {
  const list = route.getIn(route.has('any_of') ? ['any_of', approval, 'subjects'] : ['subjects']);
  if (!isSeq(list)) return;
  const node = document.createNode(seen.subject);
  list.flow = false;
  node.comment = ` learnt: ${sightingText(seen)}`;
  list.add(node);
}

function moveFiles(document: ReturnType<typeof parseDocument>, moved: (path: string) => string): void {
  visit(document, {
    Scalar: (key, node, path) => {
      const pair = path.at(-1);
      if (key === 'key' || typeof node.value !== 'string') return;
      const text = node.value.replace(filePlaceholder, (_, file: string) => `\${file:${moved(file)}}`);
      const name: unknown = isPair(pair) && isScalar(pair.key) ? pair.key.value : null;
      const isPath = typeof name === 'string' && fileKey.test(name) && !/^(?:\/|\$\{)/.test(text);
      node.value = isPath ? moved(text) : text;
    },
  });
}

function linesOf(text: string, names: ReadonlySet<string>): Learnt['lines'] {
  const counter = new LineCounter();
  const list = parseDocument(text, { lineCounter: counter, uniqueKeys: false, logLevel: 'silent' }).get('routes');
  const found = new Map<string, readonly [number, number]>();
  if (!isSeq(list)) return found;
  for (const route of list.items) {
    if (!isMap(route) || route.range === undefined || route.range === null) continue;
    const name = route.get('name');
    if (typeof name !== 'string' || !names.has(name)) continue;
    const [from, to] = route.range;
    found.set(name, [counter.linePos(from).line, counter.linePos(Math.max(from, to - 1)).line]);
  }
  return found;
}
