import { withoutHeaders } from './connection-header.js';
import type { HeaderRules } from './header-rules.js';
import { isFieldValue, listElements } from './header-values.js';
import { withoutOwnMember } from './proxy-status.js';

/**
 * Cleans the header section of an upstream's response for the caller, names and values in turn: without
 * hop-by-hop headers and those that Connection names, and without what only Sallyport says. Lines of one name stay
 * apart, for Set-Cookie cannot be combined. A header that cannot be sent is left out, so that it costs itself and not
 * the response.
 */
export function clientHeaders(
  status: number,
  rawHeaders: readonly string[],
  rules: HeaderRules,
  requestId: string,
): string[] {
  const kept: string[] = ['X-Request-Id', requestId];
  // There is no body whose length it could be (RFC 9110 §8.6).
  let removes: Set<string> | null = status < 200 || status === 204 ? new Set(['content-length']) : null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    const kind = rules.responseKind(name);
    if (kind === 'dropped' || !isFieldValue(value)) continue;
    if (kind === 'connection') {
      // What almost every upstream says names no header.
      if (value === 'keep-alive') continue;
      for (const option of listElements(value)) {
        if (rules.responseKind(option) !== 'dropped') (removes ??= new Set()).add(option);
      }
      continue;
    }
    const sent = kind === 'proxy-status' ? withoutOwnMember(value) : value;
    if (sent !== null) kept.push(name, sent);
  }
  return removes === null ? kept : [...withoutHeaders(kept, removes)];
}
