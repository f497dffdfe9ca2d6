import { randomBytes } from 'node:crypto';
import { pathIn } from '../../../lib/files.js';
import { localFiles } from '../../../adapters/files/files.js';
import { systemClock } from '../../../adapters/system/clock.js';
import { readBoundTo } from '../../../core-api/bound-to.js';
import type { Confirmation } from '../../../decision/binding/confirmation.js';
import { createCoreClient } from '../../../core-api/core-client.js';
import { readCurlConfig, type CurlConfigFile } from '../../../core-api/curl/curl-config-file.js';
import { openIssuanceLog, type IssuanceLog, issuanceRecord } from '../../../core-api/issuance-log.js';
import { mintToken, type MintFailure } from '../../../core-api/mint.js';
import { startFailure, type StartFailure } from '../../../app/start-failure.js';
import { findHeader } from '../../../core-api/curl/curl-config.js';
import { escapeControls } from '../../../lib/text.js';
import { cdiVersionProblem, readMintClaims, tokenIdBytes, type MintRequest } from '../../../core-api/mint-request.js';
import type { MintedToken } from '../../../core-api/mint-response.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import type { Io } from '../../io.js';
import { fail } from '../../options.js';
import { announceInput, readJsonInput } from '../../stdin.js';

export interface MintOptions {
  readonly curlConfig: string;
  readonly issuer: string;
  /** Milliseconds. */
  readonly validity: number;
  readonly singleUse?: true;
  readonly boundTo?: string;
  readonly issuanceLog?: string;
  readonly allowHttp?: true;
  readonly allowPublicCore?: true;
  readonly json?: true;
}

/** A thousand permissions and more. */
const maxClaimsBytes = 64 * 1_024;

/** A chain of certificates, of which the first counts. */
const maxPemBytes = 64 * 1_024;

/** Prints a token that the Core minted. */
export async function mint(options: MintOptions, io: Io): Promise<void> {
  const minted = await mintLogged(options, io);
  if (!minted.ok) {
    fail(minted.error, io);
    return;
  }
  const { token, keyId, tokenId, issuedAtS, expiresAtS } = minted.value;
  const data = { token, key_id: keyId, token_id: tokenId, issued_at: issuedAtS, expires_at: expiresAtS };
  io.stdout(`${options.json === true ? JSON.stringify(data) : token}\n`);
  io.exit(0);
}

/**
 * Everything that can be wrong here is found before the Core is asked: a token that was signed cannot be taken back.
 */
async function mintLogged(options: MintOptions, io: Io): Promise<Result<MintedToken, StartFailure>> {
  const core = await readCore(options, io);
  if (!core.ok) return unusable(core.error);
  announceInput('claims', io);
  const input = await readJsonInput(io.stdin, maxClaimsBytes);
  if (!input.ok) return unusable(`claims on standard input: ${input.error}`);
  const claims = readMintClaims(input.value);
  if (!claims.ok) return unusable(`claims on standard input: ${claims.error}`);
  const tokenId = options.singleUse === true ? randomBytes(tokenIdBytes).toString('base64url') : null;
  const confirmation = await readConfirmation(options, io);
  if (!confirmation.ok) return unusable(confirmation.error);
  const request: MintRequest = {
    claims: claims.value,
    issuer: options.issuer,
    validityS: options.validity / 1_000,
    tokenId,
    ...(confirmation.value === null ? {} : { confirmation: confirmation.value }),
  };
  if (options.issuanceLog === undefined) return mintAt(core.value, request, options);
  const logPath = pathIn(io, options.issuanceLog);
  if (logPath === pathIn(io, options.curlConfig)) {
    return unusable('--issuance-log names the curl config file, which a line would break');
  }
  const log = await openIssuanceLog(logPath);
  if (!log.ok) return unusable(`the issuance log ${options.issuanceLog} ${log.error}`);
  try {
    const minted = await mintAt(core.value, request, options);
    return minted.ok ? await logged(log.value, minted.value, options.issuanceLog) : minted;
  } finally {
    await log.value.close();
  }
}

async function readConfirmation({ boundTo }: MintOptions, io: Io): Promise<Result<Confirmation | null, string>> {
  if (boundTo === undefined) return accept(null);
  const text = await localFiles.read(pathIn(io, boundTo), { maxBytes: maxPemBytes });
  const read = text.ok ? readBoundTo(text.value) : text;
  return read.ok ? read : refuse(`${boundTo}: ${read.error}`);
}

async function readCore({ curlConfig }: MintOptions, io: Io): Promise<Result<CurlConfigFile, string>> {
  const core = await readCurlConfig(curlConfig, io);
  if (!core.ok) return core;
  const version = findHeader(core.value, 'cdi-version');
  const problem = version === null ? null : cdiVersionProblem(version);
  return problem === null ? core : refuse(`${curlConfig}: the header cdi-version ${problem}`);
}

async function mintAt(
  core: CurlConfigFile,
  request: MintRequest,
  options: MintOptions,
): Promise<Result<MintedToken, StartFailure>> {
  const client = createCoreClient({
    baseUrl: core.url,
    headers: core.headers,
    ca: core.ca,
    timeoutMs: core.timeoutMs,
    connectTimeoutMs: core.connectTimeoutMs,
    rules: { allowHttp: options.allowHttp === true, allowPublic: options.allowPublicCore === true },
  });
  try {
    const minted = await mintToken(request, { client, clock: systemClock });
    return minted.ok ? minted : refuse(inWords(minted.error));
  } finally {
    await client.close();
  }
}

const kinds: Readonly<Record<MintFailure['kind'], StartFailure['kind']>> = {
  unreachable: 'unavailable',
  timeout: 'unavailable',
  broken: 'unavailable',
  aborted: 'unavailable',
  core_error: 'unavailable',
  rate_limited: 'unavailable',
  refused_address: 'unreadable',
  unauthorized: 'invalid',
  rejected: 'invalid',
  unsupported_algorithm: 'invalid',
  not_as_asked: 'invalid',
};

function inWords({ kind, reason, status }: MintFailure): StartFailure {
  return startFailure(kinds[kind], escapeControls(status === null ? `the Core gave no answer: ${reason}` : reason));
}

async function logged(log: IssuanceLog, minted: MintedToken, path: string): Promise<Result<MintedToken, StartFailure>> {
  const written = await log.append(issuanceRecord(minted, systemClock.now()));
  if (written.ok) return accept(minted);
  return refuse(
    startFailure('unavailable', escapeControls(`the issuance log ${path} ${written.error}; the token is not printed`)),
  );
}

function unusable(message: string): Result<never, StartFailure> {
  return refuse(startFailure('unreadable', escapeControls(message)));
}
