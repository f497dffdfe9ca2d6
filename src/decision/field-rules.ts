import { isFieldName, lookAlikeKey } from './field-name.js';
import {
  consultedFields, consultedPrefixes, defaultIdentityNames, hopByHopFields, judgedFields, originFields, originPrefixes, overrideFields, overridePrefixes,
  reservationFields, type JudgedField,
} from './known-fields.js';
import { remembered, type MemoryLimits } from './remembered.js';
import { strippedKind, type StrippedKind } from './stripped-fields.js';

/** What becomes of a caller's field by its name. */
export type RequestFieldKind =
  | JudgedField
  /** Goes to the receiver as it came. */
  | 'passed'
  /** Ends here and is not counted. */
  | 'hop-by-hop'
  /** Is, or could be taken for, a field that only we set or judge: dropped and counted. */
  | 'reserved'
  /** Has an underscore, where these are dropped and counted. */
  | 'underscored'
  /** Has an underscore, where these are refused. */
  | 'refused'
  | 'malformed';

/** What becomes of a receiver's field by its name. */
export type ResponseFieldKind = 'passed' | 'dropped' | 'connection' | 'proxy-status';

/** What the names of fields mean under one config. */
export interface FieldRules {
  readonly http10: 'refuse' | 'allow';
  readonly requestKind: (name: string) => RequestFieldKind;
  /** As what a caller's field is counted that is dropped: one that is `reserved` or `underscored`. */
  readonly strippedKind: (name: string) => StrippedKind;
  readonly responseKind: (name: string) => ResponseFieldKind;
}

/** What of the config field rules depend on. */
export interface FieldRuleSettings {
  /** Names of the identity headers in use, the assertion's among them. */
  readonly identityNames: readonly string[];
  readonly underscoreFields: 'drop' | 'allow' | 'refuse';
  readonly http10: 'refuse' | 'allow';
}

/** What looks like one of these, but is spelt another way, is not the caller's to send. */
const reservedKeys = keysOf(judgedFields.keys(), hopByHopFields, reservationFields, originFields, overrideFields);

const reservedPrefixes = [...originPrefixes, ...overridePrefixes];

/** Names are the callers' to choose, so what is remembered of them has an end: about 50 KiB. */
const memory: MemoryLimits = { maxNames: 512, maxLength: 64 };

/** Works out the rules once for each config. */
export function createFieldRules(settings: FieldRuleSettings): FieldRules {
  const identityKeys = new Set([...defaultIdentityNames, ...settings.identityNames].map(lookAlikeKey));
  const droppedFromAnswers = keysOf(identityKeys, hopByHopFields, [
    'Transfer-Encoding', 'Upgrade', 'Connection', 'Proxy-Status', 'Idempotent-Replayed', 'Idempotency-Outcome', 'X-Request-Id',
  ]);
  return {
    http10: settings.http10,
    requestKind: remembered(name => requestKind(name, identityKeys, settings.underscoreFields), memory),
    strippedKind: remembered(name => strippedKind(name, identityKeys, isReserved(lookAlikeKey(name))), memory),
    responseKind: remembered(name => responseKind(name, droppedFromAnswers), memory),
  };
}

/**
 * Tells whether the config may give this name to an identity header: a name without underscores that neither Sallyport nor
 * the connection gives another meaning. The caller's field of that name is dropped: of one that is read here nothing would be left.
 */
export function mayNameIdentity(name: string): boolean {
  const lowerCase = name.toLowerCase();
  if (consultedFields.has(lowerCase) || consultedPrefixes.some(prefix => lowerCase.startsWith(prefix))) return false;
  return requestKind(name, new Set(), 'refuse') === 'passed';
}

function requestKind(
  name: string, identityKeys: ReadonlySet<string>, underscoreFields: FieldRuleSettings['underscoreFields'],
): RequestFieldKind {
  if (!isFieldName(name)) return 'malformed';
  const key = lookAlikeKey(name);
  if (identityKeys.has(key)) return 'reserved';
  const lowerCase = name.toLowerCase();
  const judged = judgedFields.get(lowerCase);
  if (judged !== undefined) return judged;
  if (hopByHopFields.has(lowerCase)) return 'hop-by-hop';
  if (isReserved(key)) return 'reserved';
  if (!name.includes('_') || underscoreFields === 'allow') return 'passed';
  return underscoreFields === 'drop' ? 'underscored' : 'refused';
}

function isReserved(key: string): boolean {
  return reservedKeys.has(key) || reservedPrefixes.some(prefix => key.startsWith(prefix));
}

function responseKind(name: string, droppedKeys: ReadonlySet<string>): ResponseFieldKind {
  const lowerCase = name.toLowerCase();
  if (lowerCase === 'connection' || lowerCase === 'proxy-status') return lowerCase;
  return !isFieldName(name) || droppedKeys.has(lookAlikeKey(name)) ? 'dropped' : 'passed';
}

function keysOf(...lists: readonly Iterable<string>[]): ReadonlySet<string> {
  return new Set(lists.flatMap(list => Array.from(list, lookAlikeKey)));
}
