import type { CompiledConfig, HostPort, ListenSettings } from '../config/compiled.js';

type Value = string | number | null;

/** Every key that counts at start only, as the config spells it (contract section 2). */
const startOnly: Readonly<Record<string, (config: CompiledConfig) => Value>> = {
  'listen.host': ({ listen }) => listen.host,
  'listen.port': ({ listen }) => listen.port,
  'listen.tls.cert_file': ({ listen }) => listen.tls?.certFile ?? null,
  'listen.tls.key_file': ({ listen }) => listen.tls?.keyFile ?? null,
  'listen.tls.client_ca_file': ({ listen }) => listen.tls?.clientCaFile ?? null,
  // Says nothing without the CA.
  'listen.tls.client_auth': ({ listen }) => (listen.tls === null || listen.tls.clientCaFile === null ? null : listen.tls.clientAuth),
  'listen.tls_terminated_by': ({ listen }) => listen.tlsTerminatedBy,
  'listen.trust_forwarded': ({ listen }) => listen.trustForwarded.join(' '),
  'listen.max_header_bytes': ({ listen }) => listen.maxHeaderBytes,
  'listen.max_target': ({ listen }) => listen.maxTargetBytes,
  'listen.header_timeout': ({ listen }) => listen.headerTimeoutMs,
  'listen.body_idle_timeout': ({ listen }) => listen.bodyIdleTimeoutMs,
  'listen.max_in_flight': ({ listen }) => listen.maxInFlight,
  'listen.underscore_fields': ({ listen }) => listen.underscoreFields,
  'listen.http_1_0': ({ listen }) => listen.http10,
  'admin.host': ({ admin }) => admin.host,
  'admin.port': ({ admin }) => admin.port,
  'probes.host': ({ probes }) => probes?.host ?? null,
  'probes.port': ({ probes }) => probes?.port ?? null,
};

/** What was opened at start and stays as it is until the end. */
export interface Opened {
  readonly listen: ListenSettings;
  readonly admin: HostPort;
  readonly probes: HostPort | null;
}

/** The keys in which a config asks for something else than what is open. Compared with the start, not with the last reload. */
export function restartNeeded(opened: CompiledConfig, wanted: CompiledConfig): readonly string[] {
  return Object.entries(startOnly).filter(([, valueOf]) => valueOf(opened) !== valueOf(wanted)).map(([key]) => key);
}

/** A new config with what is open in the place of what it asks for, so that no half of `listen` takes effect. */
export function withOpened(wanted: CompiledConfig, { listen, admin, probes }: Opened): CompiledConfig {
  return { ...wanted, listen, admin, probes };
}
