/** Headers of callers that are dropped, told apart so that an attack stands out from what every proxy sends. */
import {
  carriedKey,
  lookAlikeKey,
  namesOneOf,
  certificateHeaders,
  certificatePrefixes,
  hopByHopHeaders,
  originHeaders,
  originPrefixes,
  principalHeaders,
  principalPrefixes,
  reservationHeaders,
  type JudgedHeader,
} from './header-names.js';

/**
 * - `identity`: would tell the upstream who the caller is, or what becomes of its reservation. Only Sallyport says so
 * - `forwarded`: what a proxy in front says of the request and of its caller, and ids and traces of it that are
 *   malformed
 * - `override`: would have the upstream act on something else than was judged
 * - `listed`: the operator's list has it
 * - `hop`: looks like a header of the connection or of the message's framing
 * - `underscore`: any other name with an underscore, where these are dropped
 */
export const strippedKinds = ['identity', 'forwarded', 'override', 'listed', 'hop', 'underscore'] as const;

export type StrippedKind = (typeof strippedKinds)[number];

/** How many of each kind; a kind without any is left out. */
export type StrippedHeaders = Readonly<Partial<Record<StrippedKind, number>>>;

/** What almost every request has. */
export const nothingStripped: StrippedHeaders = Object.freeze({});

/** These and some more of a kind. */
export function addStripped(to: StrippedHeaders, kind: StrippedKind, count: number): StrippedHeaders {
  return count === 0 ? to : { ...to, [kind]: (to[kind] ?? 0) + count };
}

/** Of all kinds together. */
export function totalStripped(stripped: StrippedHeaders): number {
  return strippedKinds.reduce((total, kind) => total + (stripped[kind] ?? 0), 0);
}

/** The kind under which a judged header is counted when it is dropped for its spelling. */
const judgedAs: Readonly<Record<JudgedHeader, StrippedKind>> = {
  authorization: 'identity',
  'client-cert': 'forwarded',
  dpop: 'identity',
  connection: 'hop',
  'content-length': 'hop',
  expect: 'hop',
  'transfer-encoding': 'hop',
  upgrade: 'hop',
  'content-type': 'override',
  host: 'override',
  'idempotency-key': 'override',
  traceparent: 'forwarded',
  tracestate: 'forwarded',
  via: 'forwarded',
  'x-forwarded-for': 'forwarded',
  'x-forwarded-host': 'forwarded',
  'x-forwarded-proto': 'forwarded',
  'x-request-id': 'forwarded',
};

const kindOfKey: ReadonlyMap<string, StrippedKind> = new Map([
  ...reservationHeaders.map((name): [string, StrippedKind] => [lookAlikeKey(name), 'identity']),
  ...[...originHeaders, ...principalHeaders, ...certificateHeaders].map((name): [string, StrippedKind] => [
    lookAlikeKey(name),
    'forwarded',
  ]),
  ...Array.from(hopByHopHeaders, (name): [string, StrippedKind] => [lookAlikeKey(name), 'hop']),
  ...Object.entries(judgedAs).map(([name, kind]): [string, StrippedKind] => [lookAlikeKey(name), kind]),
]);

const forwardedPrefixes = [...originPrefixes, ...principalPrefixes, ...certificatePrefixes];

/** What the kind of a dropped header depends on. */
interface StrippedHeaderRules {
  /** Of the identity headers and of what the operator lists. */
  readonly identityKeys: ReadonlySet<string>;
  readonly listedKeys: ReadonlySet<string>;
  /** Whether the name is, or looks like, one that we set, judge or remove under any config. */
  readonly isReserved: (key: string) => boolean;
}

/**
 * Returns the kind of a dropped header: one whose name is, or looks like, one that we set, judge or remove, or that has
 * an underscore.
 */
export function strippedKind(
  name: string,
  { identityKeys, listedKeys, isReserved }: StrippedHeaderRules,
): StrippedKind {
  const key = lookAlikeKey(name);
  const carried = carriedKey(key);
  if (namesOneOf(identityKeys, key)) return 'identity';
  if (namesOneOf(listedKeys, key)) return 'listed';
  if (!isReserved(carried)) return 'underscore';
  const isForwarded = forwardedPrefixes.some((prefix) => carried.startsWith(prefix));
  return kindOfKey.get(carried) ?? (isForwarded ? 'forwarded' : 'override');
}
