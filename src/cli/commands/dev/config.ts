import {
  Document,
  isCollection,
  isMap,
  isNode,
  isScalar,
  parse,
  parseDocument,
  visit,
  type Pair,
  type Range,
  type YAMLMap,
} from 'yaml';
import { changedSource, textSource, type ConfigSource } from '../../../app/config/config-source.js';
import { accept } from '../../../lib/result.js';
import { issuerSection, type DevProfile } from './profiles.js';

/** Where the parts of `dev` listen. */
export interface DevPlaces {
  /** The caller's port; 0 asks the system for a free one. */
  readonly port: number;
  readonly profile: DevProfile;
  /** Of the emulated Core, or of the issuer of another profile. */
  readonly issuerUrl: string;
  readonly upstreamUrl: string;
  /** Whether callers and the upstream speak HTTP/2. */
  readonly http2?: boolean;
  /** `listen` beside host and port. */
  readonly listen?: object;
}

/**
 * Sections that `dev` takes from a config of the user. What is known of the router decides which routes are safe, so it
 * is one.
 */
const takenSections: ReadonlySet<string> = new Set(['routes', 'identity', 'receiver']);

/**
 * Writes the config that `dev` runs: routes, identity headers and what is known of the router from the text, everything
 * else for loopback. What is left out becomes blanks and what is added comes last, so that problems are reported at the
 * lines of the user's file. A text that is no YAML map is returned as it is, for the reader of configs to refuse.
 */
export function composeDevConfig(text: string, places: DevPlaces): string {
  const document = parseDocument(text);
  const map = document.contents;
  if (document.errors.length > 0 || !isMap(map)) return text;
  const sections = devSections(places, issuerNames(map, places), sessionsOf(map, places));
  const [start, , end] = map.range;
  const kept = map.items.reduce(
    (rest, pair) => (takenSections.has(keyOf(pair)) ? rest : blank(rest, pair, map.flow === true)),
    text,
  );
  if (map.flow === true) return `${kept.slice(0, start + 1)}${sections.join(', ')}, ${kept.slice(start + 1)}`;
  const indent = ' '.repeat(start - (text.lastIndexOf('\n', start - 1) + 1));
  return `${kept.slice(0, end)}\n${sections.map((section) => `${indent}${section}\n`).join('')}${kept.slice(end)}`;
}

/** The config of `dev` from routes of our own. */
export function builtInSource(routes: string, places: DevPlaces): ConfigSource {
  return textSource(composeDevConfig(routes, places), 'the config of dev');
}

/** The config of `dev` from one of the user, which is composed anew whenever that changes. */
export function composedSource(source: ConfigSource, places: DevPlaces): ConfigSource {
  return changedSource(source, (text) => (text.ok ? accept(composeDevConfig(text.value, places)) : text));
}

/** A config for people: whose tokens count, who may do what and where calls go first, and short things in one line. */
export function shownConfig(text: string): string {
  const { issuers, routes, egress, ...rest } = parse(text) as Readonly<Record<string, unknown>>;
  const document = new Document({ issuers, routes, egress, ...rest });
  visit(document, {
    Seq: (_, list) => {
      if (!list.items.some(isCollection)) list.flow = true;
    },
    Map: (_, map, { length: depth }) => {
      // The map of a document is at 1, the sections of it behind their pairs.
      const isSection = depth === 3;
      if (isSection && map !== document.get('issuers') && map !== document.get('egress')) map.flow = true;
    },
  });
  return document
    .toString({ lineWidth: 0 })
    .replaceAll(': [ ', ': [')
    .replace(/ \](?=\n| \})/g, ']');
}

function devSections(
  { port, profile, issuerUrl, upstreamUrl, http2 = false, listen = {} }: DevPlaces,
  names: readonly string[],
  sessions: object | null,
): readonly string[] {
  const issuers = names.map((name) => [name, issuerSection(profile, issuerUrl, name)]);
  const sections = {
    listen: { host: '127.0.0.1', port, ...(http2 ? { http2 } : {}), ...listen },
    admin: { host: '127.0.0.1', port: 0 },
    upstream: { url: upstreamUrl, ...(http2 ? { http2 } : {}) },
    issuers: Object.fromEntries(issuers) as unknown,
    ...(sessions === null ? {} : { sessions }),
    // Routes may reserve; what dev keeps is forgotten with it.
    store: { memory: {} },
    // Nobody waits for a load balancer here, only for Ctrl-C.
    shutdown: { delay: '0s', grace: '1s' },
    // Who edits watches what it does.
    reload: { least_age: '0s' },
  };
  return Object.entries(sections).map(([name, section]) => `${name}: ${JSON.stringify(section)}`);
}

/** Routes may accept sessions: those of the emulator, by the names that the service which makes them goes by. */
function sessionsOf(map: YAMLMap, { issuerUrl }: DevPlaces): object | null {
  const written = map.get('sessions');
  if (!isMap(written)) return null;
  const names = ['api_domain', 'api_base_path']
    .map((key) => [key, written.get(key)] as const)
    .filter(([, name]) => typeof name === 'string');
  return { api_domain: issuerUrl, ...(Object.fromEntries(names) as object), core_url: issuerUrl };
}

/** Routes may name issuers, so each name stays; behind all of them is the emulator. */
function issuerNames(map: YAMLMap, { profile }: DevPlaces): readonly string[] {
  const issuers = map.get('issuers');
  const names = isMap(issuers) ? issuers.items.map(keyOf) : [];
  return names.length > 0 ? names : [profile === 'core' ? 'core' : 'dev'];
}

function keyOf({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : '';
}

/** Replaces a section by blanks of the same length; in a flow map its comma too. */
function blank(text: string, { key, value }: Pair, inFlow: boolean): string {
  const start = rangeOf(key)?.[0];
  const end = rangeOf(value)?.[1] ?? rangeOf(key)?.[1];
  if (start === undefined || end === undefined) return text;
  const comma = inFlow ? (/^\s*,/.exec(text.slice(end))?.[0].length ?? 0) : 0;
  return text.slice(0, start) + text.slice(start, end + comma).replace(/[^\r\n]/g, ' ') + text.slice(end + comma);
}

function rangeOf(node: unknown): Range | null {
  return isNode(node) ? (node.range ?? null) : null;
}
