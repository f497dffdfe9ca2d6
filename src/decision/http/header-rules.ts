import {
  carriedKey,
  isFieldName,
  lookAlikeKey,
  namesOneOf,
  certificateHeaders,
  certificatePrefixes,
  clientCertHeader,
  consultedHeaders,
  consultedPrefixes,
  defaultIdentityNames,
  hopByHopHeaders,
  judgedHeaders,
  originHeaders,
  originPrefixes,
  overrideHeaders,
  overridePrefixes,
  principalHeaders,
  principalPrefixes,
  reservationHeaders,
  secondPathHeaders,
  type JudgedHeader,
} from './header-names.js';
import { memoize, type MemoryLimits } from '../../lib/memo.js';
import { strippedKind, type StrippedKind } from './stripped-headers.js';

/** What becomes of a caller's header by its name. */
export type RequestHeaderKind =
  | JudgedHeader
  /** Goes to the upstream as it came. */
  | 'passed'
  /** Ends here and is not counted. */
  | 'hop-by-hop'
  /** Is, or could be taken for, a header that only we set or judge: dropped and counted. */
  | 'reserved'
  /** Has an underscore, where these are dropped and counted. */
  | 'underscored'
  /** Has an underscore, where these are refused. */
  | 'refused'
  | 'malformed';

/** What becomes of an upstream's header by its name. */
type ResponseHeaderKind = 'passed' | 'dropped' | 'connection' | 'proxy-status';

/** What the names of headers mean under one config. */
export interface HeaderRules {
  readonly http10: 'refuse' | 'allow';
  readonly requestKind: (name: string) => RequestHeaderKind;
  /** The kind under which a caller's dropped header is counted; only for one that is `reserved` or `underscored`. */
  readonly strippedKind: (name: string) => StrippedKind;
  readonly responseKind: (name: string) => ResponseHeaderKind;
}

/** What of the config header rules depend on. */
export interface HeaderRuleSettings {
  /** Names of the identity headers in use, the assertion's among them. */
  readonly identityNames: readonly string[];
  readonly underscoreFields: 'drop' | 'allow' | 'refuse';
  readonly http10: 'refuse' | 'allow';
  /** Whether `Client-Cert` is read. */
  readonly readsClientCert?: boolean;
  /** Further names that callers may not send, in any spelling. */
  readonly stripFields?: readonly string[];
  /** Names that go on, in their own spelling, though they are removed otherwise. */
  readonly passFields?: readonly string[];
  /** Whether upstreams may be such proxies themselves, whose word on a response is passed on. */
  readonly passesOwnWord?: boolean;
}

/** What looks like one of these, but is spelt another way, is not the caller's to send. */
const reservedKeys = keysOf(
  judgedHeaders.keys(),
  hopByHopHeaders,
  reservationHeaders,
  originHeaders,
  principalHeaders,
  certificateHeaders,
  overrideHeaders,
  secondPathHeaders,
);

const reservedPrefixes = [...originPrefixes, ...principalPrefixes, ...certificatePrefixes, ...overridePrefixes];

const principalKeys = keysOf(principalHeaders);

const secondPathKeys = keysOf(secondPathHeaders);

/**
 * Names that the config may not have removed: what Sallyport and the connection read and set, in any spelling, and what
 * says how a body is encoded and which part of the whole it is.
 */
const neededKeys = keysOf(
  judgedHeaders.keys(),
  hopByHopHeaders,
  consultedHeaders,
  reservationHeaders,
  defaultIdentityNames,
  ['Content-Encoding', 'Content-Range'],
);

/** What changes from config to config. */
interface ChosenNames {
  readonly identityKeys: ReadonlySet<string>;
  readonly listedKeys: ReadonlySet<string>;
  /** In lower case. */
  readonly passNames: ReadonlySet<string>;
  readonly readsClientCert: boolean;
  readonly underscoreFields: HeaderRuleSettings['underscoreFields'];
}

/** Names are the callers' to choose, so what is remembered of them has an end: about 50 KiB. */
const memory: MemoryLimits = { maxNames: 512, maxLength: 64 };

/** Works out the rules once for each config. */
export function createHeaderRules(settings: HeaderRuleSettings): HeaderRules {
  const { underscoreFields, stripFields = [], passFields = [], passesOwnWord = false } = settings;
  const identityKeys = keysOf(defaultIdentityNames, settings.identityNames);
  const listedKeys = keysOf(stripFields);
  const chosen: ChosenNames = {
    identityKeys,
    listedKeys,
    passNames: new Set(passFields.map((name) => name.toLowerCase())),
    readsClientCert: settings.readsClientCert ?? false,
    underscoreFields,
  };
  const droppedFromResponses = keysOf(identityKeys, hopByHopHeaders, [
    'Transfer-Encoding',
    'Upgrade',
    'Connection',
    ...(passesOwnWord ? [] : ['Proxy-Status', 'Idempotent-Replayed', 'Idempotency-Outcome']),
    'Idempotency-Record',
    'X-Request-Id',
  ]);
  return {
    http10: settings.http10,
    requestKind: memoize((name) => requestKind(name, chosen), memory),
    strippedKind: memoize((name) => strippedKind(name, { identityKeys, listedKeys, isReserved }), memory),
    responseKind: memoize((name) => responseKind(name, droppedFromResponses, passesOwnWord), memory),
  };
}

const defaultIdentityKeys = keysOf(defaultIdentityNames);

const nothingChosen: ChosenNames = {
  identityKeys: new Set(),
  listedKeys: new Set(),
  passNames: new Set(),
  readsClientCert: false,
  underscoreFields: 'refuse',
};

/**
 * Tells whether the config may give this name to an identity header: a name without underscores that neither Sallyport
 * nor the connection gives another meaning, or by which others tell the upstream who the caller is. The caller's header
 * of that name is dropped: of one that is read here nothing would be left.
 */
export function mayNameIdentity(name: string): boolean {
  if (isConsulted(name)) return false;
  return requestKind(name, nothingChosen) === 'passed' || (!name.includes('_') && isPrincipal(lookAlikeKey(name)));
}

/**
 * Tells whether a header may name what a request does: one that goes on as the caller sent it. Others are set or
 * removed here: they would name every request alike, or each one differently.
 */
export function mayNameOperation(name: string): boolean {
  return requestKind(name, { ...nothingChosen, identityKeys: defaultIdentityKeys }) === 'passed';
}

/**
 * Tells whether the config may have this header removed: not where Sallyport, or the framing and meaning of a body,
 * need it.
 */
export function mayStrip(name: string): boolean {
  return !isConsulted(name) && !neededKeys.has(lookAlikeKey(name));
}

/**
 * Tells whether the config may have this header go on that is removed otherwise: one that a proxy in front sets, or
 * that names a second path. What would have the upstream act on another method or host than was judged never goes on.
 */
export function mayPass(name: string): boolean {
  const key = carriedKey(lookAlikeKey(name));
  if (!isFieldName(name) || name.includes('_') || !isReserved(key) || neededKeys.has(key)) return false;
  return secondPathKeys.has(key) || strippedKind(name, { ...nothingChosen, isReserved }) === 'forwarded';
}

function requestKind(
  name: string,
  { identityKeys, listedKeys, passNames, readsClientCert, underscoreFields }: ChosenNames,
): RequestHeaderKind {
  if (!isFieldName(name)) return 'malformed';
  const key = lookAlikeKey(name);
  if (namesOneOf(identityKeys, key)) return 'reserved';
  const lowerCase = name.toLowerCase();
  const judged = judgedHeaders.get(lowerCase);
  if (judged !== undefined) return judged;
  if (readsClientCert && lowerCase === clientCertHeader) return clientCertHeader;
  if (hopByHopHeaders.has(lowerCase)) return 'hop-by-hop';
  if (passNames.has(lowerCase)) return 'passed';
  if (isReserved(carriedKey(key)) || (namesOneOf(listedKeys, key) && !isConsulted(name))) return 'reserved';
  if (!name.includes('_') || underscoreFields === 'allow') return 'passed';
  return underscoreFields === 'drop' ? 'underscored' : 'refused';
}

function isConsulted(name: string): boolean {
  const lowerCase = name.toLowerCase();
  return consultedHeaders.has(lowerCase) || consultedPrefixes.some((prefix) => lowerCase.startsWith(prefix));
}

function isPrincipal(key: string): boolean {
  return principalKeys.has(key) || principalPrefixes.some((prefix) => key.startsWith(prefix));
}

function isReserved(key: string): boolean {
  return reservedKeys.has(key) || reservedPrefixes.some((prefix) => key.startsWith(prefix));
}

function responseKind(name: string, droppedKeys: ReadonlySet<string>, passesOwnWord: boolean): ResponseHeaderKind {
  const lowerCase = name.toLowerCase();
  if (lowerCase === 'connection') return lowerCase;
  if (lowerCase === 'proxy-status') return passesOwnWord ? 'passed' : lowerCase;
  return !isFieldName(name) || droppedKeys.has(lookAlikeKey(name)) ? 'dropped' : 'passed';
}

function keysOf(...lists: readonly Iterable<string>[]): ReadonlySet<string> {
  return new Set(lists.flatMap((list) => Array.from(list, lookAlikeKey)));
}
