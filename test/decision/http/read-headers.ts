/** Reads a header section by the rules that most tests have. */
import type { RememberedTokens } from '../../../src/decision/token/credential.js';
import { createFieldRules, type FieldRuleSettings } from '../../../src/decision/http/header-rules.js';
import { readFields } from '../../../src/decision/http/request-headers.js';

export const host = ['Host', 'orders.example.com'];

export function read(
  rawHeaders: readonly string[],
  settings: Partial<FieldRuleSettings> = {},
  httpVersion = '1.1',
  remembered: RememberedTokens | null = null,
): ReturnType<typeof readFields> {
  const rules = createFieldRules({
    identityNames: ['X-Caller'],
    underscoreFields: 'drop',
    http10: 'refuse',
    ...settings,
  });
  return readFields({ method: 'POST', target: '/', httpVersion, rawHeaders }, rules, remembered);
}
