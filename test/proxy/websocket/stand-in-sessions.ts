/** Sessions of users for the data path alone: real tokens, and a verifier that vouches for each that was signed. */
import type { CompiledConfig } from '../../../src/config/types.js';
import { accept } from '../../../src/lib/result.js';
import type { JsonObject } from '../../../src/lib/strict-json.js';
import type { KeySource, SessionVerifier } from '../../../src/ports/auth.js';
import type { ActiveSessions } from '../../../src/proxy/auth/credentials/session.js';
import type { RsaKey } from '../../support/keys.js';
import { sessionClaims } from '../../support/sessions.js';

export const sessionConfig = {
  sessions: { core_url: 'http://127.0.0.1:3567', api_domain: 'https://api.example.com' },
};

export const userRoute = {
  name: 'user',
  methods: ['GET'],
  path: '/user',
  websocket: true,
  accept: ['session'],
  session: { claims: { tId: 'public' } },
};

const vouching: SessionVerifier = {
  verify: () => Promise.resolve(accept({ userId: 'user-1', claims: sessionClaims() as JsonObject, renewed: null })),
};

export function sessionsOf(key: RsaKey, verifier = vouching): (config: CompiledConfig) => ActiveSessions | null {
  const keys: KeySource = {
    find: (keyId) =>
      keyId === key.keyId
        ? { kind: 'found', key: { keyId, algorithm: 'RS256', key: key.publicKey } }
        : { kind: 'unknown' },
    state: () => {
      throw new Error('not asked here');
    },
  };
  return ({ sessions }) =>
    sessions === null
      ? null
      : {
          settings: sessions,
          keys,
          verifier,
        };
}
