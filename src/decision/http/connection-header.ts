import { denial, type Denial } from '../denial.js';
import { isFieldName } from './header-names.js';
import type { RequestHeaderKind } from './header-rules.js';
import { listElements } from './header-values.js';
import { accept, refuse, type Result } from '../../lib/result.js';

/** What a caller's Connection headers ask for. */
interface ConnectionOptions {
  readonly closes: boolean;
  readonly keepsAlive: boolean;
  readonly upgrades: boolean;
  /** Names of headers, in lower case, that end here. */
  readonly removes: ReadonlySet<string>;
}

/** Options that say something of the connection itself; all others are names of headers to remove (RFC 9110 §7.6.1). */
const ownOptions: ReadonlySet<string> = new Set(['close', 'keep-alive', 'te', 'upgrade', 'http2-settings']);

/** What a Connection header may name: nothing that we set or judge. */
const removable: ReadonlySet<RequestHeaderKind> = new Set<RequestHeaderKind>([
  'passed',
  'hop-by-hop',
  'underscored',
  'refused',
]);

const noOptions: ConnectionOptions = { closes: false, keepsAlive: false, upgrades: false, removes: new Set() };

/** What almost every client sends, where it sends the header. */
const keepsAliveOnly: ConnectionOptions = { ...noOptions, keepsAlive: true };

/**
 * Reads Connection, its lines combined. Refusals: `field_malformed`, and `connection_option` for one that names a
 * header that we set or judge, or what looks like one: whoever obeyed it would remove an identity header, or the key by
 * which a request was reserved.
 */
export function readConnection(
  value: string | undefined,
  kindOf: (name: string) => RequestHeaderKind,
): Result<ConnectionOptions, Denial> {
  if (value === undefined) return accept(noOptions);
  if (value === 'keep-alive') return accept(keepsAliveOnly);
  const options = listElements(value);
  const named = options.filter((option) => !ownOptions.has(option));
  if (!named.every(isFieldName)) return refuse(denial('field_malformed'));
  if (!named.every((name) => removable.has(kindOf(name)))) return refuse(denial('connection_option'));
  return accept({
    closes: options.includes('close'),
    keepsAlive: options.includes('keep-alive'),
    upgrades: options.includes('upgrade'),
    removes: named.length === 0 ? noOptions.removes : new Set(named),
  });
}

/** Leaves out the headers of these names, in lower case, from names and values in turn. */
export function withoutHeaders(headers: readonly string[], names: ReadonlySet<string>): readonly string[] {
  if (names.size === 0) return headers;
  return headers.filter((_text, i) => !names.has((headers[i - (i % 2)] ?? '').toLowerCase()));
}
