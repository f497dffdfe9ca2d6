/** The routes of an application that decides in its own process: their own policies, and whether each has one. */
import { placeOf, type RouteTable } from '../../decision/route/route-table.js';
import type { Report } from '../load/report.js';
import type { Path, Position, SourceMap, SourceNode } from '../load/source-tree.js';
import { refusePrototype } from '../load/yaml.js';
import type { CompiledRoutes } from '../sections/routes/routes.js';

/** What an application says of its routes. */
export interface ApplicationRoutes {
  /** Policies that stand beside the application's routes, as plain values: what a route of the file may say. */
  readonly policies: readonly Readonly<Record<string, unknown>>[];
  /** What has to have a policy. */
  readonly served: readonly ServedRoute[];
  /** Whether it verifies the certificates of callers, by authorities that it names. */
  readonly verifiesCertificates: boolean;
  /** Whether a route without a policy ends the start; else it is refused to everybody. */
  readonly mustBeCovered: boolean;
}

/** One method of a route that the application serves. */
export interface ServedRoute {
  readonly method: string;
  /** As the application writes it. */
  readonly url: string;
  /** Segments of a target that it takes, one for each way to write it. */
  readonly examples: readonly (readonly string[])[];
  /** Name of its own policy; `null` where the file has to have one. */
  readonly policy: string | null;
}

const start: Position = { line: 1, column: 1 };

/**
 * Puts into a config what an application need not say: where to listen, and the upstream that is not there; and the
 * policies of its routes behind those of the file.
 */
export function withApplication(root: SourceNode, { policies }: ApplicationRoutes, report: Report): SourceNode {
  if (root.kind !== 'map') return root;
  const entries = new Map(root.entries);
  for (const [name, given] of Object.entries(unsaid)) {
    const said = entries.get(name);
    if (said === undefined) entries.set(name, { position: start, node: mapOf(given, [name], report) });
    else if (said.node.kind === 'map') {
      const unsaidEntries = mapOf(given, [name], report).entries;
      const node: SourceNode = { ...said.node, entries: new Map([...unsaidEntries, ...said.node.entries]) };
      entries.set(name, { ...said, node });
    }
  }
  const listed = entries.get('routes');
  if (policies.length > 0 && (listed === undefined || listed.node.kind === 'list')) {
    const inFile = listed?.node.kind === 'list' ? listed.node.items : [];
    const own = policies.map((policy, index) => nodeOf(policy, ['routes', inFile.length + index], report));
    const items = [...inFile, ...own];
    const position = listed?.position ?? start;
    entries.set('routes', { position, node: { kind: 'list', position, items } });
  }
  return { ...root, entries };
}

/** The application's router is asked at each request whether it has read the path as it was judged. */
const unsaid = {
  listen: { host: '127.0.0.1', port: 0 },
  upstream: { url: 'unix:/unused' },
  receiver: {
    case_sensitive: true,
    strict_slash: true,
    format_suffix: false,
    trailing_dots: false,
    options_as_get: false,
    path_info: false,
  },
} as const;

function nodeOf(value: unknown, path: Path, report: Report): SourceNode {
  if (Array.isArray(value)) {
    return { kind: 'list', position: start, items: value.map((item, index) => nodeOf(item, [...path, index], report)) };
  }
  if (typeof value === 'object' && value !== null) return mapOf(value, path, report);
  const isPlain = value === null || ['string', 'number', 'boolean'].includes(typeof value);
  return {
    kind: 'scalar',
    position: start,
    value: isPlain ? (value as string | number | boolean | null) : typeof value,
    written: null,
    coercible: false,
    faulty: false,
  };
}

function mapOf(value: object, path: Path, report: Report): SourceMap {
  const entries = Object.entries(value)
    .filter(([key, each]) => each !== undefined && !refusePrototype(key, path, start, report))
    .map(([key, each]) => [key, { position: start, node: nodeOf(each, [...path, key], report) }] as const);
  return { kind: 'map', position: start, entries: new Map(entries) };
}

/** Names routes of the application that no policy covers, and policies that ask for what only the sidecar does. */
export function checkApplication(
  { served, mustBeCovered }: ApplicationRoutes,
  { routes, placeOfRoute, complete }: CompiledRoutes,
  table: RouteTable,
  report: Report,
): void {
  for (const route of routes) {
    const asked = sidecarOnly.find(({ isAsked }) => isAsked(route));
    if (asked === undefined) continue;
    const at = placeOfRoute.get(route) ?? ['routes'];
    report.error(at, `route ${JSON.stringify(route.name)} ${asked.what}, which an application cannot`, asked.allowed);
  }
  if (!complete || !mustBeCovered) return;
  // What stands beside one route says nothing of another.
  const own = new Set(served.map(({ policy }) => policy));
  for (const { method, url, examples, policy } of served) {
    const isCovered = examples.every((segments) => {
      const name = placeOf(table, method, segments)?.route.name ?? null;
      return name !== null && (policy === null ? !own.has(name) : name === policy);
    });
    if (isCovered) continue;
    report.error(
      ['routes'],
      `no route covers ${method} ${url}, which the application serves`,
      'a route for it here, or config.sallyport on it; access: public where everybody may come; uncovered: refuse where nobody may',
    );
  }
}

const sidecarOnly: readonly {
  readonly isAsked: (route: CompiledRoutes['routes'][number]) => boolean;
  readonly what: string;
  readonly allowed: string;
}[] = [
  { isAsked: ({ isGrpc }) => isGrpc, what: 'takes gRPC calls', allowed: 'methods and path; or the sidecar' },
  {
    isAsked: ({ allowsWebSocket }) => allowsWebSocket,
    what: 'opens WebSockets, to be authorized again while they last',
    allowed: 'websocket: false; or the sidecar',
  },
];
