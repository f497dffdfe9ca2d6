import { startCoreEmulator } from '../../../core-emulator/server.js';
import { demoClient, startDevIssuer } from '../../../core-emulator/dev-issuer.js';
import { devAudience, devScopes, type DevProfile } from './profiles.js';
import { mint, validityS, type Caller } from './token.js';

/** What issues the tokens of `dev`. */
export interface RunningIssuer {
  /** Origin. */
  readonly url: string;
  readonly mint: (caller: Caller) => Promise<string>;
  /** A command that gets a token as a service does; `null` where that is no matter of one line. */
  readonly tokenCommand: string | null;
  readonly close: () => Promise<void>;
}

/** Starts a Core emulator, or an issuer of another profile, on a free port of loopback. */
export async function startIssuer(profile: DevProfile): Promise<RunningIssuer> {
  const place = { host: '127.0.0.1', port: 0 };
  if (profile === 'core') {
    const core = await startCoreEmulator({ ...place, rotateEveryMs: 168 * 60 * 60 * 1000, apiKeys: [] });
    return { ...core, mint: (caller) => mint(core.url, caller), tokenCommand: null };
  }
  const issuer = await startDevIssuer({
    ...place,
    profile,
    audience: devAudience(profile),
    scopes: devScopes,
    validityS,
  });
  const { id, secret } = demoClient;
  return {
    url: issuer.url,
    mint: ({ subject, permissions }) => issuer.mint({ subject, permissions, validityS }),
    tokenCommand:
      profile === 'oauth'
        ? `curl -sS -i -u ${id}:${secret} -d grant_type=client_credentials -d scope=orders:read ${issuer.url}/token`
        : null,
    close: issuer.close,
  };
}
