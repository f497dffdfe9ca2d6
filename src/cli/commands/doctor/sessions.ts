import { loadSessions } from '../../../app/sessions.js';
import type { SessionSettings } from '../../../config/types.js';
import type { KeyIdRules } from '../../../decision/route/policy.js';
import { largestClockSkewS } from '../../../decision/idempotency/dispatch-check.js';
import { ok, problem, type Finding } from './finding.js';
import { checkIssuer } from './keys.js';

const keyIds: KeyIdRules = { accept: ['d-*'], reject: [] };

/** Looks at what routes that accept sessions need: the SDK, the Core's keys and its clock. */
export async function checkSessions(settings: SessionSettings | null): Promise<readonly Finding[]> {
  if (settings === null) return [];
  const sdk = await loadSessions(settings);
  const loaded = sdk.ok
    ? ok('sessions', 'the SDK is installed')
    : problem('sessions', sdk.error.messages.join('; '), 'npm install supertokens-node@24');
  return [
    loaded,
    ...(await checkIssuer({ rules: { name: 'sessions', keyIds, clockSkewS: largestClockSkewS }, keys: settings.keys })),
  ];
}
