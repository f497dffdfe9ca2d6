import { sessionIssuerName, sessionKeyIds } from '../../../decision/session/token.js';
import { loadSessions } from '../../../app/sessions.js';
import type { SessionSettings } from '../../../config/types.js';
import { largestClockSkewS } from '../../../decision/idempotency/dispatch-check.js';
import { ok, problem, type Finding } from './finding.js';
import { checkIssuer } from './keys.js';

/** Looks at what routes that accept sessions need: the SDK, the Core's keys and its clock. */
export async function checkSessions(settings: SessionSettings | null): Promise<readonly Finding[]> {
  if (settings === null) return [];
  const sdk = await loadSessions(settings);
  const loaded = sdk.ok
    ? ok('sessions', 'the SDK is installed')
    : problem('sessions', sdk.error.messages.join('; '), 'npm install supertokens-node@24');
  return [
    loaded,
    ...(await checkIssuer({
      rules: { name: sessionIssuerName, keyIds: sessionKeyIds, clockSkewS: largestClockSkewS },
      keys: settings.keys,
    })),
  ];
}
