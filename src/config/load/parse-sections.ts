/** Reads the sections of a config, each for itself, so that a problem in one hides none in another. */
import type { z } from 'zod';
import type { Report } from './report.js';
import { locate, type Path, replaceAt, type SourceMap, type SourceNode, valueOf } from './source-tree.js';
import { type Coerced, coercePlaceholder, reportIssue, reportUnknownKey, specificIssues } from './zod-issues.js';
import {
  type SectionName,
  sectionNames,
  sections,
  type SectionValue,
  type WholeSectionName,
} from '../sections/index.js';
import { type IssuerFile, issuerName, issuerSchemaFor } from '../sections/issuers/issuers.js';
import { type RouteFile, routeSchema } from '../sections/routes/routes.js';

/** A section that was read; `null` where it has errors. */
type Parsed<T> = { readonly value: T } | null;

/** One issuer or route of the file. */
export interface Entry<T> {
  readonly path: Path;
  readonly parsed: Parsed<T>;
}

type WholeSections = { readonly [Name in WholeSectionName]: Parsed<SectionValue<Name>> };

/** What a file says, as far as it could be read. */
export interface ParsedConfig extends WholeSections {
  readonly issuers: ReadonlyMap<string, Entry<IssuerFile>>;
  /** False where `issuers` is something else, so that nothing is known of their names. */
  readonly issuersAreMap: boolean;
  readonly routes: readonly Entry<RouteFile>[];
  /** False where nothing is forwarded to `upstream`, which then stands for nothing: so does the place in `listen`. */
  readonly servesCallers: boolean;
  /** Whether an application in whose process it is decided verifies certificates; `null` where there is none. */
  readonly applicationVerifies: boolean | null;
  /** Whether a key stands in the file, whatever its value. */
  readonly isPresent: (path: Path) => boolean;
  /**
   * What stands in the file, unchecked, for rules that hold whether or not the rest could be read. A placeholder counts
   * as what its key asks for.
   */
  readonly rawValue: (path: Path) => unknown;
}

interface Reader {
  readonly root: SourceNode;
  readonly report: Report;
  /** Placeholders that were read as numbers or truth values; added to as sections are read. */
  readonly coerced: Coerced[];
}

/** Reads what the schema says of each section. */
export function parseSections(
  source: SourceNode,
  report: Report,
  applicationVerifies: boolean | null = null,
): ParsedConfig | null {
  if (source.kind !== 'map') {
    report.error([], `the config is ${source.kind === 'scalar' ? 'one value' : report.show([])}`, 'a map');
    return null;
  }
  const isKnown = (key: string): boolean => Object.hasOwn(sections, key);
  for (const key of source.entries.keys()) {
    if (!isKnown(key)) reportUnknownKey([key], key, sectionNames, report);
  }
  const has = (name: SectionName): boolean => source.entries.has(name);
  const decides = has('decide');
  const judging = decides && !has('upstream') ? withPlace(source) : null;
  const servesCallers = decides
    ? judging === null && forwardingSections.some(has)
    : !has('egress') || [...forwardingSections, ...policySections].some(has);
  const hasPolicy = servesCallers || decides;
  const reader: Reader = { root: judging ?? source, report, coerced: [] };
  const { upstream, listen } = unused;
  const whole = readWholeSections(reader, servesCallers ? {} : { upstream, ...(judging === null ? { listen } : {}) });
  const issuers = hasPolicy ? readIssuers(reader) : new Map<string, Entry<IssuerFile>>();
  const routes = hasPolicy ? readRoutes(reader) : [];
  const read = reader.coerced.reduce<SourceNode>((tree, { path, scalar }) => replaceAt(tree, path, scalar), source);
  return {
    ...whole,
    servesCallers,
    applicationVerifies,
    issuers,
    issuersAreMap: (locate(source, ['issuers']).node ?? { kind: 'map' }).kind === 'map',
    routes,
    isPresent: (path) => locate(source, path).node !== null,
    rawValue: (path) => {
      const { node } = locate(read, path);
      return node === null ? undefined : valueOf(node);
    },
  };
}

/** What the answering side needs to forward anything; a config with `decide` may leave out both. */
const forwardingSections = ['listen', 'upstream'] as const;

/** What it needs to decide anything. A config with `egress` alone may leave out all of it. */
const policySections = ['issuers', 'routes'] as const;

/** What is read where it does: nothing listens there, and nothing is asked. */
const unused = {
  listen: { host: '127.0.0.1', port: 0 },
  upstream: { url: 'unix:/unused' },
} as const;

/**
 * The file with a place in `listen`, where it names none: nothing listens there, and the rest says how requests are
 * judged that a proxy asks about. `null` where `listen` is left out, or names one.
 */
function withPlace(root: SourceMap): SourceMap | null {
  const entry = root.entries.get('listen');
  if (entry?.node.kind !== 'map' || entry.node.entries.has('host') || entry.node.entries.has('port')) return null;
  const { node, position } = entry;
  const entries = new Map(node.entries);
  for (const [key, value] of Object.entries(unused.listen)) {
    entries.set(key, {
      position,
      node: { kind: 'scalar', position, value, written: null, coercible: false, faulty: false },
    });
  }
  return { ...root, entries: new Map(root.entries).set('listen', { position, node: { ...node, entries } }) };
}

function readWholeSections(reader: Reader, given: Readonly<Partial<Record<SectionName, unknown>>>): WholeSections {
  const found: Partial<Record<SectionName, Parsed<unknown>>> = {};
  for (const name of sectionNames) {
    if (name === 'issuers' || name === 'routes') continue;
    const { schema } = sections[name];
    found[name] =
      given[name] === undefined ? readValue<unknown>(schema, [name], reader) : { value: schema.parse(given[name]) };
  }
  return found as WholeSections;
}

function readValue<T>(schema: z.ZodType<T>, path: Path, { root, report, coerced }: Reader): Parsed<T> {
  let { node } = locate(root, path);
  let result = schema.safeParse(node === null ? undefined : valueOf(node));
  if (!result.success && node !== null) {
    // A placeholder is text; where its key asks for a number or a truth value, it is read as one.
    let changed = false;
    for (const issue of specificIssues(result.error.issues)) {
      const scalar = coercePlaceholder(issue, node);
      if (scalar === null) continue;
      node = replaceAt(node, scalar.path, scalar.scalar);
      coerced.push({ path: [...path, ...scalar.path], scalar: scalar.scalar });
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
    readValue(sections.issuers.schema, ['issuers'], reader);
    return found;
  }
  for (const [name, entry] of node.entries) {
    const path = ['issuers', name];
    const named = issuerName.safeParse(name);
    if (!named.success) {
      reader.report.keyError(
        path,
        `${JSON.stringify(name)} is no name of an issuer`,
        named.error.issues[0]?.message ?? 'another name',
      );
    }
    const profile = locate(entry.node, ['profile']).node;
    const schema = issuerSchemaFor(profile === null ? undefined : valueOf(profile));
    found.set(name, { path, parsed: readValue(schema, path, reader) });
  }
  return found;
}

function readRoutes(reader: Reader): readonly Entry<RouteFile>[] {
  const { node } = locate(reader.root, ['routes']);
  if (node?.kind !== 'list' || node.items.length === 0) {
    readValue(sections.routes.schema, ['routes'], reader);
    return [];
  }
  return node.items.map((_, index) => ({
    path: ['routes', index],
    parsed: readValue(routeSchema, ['routes', index], reader),
  }));
}
