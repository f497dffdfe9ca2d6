import { randomBytes, X509Certificate } from 'node:crypto';
import { systemClock, systemTimers } from '../../../adapters/system/clock.js';
import { localFiles } from '../../../adapters/files/files.js';
import type { IssuerRequestFailure } from '../../../adapters/oauth/ask-issuer.js';
import { createIntrospector } from '../../../adapters/oauth/introspector.js';
import { readClientCredentials, secretFileOf } from '../../../adapters/oauth/client-credentials.js';
import { createKeySource } from '../../../adapters/jwks/key-source.js';
import type { IntrospectionSettings, IssuerSettings } from '../../../config/types.js';
import type { IntrospectionResponse, MetadataState } from '../../../ports/auth.js';
import { silentLog } from '../../../ports/system.js';
import { checkSecretMode, dateFinding } from './files.js';
import { ok, problem, unreachable, type Finding } from './finding.js';

/** Random bytes of the made-up token: nobody has issued it. */
const tokenBytes = 32;

/** Asks an issuer about a token that nobody has issued, and says whether it knows this client. */
export async function checkIntrospection(issuer: IssuerSettings): Promise<readonly Finding[]> {
  const { rules, keys: keySettings, introspection: settings } = issuer;
  if (settings === null) return [];
  const subject = `introspection ${rules.name}`;
  const read = await readClientCredentials(settings, localFiles);
  if (!read.ok) {
    return [problem(subject, read.error, `put into that file what client_auth: ${settings.auth.method} needs`)];
  }
  const chain = read.value.certificate?.cert ?? null;
  const deps = {
    clock: systemClock,
    timers: systemTimers,
    files: localFiles,
    log: silentLog,
    metrics: {
      jwksRefresh: () => undefined,
      jwksWait: () => undefined,
      discoveryRefresh: () => undefined,
      introspection: () => undefined,
      introspectionLookup: () => undefined,
    },
  };
  const keys = createKeySource(keySettings, rules.name, rules.keyIds, deps);
  const source = createIntrospector(settings, rules, { ...deps, keys });
  try {
    await Promise.all([keys.start(), source.start()]);
    const token = settings.rules.tokenPrefix + randomBytes(tokenBytes).toString('base64url');
    const { kind } = await source.ask(token, null, null);
    return [
      settings.url === null && placeIn(keys.state().metadata, settings) === null
        ? nowhere(subject, keys.state().metadata)
        : findingOf(subject, kind, source.failure()),
      ...(chain === null ? [] : [dateFinding(`${subject} certificate`, new X509Certificate(chain), systemClock.now())]),
      await checkSecretMode(`${subject} secret`, secretFileOf(settings.auth)),
    ];
  } finally {
    await Promise.all([keys.close(), source.close()]);
  }
}

function findingOf(
  subject: string,
  kind: IntrospectionResponse['kind'],
  failure: IssuerRequestFailure | null,
): Finding {
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
  const why = failure?.why ?? 'no answer';
  if (failure?.refusesClient === true) {
    return problem(
      subject,
      `${why}: opaque tokens are 503`,
      'compare client_id, client_auth and its files with what the issuer has; the client has to be allowed to introspect',
    );
  }
  if (failure?.hasResponse === true) {
    return problem(
      subject,
      `${why}: opaque tokens are 503`,
      'see what answers there, and whether introspection.url and introspection.answer are what the issuer has',
    );
  }
  return unreachable(subject, why, 'check introspection.url, ca_file and that this machine may connect to the issuer');
}

function placeIn(metadata: MetadataState | null, { auth }: Pick<IntrospectionSettings, 'auth'>): string | null {
  const { url = null, mtlsUrl = null } = metadata?.introspection ?? {};
  return auth.method === 'tls_client_auth' ? (mtlsUrl ?? url) : url;
}

/** The metadata does not say where to ask; what is wrong with it itself is found with the keys. */
function nowhere(subject: string, metadata: MetadataState | null): Finding {
  if ((metadata?.keysUrl ?? null) === null) {
    return unreachable(
      subject,
      'the issuer’s metadata could not be had, which says where it is asked',
      'see metadata above, or write introspection.url',
    );
  }
  return problem(
    subject,
    'the issuer’s metadata has no introspection_endpoint, or one at another origin than the issuer’s',
    'introspection.url; or put that origin into jwks_origins, if the issuer says that it is asked there',
  );
}
