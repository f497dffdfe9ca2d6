/** What a proxy has to do with the headers of a request that it may forward. */
import {
  isFieldName,
  lookAlikeKey,
  originHeaders,
  originPrefixes,
  principalHeaders,
  principalPrefixes,
} from '../http/header-names.js';
import type { HeaderRules } from '../http/header-rules.js';
import { combine } from '../http/header-values.js';
import type { IdentityHeaders } from '../route/policy.js';
import type { Form } from './forms.js';

/** Edits of a request's headers: the names to remove, and names and values in turn to set. */
interface HeaderEdits {
  readonly set: readonly string[];
  readonly remove: readonly string[];
}

/** Proxies that remove from a request what one answer names. The others set a fixed list of names. */
const removing: ReadonlySet<Form> = new Set<Form>(['envoy', 'haproxy', 'apache']);

/** Tells whether the proxy removes the headers that an answer names. */
export function removesNames(form: Form): boolean {
  return removing.has(form);
}

/**
 * Names that every answer has, empty where there is nothing to say: the proxy sets them all, so that a client's own
 * never go on.
 */
export function answeredNames(identity: IdentityHeaders, assertionHeader: string | null): readonly string[] {
  const names = [...Object.values<string | null>({ ...identity }), assertionHeader, 'Authorization'];
  return names.filter((name) => name !== null);
}

const originKeys: ReadonlySet<string> = new Set(originHeaders.map(lookAlikeKey));
const principalKeys: ReadonlySet<string> = new Set(principalHeaders.map(lookAlikeKey));

/** What proxies, and networks before them, say of where a request came from: in their spelling, never of who calls. */
function isOfFront(name: string): boolean {
  const key = lookAlikeKey(name);
  if (name.includes('_') || key.startsWith('remote') || principalKeys.has(key)) return false;
  if (principalPrefixes.some((prefix) => key.startsWith(prefix))) return false;
  return originKeys.has(key) || originPrefixes.some((prefix) => key.startsWith(prefix));
}

/** Headers of responses alone that are for one connection: proxies need not know them in a request. */
const ofResponses: ReadonlySet<string> = new Set(['proxy-authenticate', 'proxy-authentication-info']);

/**
 * Finds a header of the described request that the upstream must not get, and that a proxy with a fixed list of names
 * would forward; `null` where there is none. What else is for one connection is the proxy's to end.
 *
 * @param answered names that the proxy sets itself, in lower case.
 */
export function unremovableHeader(
  rawHeaders: readonly string[],
  rules: HeaderRules,
  answered: ReadonlySet<string>,
): string | null {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (isUnwanted(name, rules) && !answered.has(name.toLowerCase()) && !isOfFront(name)) return name;
  }
  return null;
}

function isUnwanted(name: string, rules: HeaderRules): boolean {
  const kind = isFieldName(name) ? rules.requestKind(name) : 'malformed';
  return kind === 'reserved' || kind === 'underscored' || ofResponses.has(name.toLowerCase());
}

/** Of the proxy's own connection to the upstream: whether it takes trailers, and which come. */
const ofOnward: ReadonlySet<string> = new Set(['te', 'trailer']);

/**
 * Works out what a proxy that removes by name has to do, so that the upstream gets what the sidecar would forward. What
 * the proxy itself says of its connection and of the client's address is left to it.
 *
 * @param forwarded what the sidecar would forward, names and values in turn.
 * @param answered as in `answeredNames`.
 */
export function headerEdits(
  rawHeaders: readonly string[],
  forwarded: readonly string[],
  rules: HeaderRules,
  answered: readonly string[],
): HeaderEdits {
  const wanted = valuesByName(forwarded);
  const set: string[] = [];
  const remove = new Map<string, string>();
  const settled = new Set<string>();
  const want = (name: string): void => {
    const lowerCase = name.toLowerCase();
    if (settled.has(lowerCase)) return;
    settled.add(lowerCase);
    const value = wanted.get(lowerCase);
    if (value === undefined) remove.set(lowerCase, name);
    else set.push(name, value);
  };
  for (const name of answered) want(name);
  const had = valuesByName(rawHeaders);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const lowerCase = name.toLowerCase();
    const kind = isFieldName(name) ? rules.requestKind(name) : 'malformed';
    if ((kind === 'reserved' && !isOfFront(name)) || kind === 'underscored' || kind === 'dpop') want(name);
    else if (kind === 'hop-by-hop' && !ofOnward.has(lowerCase)) want(name);
    else if (kind === 'passed' && had.get(lowerCase) !== wanted.get(lowerCase)) want(name);
  }
  return { set, remove: [...remove.values()] };
}

function valuesByName(rawHeaders: readonly string[]): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    const value = rawHeaders[i + 1] ?? '';
    const earlier = values.get(name);
    // In a comma readers of cookies see no end of one (RFC 6265 §5.4, RFC 9113 §8.2.3).
    const isMore = name === 'cookie' && earlier !== undefined;
    values.set(name, isMore ? `${earlier}; ${value}` : combine(earlier, value));
  }
  return values;
}

/**
 * Writes an allow as names and values in turn, for a proxy that sets a fixed list of names: every answered name and
 * that of proofs, empty where it has no value.
 */
export function answerHeaders(forwarded: readonly string[], answered: readonly string[]): string[] {
  const wanted = valuesByName(forwarded);
  return [...answered, 'DPoP'].flatMap((name) => [name, wanted.get(name.toLowerCase()) ?? '']);
}
