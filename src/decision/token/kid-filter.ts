import type { KeyIdRules } from '../route/policy.js';
import { isVisibleAscii } from '../../lib/text.js';

/** Longest `kid`, in characters: those of the Core have 38 at most. */
const maxKeyIdLength = 256;

/** Tells whether a value has the form of a `kid`: 1 to 256 visible ASCII characters. */
export function isKeyId(value: unknown): value is string {
  return isVisibleAscii(value, maxKeyIdLength);
}

/**
 * Tells whether tokens signed with this key count: some `accept` pattern matches and no `reject` pattern does. A
 * pattern that ends in `*` stands for every key id that begins with what is before it; others are compared whole.
 */
export function acceptsKeyId(rules: KeyIdRules, keyId: string): boolean {
  return (
    rules.accept.some((pattern) => matches(pattern, keyId)) && !rules.reject.some((pattern) => matches(pattern, keyId))
  );
}

function matches(pattern: string, keyId: string): boolean {
  return pattern.endsWith('*') ? keyId.startsWith(pattern.slice(0, -1)) : keyId === pattern;
}
