/** Reads the sections of a config, each for itself, so that a problem in one hides none in another. */
import type { z } from 'zod';
import type { Mode } from '../../decision/route/policy.js';
import type { Report } from './report.js';
import { reportIssue, reportUnknownKey, retyped, specificIssues } from './zod-issues.js';
import { type IssuerFile, issuerName, issuerSchema, type RevokedFile } from '../sections/issuers.js';
import type { IdentityFile } from '../sections/identity.js';
import type { LimitsFile } from '../sections/limits.js';
import type { HostPortFile, ListenFile, ProbesFile } from '../sections/listen.js';
import { routeSchema, type RouteFile } from '../sections/routes.js';
import type { SessionsFile } from '../sections/sessions.js';
import type { StoreFile } from '../sections/store.js';
import type { ReceiverFile, UpstreamFile } from '../sections/upstream.js';
import { sections } from '../sections/schema.js';
import { locate, replaceAt, valueOf, type Path, type SourceNode } from './source-tree.js';

/** A section that was read; `null` where it has errors. */
export type Part<T> = { readonly value: T } | null;

/** One issuer or route of the file. */
export interface Entry<T> {
  readonly path: Path;
  readonly part: Part<T>;
}

/** What a file says, as far as it could be read. */
export interface ConfigParts {
  readonly listen: Part<ListenFile>;
  readonly admin: Part<HostPortFile>;
  readonly probes: Part<ProbesFile | null>;
  readonly upstream: Part<UpstreamFile>;
  readonly receiver: Part<ReceiverFile>;
  readonly issuers: ReadonlyMap<string, Entry<IssuerFile>>;
  /** False where `issuers` is something else, so that nothing is known of their names. */
  readonly issuersAreMap: boolean;
  readonly sessions: Part<SessionsFile | null>;
  readonly identity: Part<IdentityFile>;
  readonly store: Part<StoreFile | null>;
  readonly revoked: Part<RevokedFile>;
  readonly shutdown: Part<z.output<typeof sections.shutdown>>;
  readonly log: Part<z.output<typeof sections.log>>;
  readonly reload: Part<z.output<typeof sections.reload>>;
  readonly token_cache: Part<z.output<typeof sections.token_cache>>;
  readonly limits: Part<LimitsFile | null>;
  readonly mode: Part<Mode>;
  readonly routes: readonly Entry<RouteFile>[];
  /** Whether a key stands in the file, whatever its value. */
  readonly isWritten: (path: Path) => boolean;
  /** What stands in the file, unchecked: for rules that hold whether or not the rest could be read. */
  readonly written: (path: Path) => unknown;
}

interface Reader {
  readonly root: SourceNode;
  readonly report: Report;
}

/** Reads what the schema says of each section. */
export function parseSections(source: SourceNode, report: Report): ConfigParts | null {
  if (source.kind !== 'map') {
    report.error([], `the config is ${source.kind === 'scalar' ? 'one value' : report.show([])}`, 'a map');
    return null;
  }
  const known = Object.keys(sections);
  for (const key of source.entries.keys()) if (!known.includes(key)) reportUnknownKey([key], key, known, report);
  const reader: Reader = { root: source, report };
  return {
    listen: readPart(sections.listen, ['listen'], reader),
    admin: readPart(sections.admin, ['admin'], reader),
    probes: readPart(sections.probes, ['probes'], reader),
    upstream: readPart(sections.upstream, ['upstream'], reader),
    receiver: readPart(sections.receiver, ['receiver'], reader),
    issuers: readIssuers(reader),
    issuersAreMap: (locate(source, ['issuers']).node ?? { kind: 'map' }).kind === 'map',
    sessions: readPart(sections.sessions, ['sessions'], reader),
    identity: readPart(sections.identity, ['identity'], reader),
    store: readPart(sections.store, ['store'], reader),
    revoked: readPart(sections.revoked, ['revoked'], reader),
    shutdown: readPart(sections.shutdown, ['shutdown'], reader),
    log: readPart(sections.log, ['log'], reader),
    reload: readPart(sections.reload, ['reload'], reader),
    token_cache: readPart(sections.token_cache, ['token_cache'], reader),
    limits: readPart(sections.limits, ['limits'], reader),
    mode: readPart(sections.mode, ['mode'], reader),
    routes: readRoutes(reader),
    isWritten: (path) => locate(source, path).node !== null,
    written: (path) => {
      const { node } = locate(source, path);
      return node === null ? undefined : valueOf(node);
    },
  };
}

function readPart<T>(schema: z.ZodType<T>, path: Path, { root, report }: Reader): Part<T> {
  let { node } = locate(root, path);
  let result = schema.safeParse(node === null ? undefined : valueOf(node));
  if (!result.success && node !== null) {
    // A placeholder is text; where its key asks for a number or a truth value, it is read as one.
    let changed = false;
    for (const issue of specificIssues(result.error.issues)) {
      const scalar = retyped(issue, node);
      if (scalar === null) continue;
      node = replaceAt(node, scalar.path, scalar.scalar);
      changed = true;
    }
    if (changed) result = schema.safeParse(valueOf(node));
  }
  if (result.success) return { value: result.data };
  for (const issue of specificIssues(result.error.issues)) reportIssue(issue, { schema, path, root, report });
  return null;
}

function readIssuers(reader: Reader): ReadonlyMap<string, Entry<IssuerFile>> {
  const found = new Map<string, Entry<IssuerFile>>();
  const { node } = locate(reader.root, ['issuers']);
  if (node?.kind !== 'map') {
    readPart(sections.issuers, ['issuers'], reader);
    return found;
  }
  for (const name of node.entries.keys()) {
    const path = ['issuers', name];
    const named = issuerName.safeParse(name);
    if (!named.success) {
      reader.report.keyError(
        path,
        `${JSON.stringify(name)} is no name of an issuer`,
        named.error.issues[0]?.message ?? 'another name',
      );
    }
    found.set(name, { path, part: readPart(issuerSchema, path, reader) });
  }
  return found;
}

function readRoutes(reader: Reader): readonly Entry<RouteFile>[] {
  const { node } = locate(reader.root, ['routes']);
  if (node?.kind !== 'list' || node.items.length === 0) {
    readPart(sections.routes, ['routes'], reader);
    return [];
  }
  return node.items.map((_, index) => ({
    path: ['routes', index],
    part: readPart(routeSchema, ['routes', index], reader),
  }));
}
