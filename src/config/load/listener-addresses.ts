/**
 * Where a proxy's own pages are, read from its config and nothing else: for those who ask it how it is, whatever became
 * of the file.
 */
import { isMap, isScalar, parseDocument } from 'yaml';
import { substitute, type PlaceholderSources } from './placeholders.js';

/** An address that somebody listens on. */
export interface ListenerPlace {
  readonly host: string;
  readonly port: number;
}

export interface ListenerPlaces {
  /** Admin first, then probes where the config has them. */
  readonly places: readonly ListenerPlace[];
  /** What could not be read, in words; a default stands in its place. */
  readonly doubts: readonly string[];
}

export const adminDefault: ListenerPlace = { host: '127.0.0.1', port: 9901 };
export const probesDefault: ListenerPlace = { host: '0.0.0.0', port: 9902 };

/** Where they are by default. */
export const defaultPlaces: readonly ListenerPlace[] = [adminDefault, probesDefault];

/** Reads the places from a config, of which everything else may be wrong. */
export function readListenerPlaces(text: string, sources: PlaceholderSources): ListenerPlaces {
  const whole = parse(text);
  const root: unknown = whole?.contents;
  const doubts = whole === null ? ['it is no YAML as a whole'] : isMap(root) ? [] : ['it is no map'];
  // A document that is no map holds nothing that could be found line by line.
  const sectionOf = (name: string): unknown =>
    isMap(root) ? root.get(name, true) : parse(linesOf(text, name))?.get(name, true);
  const admin = readPlace(sectionOf('admin'), 'admin', adminDefault, sources, doubts);
  const probes = sectionOf('probes');
  return {
    places: probes === undefined ? [admin] : [admin, readPlace(probes, 'probes', probesDefault, sources, doubts)],
    doubts,
  };
}

function readPlace(
  section: unknown,
  name: string,
  standard: ListenerPlace,
  sources: PlaceholderSources,
  doubts: string[],
): ListenerPlace {
  if (!isMap(section)) {
    if (section !== undefined) doubts.push(`${name} is no map`);
    return standard;
  }
  const host = valueOf(section.get('host', true), sources);
  const port = valueOf(section.get('port', true), sources);
  const isPort = port !== null && /^\d{1,5}$/.test(port) && Number(port) <= 65_535;
  if (host === '' || (host === null && section.has('host'))) doubts.push(`${name}.host cannot be read`);
  if (!isPort && section.has('port')) doubts.push(`${name}.port cannot be read`);
  return { host: host === null || host === '' ? standard.host : host, port: isPort ? Number(port) : standard.port };
}

/** The text of a scalar, its placeholders replaced. */
function valueOf(node: unknown, sources: PlaceholderSources): string | null {
  const value = isScalar(node) ? node.value : null;
  if (typeof value === 'number') return String(value);
  if (typeof value !== 'string') return null;
  const replaced = substitute(value, sources);
  return replaced.ok ? replaced.value.text : null;
}

/** `null` where it is no YAML. */
function parse(text: string): ReturnType<typeof parseDocument> | null {
  try {
    const document = parseDocument(text, { version: '1.2', schema: 'core', uniqueKeys: false, logLevel: 'silent' });
    return document.errors.length === 0 ? document : null;
  } catch {
    // The library gives up on deep nesting with an error of its own.
    return null;
  }
}

/** The lines of one section: what is wrong in the others cannot reach it. */
function linesOf(text: string, name: string): string {
  const lines = text.split(/\r?\n/);
  const first = lines.findIndex((line) => line.startsWith(`${name}:`));
  if (first < 0) return '';
  const count = lines.slice(first + 1).findIndex((line) => /^[^\s#]/.test(line));
  return lines.slice(first, count < 0 ? undefined : first + 1 + count).join('\n');
}
