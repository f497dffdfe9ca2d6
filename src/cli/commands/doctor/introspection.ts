import { randomBytes } from 'node:crypto';
import { systemClock, systemTimers } from '../../../adapters/system/clock.js';
import { localFiles } from '../../../adapters/files/files.js';
import { createIntrospector } from '../../../adapters/introspection/introspector.js';
import { secretFileOf } from '../../../adapters/introspection/client-credentials.js';
import { createKeySource } from '../../../adapters/jwks/key-source.js';
import type { IssuerSettings } from '../../../config/types.js';
import { silentLog } from '../../../ports/system.js';
import type { IntrospectionResult } from '../../../ports/observability.js';
import { checkSecretMode } from './files.js';
import { ok, problem, unreachable, type Finding } from './finding.js';

/** Random bytes of the made-up token: nobody has issued it. */
const tokenBytes = 32;

/** Asks an issuer about a token that nobody has issued, and says whether it knows this client. */
export async function checkIntrospection(issuer: IssuerSettings): Promise<readonly Finding[]> {
  const { rules, keys: keySettings, introspection: settings } = issuer;
  if (settings === null) return [];
  const subject = `introspection ${rules.name}`;
  const results: IntrospectionResult[] = [];
  const deps = {
    clock: systemClock,
    timers: systemTimers,
    files: localFiles,
    log: silentLog,
    metrics: {
      jwksRefresh: () => undefined,
      jwksWait: () => undefined,
      discoveryRefresh: () => undefined,
      introspection: (_issuer: string, result: IntrospectionResult) => results.push(result),
      introspectionLookup: () => undefined,
    },
  };
  const keys = createKeySource(keySettings, rules.name, rules.keyIds, deps);
  const source = createIntrospector(settings, rules, { ...deps, keys });
  try {
    await Promise.all([keys.start(), source.start()]);
    const token = settings.rules.tokenPrefix + randomBytes(tokenBytes).toString('base64url');
    const answer = await source.ask(token, null, null);
    const found = findingOf(subject, answer.kind, results.at(-1) ?? 'failed', source.state().problem ?? 'no answer');
    return [found, await checkSecretMode(`${subject} secret`, secretFileOf(settings.auth))];
  } finally {
    await Promise.all([keys.close(), source.close()]);
  }
}

function findingOf(subject: string, kind: string, result: IntrospectionResult, why: string): Finding {
  if (kind === 'inactive') {
    return ok(subject, 'the issuer knows this client, and says of a made-up token that it is not active');
  }
  if (kind === 'active') {
    return problem(
      subject,
      'the issuer says of a made-up token that it is active: whatever somebody sends passes for one of its tokens',
      'see what answers at introspection.url; it is no issuer',
    );
  }
  if (result === 'refused') {
    return problem(
      subject,
      `${why}: opaque tokens are 503`,
      'compare client_id, client_auth and its files with what the issuer has; the client has to be allowed to introspect',
    );
  }
  return unreachable(subject, why, 'check introspection.url, ca_file and that this machine may connect to the issuer');
}
