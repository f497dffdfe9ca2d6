/** One of the processes that serve callers: what the primary has it do, over the channel between them. */
import { localFiles } from '../../adapters/files/files.js';
import { metricsData } from '../../adapters/metrics/merge.js';
import { systemTimers } from '../../adapters/system/clock.js';
import { releaseMemory } from '../../adapters/system/release-memory.js';
import { tuneForServing } from '../../adapters/system/v8-options.js';
import { messageOf } from '../../lib/errors.js';
import { createTurns } from '../../lib/promises.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Files } from '../../ports/system.js';
import type { ProxyServer } from '../../proxy/server.js';
import { composeApp, type ComposedApp } from '../compose.js';
import { fixedSource, type ConfigSource } from '../config/config-source.js';
import { snapshotFiles } from '../config/file-snapshot.js';
import { loadComplete, type CompleteConfig, type ConfigTexts } from '../config/load-complete.js';
import type { Environment } from '../config/read-config.js';
import { findUnfitStore, loadDecisionFiles } from '../decision.js';
import { loadOptionalParts } from '../optional-parts.js';
import type { AssertionFile, Assertions } from '../keys/assertion-keys.js';
import { activatorOf, putInForce } from '../reload/reload.js';
import { neverOpened } from '../reload/restart-needed.js';
import { startFailure, type StartFailure } from '../start-failure.js';
import { lastExportMs, loadTelemetry } from '../telemetry.js';
import { createAskedCounters, type AskedCounters } from './limit-counts.js';
import type { CallName, DrainedPart, Numbers, StartOrder, ToPrimary, ToWorker, WorkerCalls } from './messages.js';
import { findWithoutPart, ownConnections, shareConfig, type Share } from './share-config.js';
import { createWorkerPlaces, type WorkerPlaces } from './worker-places.js';

/** The channel to the primary. */
interface PrimaryChannel {
  readonly send: (message: ToPrimary, onSent?: () => void) => void;
  /** Calls back with each message, and with what came with it. */
  readonly onMessage: (listener: (message: ToWorker, handle: unknown) => void) => void;
  /** Ends this process; it was asked to. */
  readonly end: () => void;
}

/** A worker that serves. */
interface Running {
  readonly app: ComposedApp;
  readonly servers: readonly { readonly part: DrainedPart; readonly server: ProxyServer }[];
  /** By the number of the listener. */
  readonly adopt: readonly ((handle: unknown) => void)[];
  readonly take: (texts: ConfigTexts) => Promise<Taking>;
}

/** Another config, loaded and not yet in force. */
interface Taking {
  /** Why it cannot be; `null` where it can. */
  readonly problem: string | null;
  /** Puts it in force or forgets it; why that failed. */
  readonly conclude: (isWanted: boolean) => Promise<string | null>;
}

/** Serves until the primary ends it. */
export function runWorker(channel: PrimaryChannel, env: Environment): void {
  const counters = createAskedCounters(channel.send);
  const places = createWorkerPlaces({ send: channel.send, timers: systemTimers, atTurnEnd: setImmediate });
  let running: Running | null = null;
  let taking: Taking | null = null;
  const of = (): Running => {
    if (running === null) throw new Error('the worker has not started');
    return running;
  };

  const pageTurn = createTurns();
  const calls: { readonly [Name in CallName]: (given: Given<Name>) => Promise<Answer<Name>> | Answer<Name> } = {
    start: async (order) => {
      const started = await start(order, { counters, places }, env);
      if (!started.ok) return started.error;
      running = started.value;
      releaseMemory();
      tuneForServing();
      return null;
    },
    prepare: async (texts) => {
      // One that it fails at leaves nothing to conclude.
      taking = null;
      taking = await of().take(texts);
      return taking.problem;
    },
    conclude: async (isWanted) => {
      const taken = taking;
      taking = null;
      if (taken === null) return isWanted ? 'it has not prepared a config' : null;
      return taken.conclude(isWanted);
    },
    tls: (material) => {
      try {
        of().app.proxy.setTls(material);
        return true;
      } catch {
        return false;
      }
    },
    numbers: async () => numbersOf(of().app),
    readiness: () => of().app.readiness(),
    status: () => of().app.status(),
    refusals: (after) => of().app.refused?.after(after) ?? [],
    inDoubt: (most) => of().app.decision.reservations?.inDoubt(most) ?? [],
    page: async ({ path, query }) => {
      // Many may be asked for at once: callers have their turn in between.
      await pageTurn();
      return (await pageOf(of().app, path, query)) ?? null;
    },
    announce: () => {
      const { app, servers } = of();
      app.progress.phase = 'stopping';
      for (const { server } of servers) server.announceShutdown();
      return servers.reduce((sum, { server }) => sum + server.counts().inFlight, 0);
    },
    drain: async ({ part, graceMs }) => {
      const { app, servers } = of();
      app.decision.endWaits();
      await Promise.all(servers.filter((each) => each.part === part).map(({ server }) => server.drain(graceMs)));
      return null;
    },
    close: async () => {
      const { app } = of();
      await Promise.all([app.decision.close(), app.egress?.close()]);
      await app.telemetry?.close(lastExportMs);
      app.logger.flush();
      return numbersOf(app);
    },
  };

  async function answer({ id, name, given }: Extract<ToWorker, { kind: 'call' }>): Promise<void> {
    const call = calls[name] as (given: unknown) => unknown;
    try {
      const message: ToPrimary = { kind: 'answer', id, answer: await call(given) };
      channel.send(message, name === 'close' ? channel.end : undefined);
    } catch (error) {
      channel.send({ kind: 'failed', id, reason: messageOf(error) });
    }
  }

  channel.onMessage((message, handle) => {
    switch (message.kind) {
      case 'call':
        void answer(message);
        return;
      case 'counted':
        counters.onAnswers(message);
        return;
      case 'places':
        places.onOrders(message);
        return;
      case 'connection': {
        const adopt = of().adopt[message.listener];
        // Nothing is read before the primary can know that it is ours: else it would give it to another worker too.
        channel.send({ kind: 'took', id: message.id }, () => adopt?.(handle));
      }
    }
  });
}

type Given<Name extends CallName> = WorkerCalls[Name]['given'];
type Answer<Name extends CallName> = WorkerCalls[Name]['answer'];

async function numbersOf({ metrics, status }: ComposedApp): Promise<Numbers> {
  return {
    metrics: metricsData(await metrics.snapshot()),
    counts: status().counts,
    traffic: metrics.traffic(),
  };
}

async function pageOf({ pages }: ComposedApp, path: string, query: string): Promise<Answer<'page'> | undefined> {
  if (path === '/.well-known/jwks.json') {
    const keys = await pages.assertionKeys();
    return keys === null ? null : { status: 200, type: 'application/jwk-set+json', body: keys };
  }
  return pages.console?.[path]?.(new URLSearchParams(query), undefined);
}

async function start(
  order: StartOrder,
  { counters, places }: { readonly counters: AskedCounters; readonly places: WorkerPlaces },
  env: Environment,
): Promise<Result<Running, StartFailure>> {
  const files = snapshotFiles(order.first.files, localFiles);
  const first = await load(order, order.first, env);
  if (!first.ok) return first;
  const { config } = first.value;
  const decisionFiles = await loadDecisionFiles(config, files);
  if (!decisionFiles.ok) return decisionFiles;
  const telemetry = await loadTelemetry(config.telemetry, env);
  if (!telemetry.ok) return telemetry;
  const app = composeApp(
    first.value,
    {
      tls: order.tls,
      telemetry: telemetry.value?.open() ?? null,
      ...(await loadOptionalParts(config)),
      ...decisionFiles.value,
    },
    {
      source: sourceOf(order, order.first),
      env,
      worker: {
        number: order.number,
        limitCounters: counters,
        placesOf: (name, listen) => ({
          inFlight: places.slots(`${name}.max_in_flight`, listen.maxInFlight, order),
          webSockets: places.slots(`${name}.max_websockets`, listen.maxWebSockets, order),
          maxConnections: ownConnections(listen, order),
        }),
      },
    },
  );
  app.decision.certificates.useAuthorities('upstream_ca', first.value.upstreamCa);
  app.decision.certificates.useAuthorities('store_ca', decisionFiles.value.storeCa);
  const unfit = await findUnfitStore(app.decision);
  if (unfit !== null) return refuse(unfit);
  const servers = [
    ...(config.servesCallers ? [{ part: 'proxy' as const, server: app.proxy }] : []),
    ...(app.egress === null ? [] : [{ part: 'others' as const, server: app.egress.server }]),
    ...app.decide.map(({ server }) => ({ part: 'others' as const, server })),
  ];
  const take = (texts: ConfigTexts): Promise<Taking> => takeConfig(texts, app, first.value, order, env);
  if (order.current !== null) {
    const taking = await take(order.current);
    const problem = taking.problem ?? (await taking.conclude(true));
    if (problem !== null) return refuse(startFailure('invalid', problem));
  }
  const adopt = await Promise.all(servers.map(async ({ server }) => server.adopt()));
  app.progress.phase = 'serving';
  return accept({ app, servers, adopt, take });
}

function sourceOf({ configName, folder }: StartOrder, { config }: ConfigTexts): ConfigSource {
  return fixedSource(() => Promise.resolve(accept(config)), { name: configName, folder });
}

/** Loads a config as the primary read it, with this worker's part of what all share. */
async function load(
  order: StartOrder,
  texts: ConfigTexts,
  env: Environment,
): Promise<Result<CompleteConfig, StartFailure>> {
  const files: Files = snapshotFiles(texts.files, localFiles);
  const loaded = await loadComplete(sourceOf(order, texts), { env, held: texts.files }, files);
  if (!loaded.ok) return loaded;
  const share: Share = order;
  const { config } = loaded.value;
  // `auto` is as many as there were at the start.
  const unfit = findWithoutPart(config, share.count);
  if (unfit !== null) return refuse(startFailure('invalid', unfit));
  return accept({ ...loaded.value, config: shareConfig(config, share) });
}

/**
 * Loads another config up to the moment at which it could be in force: with the first attempt at the keys of new
 * issuers. It stays there until the primary knows of every worker whether it got so far.
 */
async function takeConfig(
  texts: ConfigTexts,
  app: ComposedApp,
  first: CompleteConfig,
  order: StartOrder,
  env: Environment,
): Promise<Taking> {
  const no = (problem: string): Taking => ({ problem, conclude: () => Promise.resolve(null) });
  const loaded = await load(order, texts, env);
  if (!loaded.ok) return no(loaded.error.messages.join('; '));
  const unopened = neverOpened(first.config, loaded.value.config);
  if (unopened !== null) return no(unopened);
  return new Promise((resolve) => {
    let follow = (_isWanted: boolean): void => undefined;
    const mayFollow = new Promise<void>((go, stay) => {
      follow = (isWanted) => {
        if (isWanted) go();
        else stay(new Error('another worker cannot take it'));
      };
    });
    // A rejection is no bug, and nobody may be waiting for it any more.
    mayFollow.catch(() => undefined);
    // Kept until the config counts: before that, nobody could verify what is signed with these keys.
    let signing: AssertionFile | null = null;
    const assertions: Pick<Assertions, 'use'> = {
      use: (file) => {
        if (file === null) app.decision.assertions.use(null);
        signing = file;
      },
    };
    const activator = activatorOf(app.decision.activator, async () => {
      resolve({
        problem: null,
        conclude: async (isWanted) => {
          follow(isWanted);
          const problem = await done;
          if (!isWanted) return null;
          if (problem === null) app.logger.use(loaded.value.config.log);
          return problem;
        },
      });
      await mayFollow;
      if (signing !== null) app.decision.assertions.use(signing);
    });
    const { onReplaced } = app;
    const done = putInForce(loaded.value, { activator, opened: first.config, assertions, onReplaced });
    void done.then((problem) => {
      if (problem !== null) resolve(no(problem));
    });
  });
}
