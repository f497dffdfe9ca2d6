/** Reads a header section by the rules that most tests have. */
import type { RememberedTokens } from '../../../src/decision/token/credential.js';
import { createHeaderRules, type HeaderRuleSettings } from '../../../src/decision/http/header-rules.js';
import { readHeaders } from '../../../src/decision/http/request-headers.js';

export const host = ['Host', 'orders.example.com'];

export function read(
  rawHeaders: readonly string[],
  settings: Partial<HeaderRuleSettings> = {},
  httpVersion = '1.1',
  remembered: RememberedTokens | null = null,
): ReturnType<typeof readHeaders> {
  const rules = createHeaderRules({
    identityNames: ['X-Caller'],
    underscoreFields: 'drop',
    http10: 'refuse',
    ...settings,
  });
  return readHeaders({ method: 'POST', target: '/', httpVersion, rawHeaders }, rules, remembered);
}
