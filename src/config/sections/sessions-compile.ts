import type { SessionPolicy } from '../../decision/session/claim-rules.js';
import type { SessionSettings } from '../types.js';
import { jwksSchema } from './issuers-schema.js';
import type { RouteFile } from './routes.js';
import type { SessionsFile } from './sessions-schema.js';

/**
 * Where sessions come from, as the SDK has it: it lower-cases the API domain and drops default ports and trailing
 * slashes.
 */
export function compileSessions(file: SessionsFile): SessionSettings {
  const coreUrl = file.core_url.replace(/\/+$/, '');
  const jwks = jwksSchema.parse({});
  const apiDomain = new URL(file.api_domain).origin;
  const apiBasePath = file.api_base_path.replace(/\/+$/, '');
  return {
    coreUrl,
    apiKey: file.api_key,
    apiDomain,
    apiBasePath,
    issuer: `${apiDomain}${apiBasePath}`,
    keys: {
      // Where the SDK fetches them too; open to all, so that no key has to be sent along.
      source: { kind: 'url', url: `${coreUrl}/.well-known/jwks.json` },
      caFile: null,
      minAgeMs: jwks.min_age,
      maxAgeMs: jwks.max_age,
      maxStaleMs: jwks.max_stale,
      cooldownMs: jwks.cooldown,
      timeoutMs: jwks.timeout,
      maxBytes: jwks.max_bytes,
    },
    checkDatabase: file.check_database,
    cookie: { domain: file.cookie_domain, sameSite: file.cookie_same_site, secure: apiDomain.startsWith('https:') },
  };
}

/** What a route asks of sessions; `null` where it accepts none. */
export function compileSessionPolicy({ accept, session }: RouteFile): SessionPolicy | null {
  if (session === null || !accept.includes('session')) return null;
  return {
    claims: Object.entries(session.claims).map(([path, value]) => ({ path: path.split('.'), value })),
    forwardsTokens: session.forward_tokens,
  };
}
