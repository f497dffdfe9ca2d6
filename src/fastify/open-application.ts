import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { stringify } from 'yaml';
import { createApplicationLog, createApplicationRequestLog } from '../adapters/log/application-log.js';
import { localFiles } from '../adapters/files/files.js';
import type { ProcessMetrics } from '../adapters/metrics/metrics.js';
import { systemClock, systemTimers } from '../adapters/system/clock.js';
import { readinessOf, type Phase } from '../admin/readiness.js';
import { fileSource, fixedSource, type ConfigSource } from '../app/config/config-source.js';
import { loadComplete } from '../app/config/load-complete.js';
import { loadDecisionFiles, openDecision } from '../app/decision.js';
import { activatorOf, createReloader, logWarnings } from '../app/reload/reload.js';
import { startFailure, type StartFailure } from '../app/start-failure.js';
import { createAddressTest, createClientFinder } from '../lib/ip-ranges.js';
import { accept, refuse, type Result } from '../lib/result.js';
import { createAdmissionControl } from '../proxy/exchange/admission-control.js';
import { createSlots } from '../proxy/exchange/concurrency.js';
import { createKnownAddresses } from '../proxy/exchange/known-addresses.js';
import { createReservedWrites, type ReservedWrites } from '../proxy/idempotency/coordinator.js';
import { callerCertificateOf } from '../proxy/inbound/tls/caller-certificate.js';
import { bodyTimeoutsOf } from '../proxy/inbound/request-body.js';
import { namesAuthorities } from '../proxy/node-internals/server.js';
import { node, revision, version } from '../version.js';
import type { RouteRegister } from './application-routes.js';
import type { DecidingParts } from './decided-request.js';
import type { SallyportOptions, SallyportState } from './options.js';
import { readPattern, type RoutePattern } from './route-pattern.js';

/** What decides for one application while it runs. */
export interface OpenApplication extends Omit<SallyportState, 'metrics'> {
  readonly parts: DecidingParts;
  /**
   * Answers requests that wait for a key, and lets reserved writes end within `shutdown.grace`, with or without their
   * callers: what has no response by then is in doubt. The application takes no more requests.
   */
  readonly drain: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Reads the config, holds it to the routes of the application, and opens what decides. */
export async function openApplication(
  app: FastifyInstance,
  routes: RouteRegister,
  metrics: ProcessMetrics,
  options: SallyportOptions,
): Promise<Result<OpenApplication, StartFailure>> {
  const source = sourceOf(options);
  if (typeof source === 'string') return refuse(startFailure('invalid', source));
  const application = routes.collect(options.uncovered !== 'refuse');
  const reading = { env: options.env ?? process.env, application };
  const first = await loadComplete(source, reading, localFiles);
  if (!first.ok) return first;
  const { config } = first.value;
  const files = await loadDecisionFiles(config);
  if (!files.ok) return files;
  const log = createApplicationLog(app.log);
  const decision = openDecision(first.value, files.value, {
    log,
    metrics,
    watchIntervalMs: undefined,
    limitCounters: undefined,
  });
  const { activator, certificates, keyStates, storeState, revocations, limits } = decision;
  const slots = createSlots(config.listen.maxInFlight);
  const parts = decision.reservations?.parts ?? null;
  const writes = parts === null ? null : createReservedWrites(parts, { clock: systemClock, timers: systemTimers, log });
  let phase: Phase = 'starting';
  const reloader = createReloader(first.value, activatorOf(activator), {
    assertions: decision.assertions,
    source,
    reading,
    files: localFiles,
    clock: systemClock,
    log,
    metrics,
    useLog: () => undefined,
    watchIntervalMs: undefined,
    onReplaced: () => undefined,
  });
  metrics.setReadings({
    keys: keyStates,
    introspections: activator.introspectionStates,
    inFlight: slots.taken,
    connections: () => 0,
    connectionsByProtocol: () => null,
    upstreamConnections: () => null,
    webSockets: () => 0,
    limits: limits.state,
    revocations: revocations.state,
    tokenCache: activator.tokenCache,
    certificates: certificates.states,
    build: () => ({ version, revision, node }),
    egress: () => null,
    telemetry: () => null,
  });
  const close = async (): Promise<void> => {
    phase = 'stopping';
    reloader.close();
    await writes?.close();
    await decision.close();
  };
  const [unfit] = await Promise.all([decision.reservations?.lastingProblem() ?? null, revocations.start()]);
  if (unfit !== null) {
    await close();
    return refuse(startFailure('invalid', `store.redis: ${unfit}`));
  }
  certificates.useAuthorities('store_ca', files.value.storeCa);
  logWarnings(config.warnings, log);
  if (options.watch !== false) reloader.start();
  phase = 'serving';

  const isTrusted = createAddressTest(config.listen.trustForwarded);
  const authenticated = new WeakSet<object>();
  const patterns = new Map<string, RoutePattern>();
  const requestLog = createApplicationRequestLog(config.log);
  return accept({
    parts: {
      activeConfig: activator.activeConfig,
      clock: systemClock,
      metrics,
      log,
      requestLog: (record, request) => requestLog(record, request.log),
      findClient: createClientFinder(config.listen.trustForwarded),
      acquire: createAdmissionControl(slots, limits.callers),
      challenges: decision.challenges,
      peerOf: ({ raw: { socket } }: FastifyRequest) => {
        const remoteAddress = socket.remoteAddress ?? '';
        return {
          remoteAddress,
          encrypted: 'encrypted' in socket || config.listen.tlsTerminatedBy !== null,
          trusted: isTrusted(remoteAddress),
          certificate: callerCertificateOf(socket, namesAuthorities(app.server)),
        };
      },
      hasAuthenticated: ({ raw: { socket } }) => authenticated.has(socket),
      markAuthenticated: ({ raw: { socket } }) => authenticated.add(socket),
      knownAddresses: createKnownAddresses(systemClock),
      routes,
      reserving: writes === null ? null : { writes, bodyTimeouts: bodyTimeoutsOf(config.listen), clock: systemClock },
      patternOf: (url) => {
        const pattern = patterns.get(url) ?? readPattern(url);
        patterns.set(url, pattern);
        return pattern;
      },
    },
    readiness: () => readinessOf(phase, keyStates(), storeState(), revocations.state()),
    reload: reloader.reload,
    drain: async () => {
      phase = 'stopping';
      decision.endWaits();
      if (writes !== null) await drainWrites(writes, activator.activeConfig().config.shutdown.graceMs);
    },
    close,
  });
}

/** Settles when nothing is under way any more, or time is up. */
async function drainWrites(writes: ReservedWrites, graceMs: number): Promise<void> {
  const lastSettling = setTimeout(writes.abortAll, writes.lastSettlingMs(graceMs));
  // What is streamed to a caller may take longer, and has nothing that is not settled.
  await writes.idle(graceMs);
  clearTimeout(lastSettling);
}

/** Where the config comes from, or what is wrong with the option. */
function sourceOf({ config }: SallyportOptions): ConfigSource | string {
  const ofText = (text: string): ConfigSource =>
    fixedSource(() => Promise.resolve(accept(text)), { name: 'config', folder: process.cwd() });
  if (config instanceof URL) return config.protocol === 'file:' ? fileSource(fileURLToPath(config)) : notConfig;
  if (typeof config === 'string' && config !== '') return config.includes('\n') ? ofText(config) : fileSource(config);
  if (typeof config !== 'object') return notConfig;
  return ofText(stringify(config));
}

const notConfig = 'the option config is none of: the path of a file, the text of one, an object';
