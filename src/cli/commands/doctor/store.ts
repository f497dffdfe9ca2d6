import { waitUntil } from '../../../lib/promises.js';
import { silentLog } from '../../../ports/system.js';
import { localFiles } from '../../../adapters/files/files.js';
import { discoverPrimaries, nameOf } from '../../../adapters/redis/topology/discovery.js';
import { unfitnessOf, type ServerFacts } from '../../../adapters/redis/topology/server-checks.js';
import { missingRights } from '../../../adapters/redis/scripts/rights.js';
import { createNodeConnection } from '../../../adapters/redis/client/node-connection.js';
import type { RedisAddress, RedisSettings } from '../../../adapters/redis/client/settings.js';
import { loadStore, openStore, readStoreFiles, redisSettingsOf } from '../../../app/store/store.js';
import type { RedisStoreSettings, StoreSettings } from '../../../config/types.js';
import { scopeOf } from '../../../decision/idempotency/scope.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import { checkSecretMode } from './files.js';
import { checkRevocations } from './revocations.js';
import { ok, problem, unreachable, warning, type Finding } from './finding.js';

const subject = 'store';

/** How long each question may take, milliseconds. */
const withinMs = 3_000;

/** Questions whose quickest answer says what the way to Redis takes. */
const samples = 5;

/**
 * Looks at the store as the proxy would: whether it is reached, may keep reservations, and answers in time, and is told
 * of revocations. Leaves nothing in it.
 */
export async function checkStore(settings: StoreSettings | null): Promise<readonly Finding[]> {
  // Memory is warned of with the config.
  if (settings?.kind !== 'redis') return [];
  const modes = settings.passwordFile === null ? [] : [await checkSecretMode('store password', settings.passwordFile)];
  const files = await readStoreFiles(settings, localFiles);
  if (!files.ok) {
    return [
      ...modes,
      ...files.error.messages.map((message) =>
        problem(subject, message, 'put the password or the authorities into this file'),
      ),
    ];
  }
  const redis = redisSettingsOf(settings, () => files.value.ca);
  const primaries = await findPrimaries(redis);
  if (!primaries.ok) return [...modes, away('no primary was found', primaries.error)];
  const servers = (await Promise.all(primaries.value.map((address) => checkServer(redis, address)))).flat();
  const isSound = servers.every(({ level }) => level === 'ok' || level === 'warning');
  return [...modes, ...servers, ...(isSound ? await checkReplies(settings, files.value.ca) : [])];
}

function away(what: string, reason: string): Finding {
  return unreachable(
    subject,
    `${what}: ${reason}`,
    'start Redis, or correct store.redis: its addresses, username, password_file and tls',
  );
}

async function findPrimaries(settings: RedisSettings): Promise<Result<readonly RedisAddress[], string>> {
  const { topology } = settings;
  if (topology.kind === 'single') return accept([{ host: topology.host, port: topology.port }]);
  return outcomeOf((found, failed) => {
    const discovery = discoverPrimaries(settings, topology, {
      found: (primaries) => found(primaries.map(({ address }) => address)),
      failed,
    });
    return discovery.close;
  });
}

async function checkServer(settings: RedisSettings, address: RedisAddress): Promise<readonly Finding[]> {
  let missing: readonly string[] = [];
  const examine = async (_facts: ServerFacts, ask: Parameters<typeof missingRights>[0]): Promise<void> => {
    // Of a server that does not run it, more is said by what is asked next.
    missing = await missingRights(ask, settings.prefix).catch(() => []);
  };
  const looked = await outcomeOf<ServerFacts>(
    (found, failed) => createNodeConnection(settings, address, { examine, looked: found, lost: failed }).close,
  );
  if (!looked.ok) return [away(`not reached at ${nameOf(address)}`, looked.error)];
  const facts = looked.value;
  const unfit = unfitnessOf(facts, { ...settings, clustered: settings.topology.kind === 'cluster' });
  if (unfit.length > 0) {
    return unfit.map((found) => problem(subject, `${nameOf(address)}: ${found.problem}`, found.fix));
  }
  if (missing.length > 0) {
    const rights = missing.map((command) => `+${command}`).join(' ');
    return [
      problem(
        subject,
        `${nameOf(address)}: Redis refuses what reservations need: its user lacks ${rights}`,
        'give it the rights that docs/storage.md names',
      ),
    ];
  }
  const file =
    facts.appendOnly === null
      ? 'an append-only file or not'
      : facts.appendOnly
        ? 'an append-only file'
        : 'no append-only file';
  const what = `${nameOf(address)}: version ${facts.version ?? 'unknown'}, ${String(facts.connectedReplicas ?? 0)} replicas, ${file}`;
  return [ok(subject, what), ...unconfirmed(settings, address, facts)];
}

/**
 * A primary that was replaced takes writes for a moment more, and a replica that still follows it confirms them: they
 * are lost.
 */
function unconfirmed(
  { replicas, topology }: RedisSettings,
  address: RedisAddress,
  { connectedReplicas }: ServerFacts,
): readonly Finding[] {
  const connected = connectedReplicas ?? 0;
  if (replicas === 0 || connected <= replicas) return [];
  const counts = `${String(connected)} replicas are connected, and ${String(replicas)} confirm`;
  const what = `${nameOf(address)}: ${counts}: a planned fail-over can lose confirmed writes`;
  const how =
    topology.kind === 'sentinel'
      ? 'fail over with `sallyport store failover`'
      : 'hold writes with CLIENT PAUSE before each planned fail-over';
  return [warning(`${subject} replicas`, what, `${how}: docs/storage.md#how-to-fail-over-without-loss`)];
}

/** Asks for a record that nobody has: the user's rights and the time it takes are those of a reservation. */
async function checkReplies(settings: RedisStoreSettings, ca: string | null): Promise<readonly Finding[]> {
  const { store, revocations } = openStore(await loadStore(settings), () => ca, {
    log: silentLog,
    maxTokenLifetimeMs: () => 0,
    looksOn: true,
  });
  const scope = scopeOf({
    principal: { kind: 'service', issuer: 'doctor', subject: 'doctor' },
    audience: '',
    operation: '',
    key: 'doctor',
    tokenId: null,
  });
  try {
    await waitUntil(() => store.state().up, withinMs);
    let quickestMs = Infinity;
    for (let sample = 0; sample < samples; sample += 1) {
      const startedMs = performance.now();
      const shown = await store.show(scope);
      if (!shown.ok && shown.error.kind === 'refused') {
        return [
          problem(
            subject,
            `Redis refuses what reservations need: ${shown.error.reason}`,
            'give its user the rights that docs/storage.md names',
          ),
        ];
      }
      if (!shown.ok) return [away('no answer', shown.error.reason)];
      quickestMs = Math.min(quickestMs, performance.now() - startedMs);
    }
    return [
      timeFinding(quickestMs, settings.reserveTimeoutMs),
      ...(revocations === null ? [] : [await checkRevocations(revocations)]),
    ];
  } finally {
    await store.close();
  }
}

/** A reservation also waits for replicas, and for others: half of its time has to be left. */
function timeFinding(quickestMs: number, reserveTimeoutMs: number): Finding {
  const what = `answers in ${quickestMs.toFixed(1)} ms at best; reserve_timeout is ${String(reserveTimeoutMs)} ms`;
  if (quickestMs * 2 < reserveTimeoutMs) return ok(`${subject} time`, what);
  return warning(`${subject} time`, what, 'raise store.redis.reserve_timeout, or bring Redis nearer');
}

/** The first thing that is found or fails, within the time for a question. */
function outcomeOf<T>(
  ask: (found: (value: T) => void, failed: (reason: string) => void) => () => void,
): Promise<Result<T, string>> {
  return new Promise((resolve) => {
    const finish = (result: Result<T, string>): void => {
      clearTimeout(timer);
      close();
      resolve(result);
    };
    const close = ask(
      (value) => {
        finish(accept(value));
      },
      (reason) => {
        finish(refuse(reason));
      },
    );
    const timer = setTimeout(() => {
      finish(refuse(`no answer within ${String(withinMs)} ms`));
    }, withinMs);
  });
}
