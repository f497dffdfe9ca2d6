import { randomBytes } from 'node:crypto';
import { basename, dirname } from 'node:path';
import { startApp } from '../../../app/start.js';
import type { ConfigSource } from '../../../app/config/config-source.js';
import { configFailure, readConfig } from '../../../app/config/read-config.js';
import { startFailure, type StartFailure } from '../../../app/start-failure.js';
import type { CompiledConfig, HostPort } from '../../../config/types.js';
import { startDemoUpstream } from '../../../core-emulator/demo-service.js';
import type { RunningServer } from '../../../core-emulator/http/messages.js';
import type { ConfigArguments } from '../../config/argument.js';
import { chooseConfig } from '../../config/choose.js';
import { boundExamples, createBoundClient, type BoundClient } from './bound.js';
import { callingExamples, startCallingSide, type CallingSide } from './calling-side.js';
import { createDevCredentials, type DevCredentials } from './credentials.js';
import { builtInSource, composedSource, composeDevConfig, shownConfig, type DevPlaces } from './config.js';
import {
  chooseSamples,
  curl,
  curlGrpc,
  curlTwice,
  strangerTo,
  type Example,
  type Sample,
  type Samples,
} from './examples.js';
import { echoMessage, echoMethod, echoProto, startGrpcUpstream } from './grpc.js';
import { startIssuer, type RunningIssuer } from './issuer.js';
import { devLog } from './log.js';
import { anyServiceRoutes, demoRoutes, grpcRoutes, devSubject, type DevProfile } from './profiles.js';
import { callerOf, type Caller } from './token.js';
import type { Io } from '../../io.js';
import { fail, failUsage } from '../../options.js';
import { ended } from '../../signals.js';

export interface DevOptions {
  readonly upstream?: string;
  readonly config?: string;
  readonly grpc?: true;
  readonly egress?: true;
  readonly egressPort: number;
  readonly bound?: true;
  readonly port: number;
  readonly profile: DevProfile;
  readonly json?: true;
}

/** What `dev` says once everything runs. */
interface Shown {
  readonly proxy: string;
  /** A page for browsers that shows what happens. */
  readonly console: string;
  /** The emulated Core, or the issuer of another profile, by whichever it is. */
  readonly core?: string;
  readonly issuer?: string;
  readonly token: string;
  readonly examples: readonly Example[];
  /** The first example for those who have grpcurl. */
  readonly grpcurl?: string;
  readonly token_command?: string;
  /** Of the calling side, where it runs: below which address it serves, and its config. */
  readonly egress?: { readonly url: string; readonly config: string; readonly examples: readonly Example[] };
  /** With tokens that are bound, where it knows them. */
  readonly bound?: { readonly examples: readonly Example[] };
  /** YAML; `null` where it is the user's. */
  readonly config: string | null;
}

/** What `dev` runs beside the proxy, and for whom. */
interface Setting {
  readonly options: DevOptions;
  readonly places: DevPlaces;
  readonly issuer: RunningIssuer;
  readonly credentials: DevCredentials;
  /** Who has what tokens are bound to; `null` where none are. */
  readonly client: BoundClient | null;
  /** Routes of our own; `null` where the config is the user's. */
  readonly routes: string | null;
}

/** Runs everything on loopback until a signal. */
export async function dev(options: DevOptions & ConfigArguments, io: Io): Promise<void> {
  // What lies in the folder is not taken unasked: this is for trying out.
  const isGiven = options.file !== undefined || options.config !== undefined;
  if (isGiven && options.profile !== 'core') {
    failUsage('dev', '--profile: routes of a config name callers of its own issuers; allowed with a config: core', io);
    return;
  }
  if (options.grpc === true && (isGiven || options.upstream !== undefined)) {
    failUsage('dev', '--grpc: it has a service and a route of its own; not with --upstream or a config', io);
    return;
  }
  if (options.egress === true && options.grpc === true) {
    failUsage('dev', '--egress: calls of gRPC have no place below a prefix; not with --grpc', io);
    return;
  }
  if (options.bound === true && (options.grpc === true || options.egress === true)) {
    failUsage(
      'dev',
      '--bound: its commands are of one client, which calls over HTTP/1.1; not with --grpc and --egress',
      io,
    );
    return;
  }
  const chosen = isGiven ? chooseConfig(options, io) : null;
  if (chosen?.ok === false) {
    fail(chosen.error, io);
    return;
  }
  const stopped = ended(io);
  const issuer = await startIssuer(options.profile);
  const started = await startUpstream(options);
  const credentials = await createDevCredentials();
  try {
    const client = options.bound === true ? await createBoundClient(options.port, credentials) : null;
    const places: DevPlaces = {
      port: client?.port ?? options.port,
      profile: options.profile,
      issuerUrl: issuer.url,
      upstreamUrl: options.upstream ?? started?.url ?? '',
      http2: options.grpc === true,
      ...(client === null ? {} : { listen: client.listen }),
    };
    const own = options.grpc === true ? grpcRoutes : started === null ? anyServiceRoutes : demoRoutes;
    const ownRoutes = own(options.profile);
    const source = chosen === null ? builtInSource(ownRoutes, places) : composedSource(chosen.value.source, places);
    const routes = chosen === null ? ownRoutes : null;
    await runProxy(source, { options, places, issuer, credentials, client, routes }, io, stopped);
  } finally {
    await Promise.all([issuer.close(), started?.close(), credentials.remove()]);
  }
}

/** The demo service; `null` where the user has one. */
function startUpstream({ upstream, grpc }: DevOptions): Promise<RunningServer> | null {
  if (upstream !== undefined) return null;
  return grpc === true ? startGrpcUpstream() : startDemoUpstream('127.0.0.1', 0);
}

async function runProxy(source: ConfigSource, setting: Setting, io: Io, stopped: Promise<void>): Promise<void> {
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
    failStart(app.error, '--port', io);
    return;
  }
  const { proxy } = app.value.listeners;
  if (proxy === null) throw new Error('the config of dev has no listener');
  const { host, port } = proxy;
  const { credentials } = setting;
  let calling: CallingSide | null = null;
  try {
    const trial = chooseTrial(config);
    if (setting.options.egress === true) {
      const token = await setting.issuer.tokenSource(trial.caller, credentials);
      const proxyUrl = `http://${host}:${port}`;
      const started = await startCallingSide(
        { port: setting.options.egressPort, proxyUrl, routes: config.routes, token },
        io,
      );
      if (!started.ok) {
        failStart(started.error, '--egress-port', io);
        return;
      }
      calling = started.value;
    }
    const { admin } = app.value.listeners;
    const shown: Shown = {
      ...(await describe({ host, port }, setting, config, trial, calling, io)),
      console: `http://${admin.host}:${admin.port}/`,
    };
    io.stdout(setting.options.json === true ? `${JSON.stringify(shown)}\n` : inWords(shown, setting));
    await stopped;
  } finally {
    await calling?.stop();
    await app.value.stop();
  }
}

function failStart(error: StartFailure, option: string, io: Io): void {
  const busy = error.kind === 'unavailable' ? [`choose another port with ${option}; ${option} 0 takes a free one`] : [];
  fail({ ...error, hints: [...(error.hints ?? []), ...busy] }, io);
}

/** The requests that are shown, and who sends the one that is let through. */
interface Trial {
  readonly samples: Samples;
  readonly caller: Caller;
  readonly issuerNames: readonly string[];
}

function chooseTrial(config: CompiledConfig): Trial {
  const samples = chooseSamples(config);
  const issuerNames = config.issuers.map(({ rules }) => rules.name);
  return { samples, issuerNames, caller: callerOf(samples.allowed ?? samples.refused, config.routes, issuerNames) };
}

async function describe(
  { host, port }: HostPort,
  { options, places, issuer, credentials, client, routes }: Setting,
  config: CompiledConfig,
  { samples, caller, issuerNames }: Trial,
  calling: CallingSide | null,
  io: Pick<Io, 'program'>,
): Promise<Omit<Shown, 'console'>> {
  const proxy = `${client === null ? 'http' : 'https'}://${host}:${port}`;
  const trust = client?.trust ?? [];
  const { mint } = issuer;
  const { allowed, refused, repeated } = samples;
  const token = await mint(caller);
  const examples: Example[] = [];
  const isGrpc = options.grpc === true;
  const message = isGrpc ? await credentials.write('message.bin', echoMessage('hello')) : '';
  const proto = isGrpc ? await credentials.write('echo.proto', echoProto) : '';
  const example = (sample: Sample, file: string | null, expect: Example['expect'], status: number): Example =>
    isGrpc
      ? { command: curlGrpc(proxy, sample, file, status === 0 ? message : null), expect: 200, grpc_status: status }
      : { command: curl(proxy, sample, file, trust), expect };
  let callerFile: string | null = null;
  if (allowed !== null) {
    callerFile = allowed.approval === null ? null : await credentials.keep('caller', token);
    examples.push(example(allowed, callerFile, 200, 0));
  }
  if (refused !== null) {
    const stranger = await mint({
      ...caller,
      subject: devSubject(places.profile, strangerTo(config.routes)),
      permissions: [],
    });
    const file = await credentials.keep('stranger', stranger);
    examples.push(example(refused, null, 401, 16), example(refused, file, 403, 7));
  }
  if (repeated !== null) {
    const file = await credentials.keep('writer', await mint(callerOf(repeated, config.routes, issuerNames)));
    const key = `try-${randomBytes(6).toString('hex')}`;
    examples.push({ command: curlTwice(proxy, repeated, file, key, trust), expect: 200 });
  }
  const surroundings = { proxy, mint, credentials, program: io.program ?? ['sallyport'] };
  const bound =
    client === null || allowed === null || allowed.approval === null
      ? null
      : await boundExamples(client, allowed, caller, surroundings);
  return {
    proxy,
    ...(places.profile === 'core' ? { core: issuer.url } : { issuer: issuer.url }),
    token,
    examples,
    ...(isGrpc && callerFile !== null ? { grpcurl: grpcurl({ host, port }, proto, callerFile) } : {}),
    ...(issuer.tokenCommand === null ? {} : { token_command: issuer.tokenCommand }),
    ...(bound === null ? {} : { bound: { examples: bound } }),
    ...(calling === null ? {} : { egress: describeCalling(calling, samples, caller) }),
    config: routes === null ? null : shownConfig(composeDevConfig(routes, { ...places, port })),
  };
}

function describeCalling(
  { url, config }: CallingSide,
  samples: Samples,
  { subject }: Caller,
): NonNullable<Shown['egress']> {
  return { url, config, examples: callingExamples(url, samples, subject) };
}

/** The token comes by a variable: it is no argument, which others could see. */
function grpcurl({ host, port }: HostPort, proto: string, credentialFile: string): string {
  const message = String.raw`'{"text":"hello"}'`;
  const field = "'${FIELD}'";
  return `FIELD="$(cat ${credentialFile})" grpcurl -plaintext -expand-headers -H ${field} -import-path ${dirname(proto)} -proto ${basename(proto)} -d ${message} ${host}:${port} ${echoMethod}`;
}

function inWords(
  { proxy, console: page, examples, grpcurl: line, config, egress, bound }: Shown,
  { options, places, issuer }: Setting,
): string {
  const isDemo = options.upstream === undefined;
  const inForce = config === null ? '' : `# The config in force:\n${config}\n`;
  const callingInForce = egress === undefined ? '' : `# The calling side’s:\n${egress.config}\n`;
  const parts = [
    ...(egress === undefined ? [] : [`egress    ${egress.url}`]),
    `proxy     ${proxy}`,
    `console   ${page}`,
    `${places.profile === 'core' ? 'core  ' : 'issuer'}    ${issuer.url}`,
    `receiver  ${places.upstreamUrl}${isDemo ? '  (demo: answers with what it received)' : ''}`,
  ];
  const commands = examples.map(commandInWords);
  const calls = egress?.examples.map(commandInWords) ?? [];
  const legacy =
    calls.length === 0
      ? ''
      : `# A caller without a token and without a key, by the calling side:\n\n${calls.join('\n')}\n`;
  const proofs =
    bound === undefined
      ? ''
      : `# Tokens that are bound to a key or a certificate:\n\n${bound.examples.map(commandInWords).join('\n')}\n`;
  const note = [
    ...(line === undefined ? [] : [`# The first one with grpcurl, if you have it:\n${line}\n`]),
    ...(isDemo ? [] : ['# The first one shows what your service answers.\n']),
    ...(commands.length > 3
      ? ['# The last one sends a write twice. It runs once: the second answer is marked Idempotent-Replayed.\n']
      : []),
  ].join('');
  const own =
    issuer.tokenCommand === null ? '' : `# A token of your own, as a service gets it:\n${issuer.tokenCommand}\n`;
  return `${inForce}${callingInForce}${parts.join('\n')}\n\n${commands.join('\n')}\n${note}${own}${legacy}${proofs}# Tokens are good for two hours. Ctrl-C ends all of it.\n`;
}

function commandInWords({ command, expect, then, because, grpc_status: status }: Example): string {
  const statuses = [status === undefined ? expect : `grpc-status ${status}`, ...(then === undefined ? [] : [then])];
  return `# expect ${statuses.join(', then ')}${because === undefined ? '' : `: ${because}`}\n${command}\n`;
}
