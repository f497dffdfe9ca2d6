import type { CompiledConfig } from '../../config/types.js';
import { readPayload } from '../../decision/token/compact-jws.js';
import { accept, refuse } from '../../lib/result.js';
import { parseSessionToken } from '../../decision/session/token.js';
import type { SessionsInForce } from '../../proxy/auth/verify-session.js';
import type { AssumedKeys } from './test-keys.js';

/** Stands in for the Core and its SDK: vouches for every session that the assumed key signed. */
export function assumedSessions({ sessions: settings }: CompiledConfig, keys: AssumedKeys): SessionsInForce | null {
  if (settings === null) return null;
  return {
    settings,
    keys: keys.source,
    verifier: {
      verify: (accessToken) => {
        const token = parseSessionToken(accessToken);
        const payload = token.ok ? readPayload(token.value) : token;
        const userId = payload.ok ? payload.value['sub'] : undefined;
        return Promise.resolve(
          payload.ok && typeof userId === 'string'
            ? accept({ userId, claims: payload.value, renewed: null })
            : refuse('refused'),
        );
      },
    },
  };
}
