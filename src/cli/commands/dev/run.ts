import { randomBytes } from 'node:crypto';
import { startApp } from '../../../app/start.js';
import type { ConfigSource } from '../../../app/config/config-source.js';
import { configFailure, readConfig } from '../../../app/config/read-config.js';
import { startFailure } from '../../../app/start-failure.js';
import type { CompiledConfig } from '../../../config/types.js';
import { startCoreEmulator } from '../../../core-emulator/server.js';
import { startDemoReceiver } from '../../../core-emulator/demo-service.js';
import type { ConfigArguments } from '../../config/argument.js';
import { chooseConfig } from '../../config/choose.js';
import { createDevCredentials, type DevCredentials } from './credentials.js';
import { anyServiceRoutes, demoRoutes, type DevPlaces } from './config.js';
import { chooseSamples, curl, curlTwice, strangerTo, type Example } from './examples.js';
import { devLog } from './log.js';
import { builtInSource, composedSource } from './source.js';
import { callerOf, mint } from './token.js';
import type { Io } from '../../io.js';
import { fail } from '../../options.js';
import { ended } from '../../signals.js';

export interface DevOptions {
  readonly upstream?: string;
  readonly config?: string;
  readonly port: number;
  readonly json?: true;
}

/** What `dev` says once everything runs. */
interface Shown {
  readonly proxy: string;
  readonly core: string;
  readonly token: string;
  readonly examples: readonly Example[];
}

/** Runs everything on loopback until a signal. */
export async function dev(options: DevOptions & ConfigArguments, io: Io): Promise<void> {
  // What lies in the folder is not taken unasked: this is for trying out.
  const chosen = options.file === undefined && options.config === undefined ? null : chooseConfig(options, io);
  if (chosen?.ok === false) {
    fail(chosen.error, io);
    return;
  }
  const stopped = ended(io);
  const core = await startCoreEmulator({
    host: '127.0.0.1',
    port: 0,
    rotateEveryMs: 168 * 60 * 60 * 1000,
    apiKeys: [],
  });
  const receiver = options.upstream === undefined ? await startDemoReceiver('127.0.0.1', 0) : null;
  try {
    const places: DevPlaces = {
      port: options.port,
      coreUrl: core.url,
      upstreamUrl: options.upstream ?? receiver?.url ?? '',
    };
    const source =
      chosen === null
        ? builtInSource(receiver === null ? anyServiceRoutes : demoRoutes, places)
        : composedSource(chosen.value.source, places);
    await runProxy(source, places, options, io, stopped);
  } finally {
    await Promise.all([core.close(), receiver?.close()]);
  }
}

async function runProxy(
  source: ConfigSource,
  places: DevPlaces,
  options: DevOptions,
  io: Io,
  stopped: Promise<void>,
): Promise<void> {
  const read = await readConfig(source, io);
  if (!read.ok) {
    fail(startFailure('unreadable', read.error), io);
    return;
  }
  const { config } = read.value;
  if (config === null) {
    fail(configFailure(source.name, read.value), io);
    return;
  }
  const app = await startApp({ source, env: io.env, logTo: devLog(io.stderr) });
  if (!app.ok) {
    const busy = app.error.kind === 'unavailable' ? ['choose another port with --port; --port 0 takes a free one'] : [];
    fail({ ...app.error, hints: [...(app.error.hints ?? []), ...busy] }, io);
    return;
  }
  const { host, port } = app.value.listeners.proxy;
  const credentials = await createDevCredentials();
  try {
    const shown = await describe(`http://${host}:${port}`, places.coreUrl, config, credentials);
    io.stdout(
      options.json === true ? `${JSON.stringify(shown)}\n` : inWords(shown, places, options.upstream === undefined),
    );
    await stopped;
  } finally {
    await Promise.all([credentials.remove(), app.value.stop()]);
  }
}

async function describe(
  proxy: string,
  core: string,
  config: CompiledConfig,
  credentials: DevCredentials,
): Promise<Shown> {
  const { allowed, refused, repeated } = chooseSamples(config);
  const issuerNames = config.issuers.map(({ rules }) => rules.name);
  const caller = callerOf(allowed ?? refused, config.routes, issuerNames);
  const token = await mint(core, caller);
  const examples: Example[] = [];
  if (allowed !== null) {
    const file = allowed.approval === null ? null : await credentials.keep('caller', token);
    examples.push({ command: curl(proxy, allowed, file), expect: 200 });
  }
  if (refused !== null) {
    const stranger = await mint(core, { ...caller, subject: strangerTo(config.routes), permissions: [] });
    const file = await credentials.keep('stranger', stranger);
    examples.push(
      { command: curl(proxy, refused, null), expect: 401 },
      { command: curl(proxy, refused, file), expect: 403 },
    );
  }
  if (repeated !== null) {
    const file = await credentials.keep('writer', await mint(core, callerOf(repeated, config.routes, issuerNames)));
    examples.push({ command: curlTwice(proxy, repeated, file, `try-${randomBytes(6).toString('hex')}`), expect: 200 });
  }
  return { proxy, core, token, examples };
}

function inWords({ proxy, core, examples }: Shown, { upstreamUrl }: DevPlaces, isDemo: boolean): string {
  const places = [
    `proxy     ${proxy}`,
    `core      ${core}`,
    `receiver  ${upstreamUrl}${isDemo ? '  (demo: answers with what it received)' : ''}`,
  ];
  const commands = examples.map(({ command, expect }) => `# expect ${expect}\n${command}\n`);
  const note = [
    ...(isDemo ? [] : ['# The first one shows what your service answers.\n']),
    ...(commands.length > 3
      ? ['# The last one sends a write twice. It runs once: the second answer is marked Idempotent-Replayed.\n']
      : []),
  ].join('');
  return `${places.join('\n')}\n\n${commands.join('\n')}\n${note}# Tokens are good for two hours. Ctrl-C ends all of it.\n`;
}
