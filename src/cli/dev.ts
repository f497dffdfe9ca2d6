import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { Command } from 'commander';
import { startApp } from '../app.js';
import { configFailure, readConfig, type ConfigSource } from '../app/config-source.js';
import { startFailure } from '../app/start-failure.js';
import type { CompiledConfig } from '../config/compiled.js';
import { startCoreEmulator } from '../emulator/core-emulator.js';
import { startDemoReceiver } from '../emulator/demo-receiver.js';
import { originArgument, portArgument } from './arguments.js';
import { anyServiceRoutes, demoRoutes, type DevPlaces } from './dev-config.js';
import { chooseSamples, curl, curlTwice, strangerTo, type Example } from './dev-examples.js';
import { devLog } from './dev-log.js';
import { builtInSource, composedSource } from './dev-source.js';
import { callerOf, mint } from './dev-token.js';
import type { Io } from './io.js';
import { fail, jsonOption } from './options.js';
import { ended } from './running.js';

interface Options {
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

/** `sallyport dev`: everything on loopback, until a signal. */
export function createDevCommand(io: Io): Command {
  return new Command('dev')
    .description('Run everything on loopback: Core emulator, demo receiving service and proxy. Prints commands to try.')
    .option('--upstream <url>', 'a receiving service of yours in the place of the demo one', originArgument)
    .option('--config <file>', 'take routes and identity headers from this config; everything else is replaced')
    .option('--port <number>', 'port of the proxy; 0 takes a free one', portArgument, 8080)
    .addOption(jsonOption())
    .addHelpText('after', '\nExit code: 0 ended by a signal, 1 the config has an error, 2 it cannot be read, 3 the port is in use.')
    .action((options: Options) => dev(options, io));
}

async function dev(options: Options, io: Io): Promise<void> {
  const stopped = ended(io);
  const core = await startCoreEmulator({ host: '127.0.0.1', port: 0, rotateEveryMs: 168 * 60 * 60 * 1000, apiKeys: [] });
  const receiver = options.upstream === undefined ? await startDemoReceiver('127.0.0.1', 0) : null;
  try {
    const places: DevPlaces = { port: options.port, coreUrl: core.url, upstreamUrl: options.upstream ?? receiver?.url ?? '' };
    await runProxy(sourceOf(options, places, io), places, options, io, stopped);
  } finally {
    await Promise.all([core.close(), receiver?.close()]);
  }
}

async function runProxy(source: ConfigSource, places: DevPlaces, options: Options, io: Io, stopped: Promise<void>): Promise<void> {
  const read = await readConfig(source, io.env);
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
    const busy = app.error.kind === 'unavailable' ? ['choose another port with --port'] : [];
    fail({ ...app.error, messages: [...app.error.messages, ...busy] }, io);
    return;
  }
  const { host, port } = app.value.listeners.proxy;
  const shown = await describe(`http://${host}:${port}`, places.coreUrl, config);
  io.stdout(options.json === true ? `${JSON.stringify(shown)}\n` : inWords(shown, places, options.upstream === undefined));
  await stopped;
  await app.value.stop();
}

function sourceOf({ config, upstream }: Options, places: DevPlaces, io: Io): ConfigSource {
  if (config !== undefined) return composedSource(resolve(io.cwd, config), config, places);
  return builtInSource(upstream === undefined ? demoRoutes : anyServiceRoutes, places);
}

async function describe(proxy: string, core: string, config: CompiledConfig): Promise<Shown> {
  const { allowed, refused, repeated } = chooseSamples(config);
  const issuerNames = config.issuers.map(({ rules }) => rules.name);
  const caller = callerOf(allowed ?? refused, config.routes, issuerNames);
  const token = await mint(core, caller);
  const examples: Example[] = [];
  if (allowed !== null) examples.push({ command: curl(proxy, allowed, allowed.approval === null ? null : token), expect: 200 });
  if (refused !== null) {
    const stranger = await mint(core, { ...caller, subject: strangerTo(config.routes), permissions: [] });
    examples.push({ command: curl(proxy, refused, null), expect: 401 }, { command: curl(proxy, refused, stranger), expect: 403 });
  }
  if (repeated !== null) {
    const writer = await mint(core, callerOf(repeated, config.routes, issuerNames));
    examples.push({ command: curlTwice(proxy, repeated, writer, `try-${randomBytes(6).toString('hex')}`), expect: 200 });
  }
  return { proxy, core, token, examples };
}

function inWords({ proxy, core, examples }: Shown, { upstreamUrl }: DevPlaces, isDemo: boolean): string {
  const places = [`proxy     ${proxy}`, `core      ${core}`, `receiver  ${upstreamUrl}${isDemo ? '  (demo: answers with what it received)' : ''}`];
  const commands = examples.map(({ command, expect }) => `# expect ${expect}\n${command}\n`);
  const note = [
    ...(isDemo ? [] : ['# The first one shows what your service answers.\n']),
    ...(commands.length > 3 ? ['# The last one sends a write twice. It runs once: the second answer is marked Idempotent-Replayed.\n'] : []),
  ].join('');
  return `${places.join('\n')}\n\n${commands.join('\n')}\n${note}# Tokens are good for two hours. Ctrl-C ends all of it.\n`;
}
