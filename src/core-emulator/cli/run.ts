import { pathIn } from '../../lib/files.js';
import { codeOf } from '../../lib/errors.js';
import { listenFailure, type StartFailure } from '../../app/start-failure.js';
import { isLoopback } from '../../lib/ip-ranges.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Dialect } from '../context.js';
import { startCoreEmulator, type CoreEmulatorOptions } from '../server.js';
import { DataFileError } from '../storage/data-file.js';
import { readApiKeys, readSignerKey, signerKeyIn } from './secrets.js';
import type { Io } from '../../cli/io.js';
import { fail, failUsage } from '../../cli/options.js';
import { ended } from '../../cli/signals.js';

export interface CoreOptions {
  readonly host: string;
  readonly port: number;
  readonly data?: string;
  readonly dialect: Dialect;
  readonly rotateEvery: number;
  readonly accessTokenValidity: number;
  readonly codeLifetime: number;
  readonly apiKeysFile?: string;
  readonly allowKeyless?: true;
  readonly signerKeyFile?: string;
  readonly faults: number;
}

/** Runs the emulator until a signal. */
export async function core(options: CoreOptions, io: Io): Promise<void> {
  const isOpen = options.apiKeysFile === undefined && !isLoopback(options.host);
  if (isOpen && options.allowKeyless !== true) {
    const allowed =
      '--api-keys-file FILE, which asks for a key; a loopback address; or --allow-keyless, where nobody else reaches it';
    failUsage(
      'core',
      `whoever reaches ${options.host} could mint any token, as no API key is asked for; allowed: ${allowed}`,
      io,
    );
    return;
  }
  const secrets = await readSecrets(options, io);
  if (!secrets.ok) {
    fail({ kind: 'unreadable', messages: [secrets.error] }, io);
    return;
  }
  const { host, port } = options;
  const stopped = ended(io);
  try {
    const emulator = await startCoreEmulator({
      host,
      port,
      dataFile: options.data === undefined ? null : pathIn(io, options.data),
      dialect: options.dialect,
      rotateEveryMs: options.rotateEvery,
      accessTokenValidityMs: options.accessTokenValidity,
      codeLifetimeMs: options.codeLifetime,
      faults: { share: options.faults },
      onLost: (error) =>
        io.stderr(`the data file cannot be written (${codeOf(error)}): every call is answered with 500 from now on\n`),
      ...secrets.value,
    });
    io.stdout(`core  ${emulator.url}\n`);
    io.stderr(
      `an emulator, for development and tests: no substitute for a Core${options.data === undefined ? '; it forgets everything when it ends' : ''}\n`,
    );
    if (isOpen) io.stderr('whoever reaches this address can mint any token; --api-keys-file asks for a key\n');
    await stopped;
    await emulator.close();
  } catch (error) {
    fail(startFailure(options, error), io);
  }
}

type Secrets = Required<Pick<CoreEmulatorOptions, 'apiKeys' | 'signerKey'>>;

async function readSecrets(
  { apiKeysFile, signerKeyFile, dialect }: CoreOptions,
  io: Io,
): Promise<Result<Secrets, string>> {
  const apiKeys = apiKeysFile === undefined ? accept([]) : await readApiKeys(pathIn(io, apiKeysFile));
  if (!apiKeys.ok) return refuse(`${apiKeysFile ?? ''} ${apiKeys.error}`);
  const signerKey =
    signerKeyFile === undefined ? signerKeyIn(io.env, dialect) : await readSignerKey(pathIn(io, signerKeyFile));
  if (!signerKey.ok) {
    return refuse(signerKeyFile === undefined ? signerKey.error : `${signerKeyFile} ${signerKey.error}`);
  }
  return accept({ apiKeys: apiKeys.value, signerKey: signerKey.value });
}

function startFailure({ host, port, data }: CoreOptions, error: unknown): StartFailure {
  if (error instanceof DataFileError) {
    return { kind: error.kind === 'in_use' ? 'unavailable' : 'unreadable', messages: [error.message] };
  }
  if (data !== undefined && isOfFile(error)) {
    return { kind: 'unreadable', messages: [`${data} cannot be the data file (${codeOf(error)})`] };
  }
  const failure = listenFailure('the Core emulator', { host, port }, error);
  return { ...failure, hints: ['choose another place with --host and --port; --port 0 takes a free one'] };
}

/** `EACCES` is said of files and of low ports. */
function isOfFile(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall !== 'listen' && error.syscall !== 'getaddrinfo';
}
