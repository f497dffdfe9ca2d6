import { startCoreEmulator } from '../../../core-emulator/server.js';
import { demoClient, startDevIssuer } from '../../../core-emulator/dev-issuer.js';
import type { DevCredentials } from './credentials.js';
import { devAudience, devClaims, devScopes, type DevProfile } from './profiles.js';
import { boundClaim, mint, validityS, type Caller } from './token.js';

/** What issues the tokens of `dev`. */
export interface RunningIssuer {
  /** Origin. */
  readonly url: string;
  readonly mint: (caller: Caller) => Promise<string>;
  /** A command that gets a token as a service does; `null` where that is no matter of one line. */
  readonly tokenCommand: string | null;
  /** Where a calling side gets that caller's token: an entry of `egress.tokens`, whose files are written. */
  readonly tokenSource: (caller: Caller, files: Pick<DevCredentials, 'write'>) => Promise<object>;
  readonly close: () => Promise<void>;
}

/** Starts a Core emulator, or an issuer of another profile, on a free port of loopback. */
export async function startIssuer(profile: DevProfile): Promise<RunningIssuer> {
  const place = { host: '127.0.0.1', port: 0 };
  if (profile === 'core') {
    const core = await startCoreEmulator({ ...place, rotateEveryMs: 168 * 60 * 60 * 1000, apiKeys: [] });
    return {
      ...core,
      mint: (caller) => mint(core.url, caller),
      tokenCommand: null,
      tokenSource: async ({ subject, permissions, issuerName }, files) => {
        const { audience, source, tokenType } = devClaims(issuerName);
        return {
          core: { curl_config: await files.write('core.curl', `url = "${core.url}"\n`), issuer: core.url },
          claims: { sub: subject, aud: audience, source, token_type: tokenType, permissions },
        };
      },
    };
  }
  const issuer = await startDevIssuer({
    ...place,
    profile,
    audience: devAudience(profile),
    scopes: devScopes,
    validityS,
  });
  const { id, secret } = demoClient;
  const mintFor: RunningIssuer['mint'] = (caller) => {
    const { subject, permissions } = caller;
    return issuer.mint({ subject, permissions, validityS, ...boundClaim(caller) });
  };
  return {
    url: issuer.url,
    mint: mintFor,
    tokenSource: async (caller, files) => {
      // Whoever runs the workload puts its token there.
      if (profile !== 'oauth') return { file: await files.write('calling-side', await mintFor(caller)) };
      const auth = { secret_file: await files.write('client-secret', secret) };
      return { oauth: { issuer: issuer.url, client_id: id, auth, scope: caller.permissions.join(' ') } };
    },
    tokenCommand:
      profile === 'oauth'
        ? `curl -sS -i -u ${id}:${secret} -d grant_type=client_credentials -d scope=orders:read ${issuer.url}/token`
        : null,
    close: issuer.close,
  };
}
