import type { IdentityHeaders, IssuerRules, Revocations } from '../../decision/route/policy.js';
import type { RouteTable } from '../../decision/route/route-table.js';
import { compileSessions } from './sessions.js';
import { compileStore } from './store.js';
import { compileUnmatched } from './mode.js';
import type { AssertionSettings, CompiledConfig, IssuerSettings, ListenSettings, UpstreamSettings } from '../types.js';
import { located } from './located.js';
import type { ConfigParts } from '../load/parse-sections.js';
import { settingsOf } from '../load/setting-names.js';
import { type IssuerFile, jwksUrlOf, minAgeOf, type RevokedFile } from './issuers.js';
import type { IdentityFile } from './identity.js';
import type { ListenFile } from './listen.js';
import type { ReceiverFile, UpstreamFile } from './upstream.js';

/** What of a config is not in its text. */
export interface Origin {
  /** Of the file's bytes. */
  readonly sha256: string;
  /** Absolute path of the folder that relative paths start from. */
  readonly folder: string;
}

/** Turns a file without errors into what is in force; `null` where a part of it could not be read. */
export function compileConfig(
  parts: ConfigParts,
  table: RouteTable,
  { sha256, folder }: Origin,
  warnings: readonly string[],
): CompiledConfig | null {
  const {
    listen,
    admin,
    probes,
    upstream,
    sessions,
    identity,
    store,
    revoked,
    shutdown,
    log,
    reload,
    mode,
    limits,
    receiver,
  } = parts;
  const { token_cache: tokenCache } = parts;
  const issuers = compileIssuers(parts, folder);
  if (
    listen === null ||
    admin === null ||
    probes === null ||
    upstream === null ||
    sessions === null ||
    identity === null
  ) {
    return null;
  }
  if (mode === null || limits === null || receiver === null || tokenCache === null) return null;
  if (store === null || revoked === null || shutdown === null || log === null || reload === null || issuers === null) {
    return null;
  }
  return {
    sha256,
    listen: compileListen(listen.value, folder),
    admin: admin.value,
    probes: probes.value,
    upstream: compileUpstream(upstream.value, receiver.value, folder),
    issuers,
    // The SDK is not loaded for nothing.
    sessions:
      sessions.value === null || !table.routes.some(({ session }) => session !== null)
        ? null
        : compileSessions(sessions.value),
    identity: compileIdentity(identity.value),
    tokenCacheBytes: tokenCache.value,
    assertion: compileAssertion(identity.value, folder),
    store: compileStore(store.value, folder),
    revoked: compileRevoked(revoked.value),
    shutdown: { delayMs: shutdown.value.delay, graceMs: shutdown.value.grace },
    log: {
      level: log.value.level,
      clientAddress: log.value.client_address,
      userAgent: log.value.user_agent,
      refusalsPerSecond: log.value.refusals_per_second,
    },
    reload: { endMarker: reload.value.end_marker === 'required', leastAgeMs: reload.value.least_age },
    routes: table.routes,
    table,
    settings: settingsOf(
      {
        listen,
        admin,
        probes,
        upstream,
        receiver,
        sessions,
        identity,
        store,
        revoked,
        shutdown,
        log,
        reload,
        mode,
        limits,
        token_cache: tokenCache,
      },
      parts,
    ),
    unmatched: mode.value === 'shadow' ? compileUnmatched(table.routes, upstream.value, receiver.value) : null,
    warnings,
  };
}

function compileListen(file: ListenFile, folder: string): ListenSettings {
  return {
    host: file.host,
    port: file.port,
    tls:
      file.tls === null
        ? null
        : {
            certFile: located(folder, file.tls.cert_file),
            keyFile: located(folder, file.tls.key_file),
            clientCaFile: located(folder, file.tls.client_ca_file),
            clientAuth: file.tls.client_auth,
          },
    tlsTerminatedBy: file.tls_terminated_by,
    trustForwarded: file.trust_forwarded,
    maxHeaderBytes: file.max_header_bytes,
    maxTargetBytes: file.max_target,
    headerTimeoutMs: file.header_timeout,
    keepAliveTimeoutMs: file.keep_alive_timeout,
    bodyIdleTimeoutMs: file.body_idle_timeout,
    bodyMinRate: file.body_min_rate,
    maxInFlight: file.max_in_flight,
    maxWebSockets: file.max_websockets,
    webSocketIdleTimeoutMs: file.websocket_idle_timeout,
    underscoreFields: file.underscore_fields,
    http10: file.http_1_0,
  };
}

function compileUpstream(file: UpstreamFile, receiver: ReceiverFile, folder: string): UpstreamSettings {
  return {
    url: file.url.replace(/\/$/, ''),
    caFile: located(folder, file.ca_file),
    serverName: file.server_name,
    host: file.host,
    beginsTrace: file.begin_trace,
    stripFields: file.strip_fields,
    passFields: file.pass_fields,
    connectTimeoutMs: file.connect_timeout,
    responseTimeoutMs: file.response_timeout,
    idleTimeoutMs: file.idle_timeout,
    maxConnections: file.max_connections,
    reuse: file.reuse,
    readsBodies: receiver.reads_bodies,
  };
}

function compileIssuers(parts: ConfigParts, folder: string): readonly IssuerSettings[] | null {
  const issuers: IssuerSettings[] = [];
  for (const [name, { part }] of parts.issuers) {
    if (part === null) return null;
    issuers.push(compileIssuer(name, part.value, folder));
  }
  return issuers;
}

function compileIssuer(name: string, file: IssuerFile, folder: string): IssuerSettings {
  const rules: IssuerRules = {
    name,
    issuer: file.issuer,
    audience: file.audience,
    sources: new Set(file.source),
    tokenTypes: new Set(file.token_type),
    clockSkewS: file.clock_skew / 1_000,
    maxLifetimeS: file.max_lifetime / 1_000,
    keyIds: file.key_ids,
  };
  return {
    rules,
    keys: {
      source:
        file.jwks_file === null
          ? { kind: 'url', url: jwksUrlOf(file) }
          : { kind: 'file', path: located(folder, file.jwks_file) },
      caFile: located(folder, file.ca_file),
      minAgeMs: minAgeOf(file),
      maxAgeMs: file.jwks.max_age,
      maxStaleMs: file.jwks.max_stale,
      cooldownMs: file.jwks.cooldown,
      timeoutMs: file.jwks.timeout,
      maxBytes: file.jwks.max_bytes,
    },
  };
}

function compileAssertion({ assertion }: IdentityFile, folder: string): AssertionSettings | null {
  if (assertion === null) return null;
  const { key_file: keyFile, audience, ttl, header, issuer } = assertion;
  return { keyFile: located(folder, keyFile), audience, ttlS: Math.floor(ttl / 1_000), header, issuer };
}

function compileIdentity({ headers }: IdentityFile): IdentityHeaders {
  return {
    subject: headers.subject,
    issuer: headers.issuer,
    permissions: headers.permissions,
    tokenId: headers.token_id,
    kind: headers.kind,
  };
}

function compileRevoked(file: RevokedFile): Revocations {
  return {
    issuer: null,
    keyIds: new Set(file.key_ids),
    subjects: new Set(file.subjects),
    tokenIds: new Set(file.token_ids),
    tokenDigests: new Set(),
    // Rounded up: `iat` counts whole seconds, and a token of the very second may have come before.
    issuedBeforeS: file.issued_before === null ? null : Math.ceil(Date.parse(file.issued_before) / 1_000),
  };
}
