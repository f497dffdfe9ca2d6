import { withoutFields } from './connection-options.js';
import type { FieldRules } from './field-rules.js';
import { isFieldValue, listElements } from './field-value.js';
import { withoutOwnMember } from './proxy-status.js';

/**
 * Cleans the header section of a receiver's answer for the caller, names and values in turn (contract 3.8): without
 * hop-by-hop fields and those that Connection names, and without what only Sallyport says. Lines of one name stay apart,
 * for Set-Cookie cannot be combined. A field that cannot be sent is left out, so that it costs itself and not the answer.
 */
export function callerFields(rawHeaders: readonly string[], rules: FieldRules, requestId: string): string[] {
  const kept: string[] = [];
  const removes = new Set<string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    const kind = rules.responseKind(name);
    if (kind === 'dropped' || !isFieldValue(value)) continue;
    if (kind === 'connection') {
      for (const option of listElements(value)) {
        if (rules.responseKind(option) !== 'dropped') removes.add(option);
      }
      continue;
    }
    const sent = kind === 'proxy-status' ? withoutOwnMember(value) : value;
    if (sent !== null) kept.push(name, sent);
  }
  return ['X-Request-Id', requestId, ...withoutFields(kept, removes)];
}
