/** Tokens of the calling side that the Core mints: one call for each. */
import { createHash, randomBytes } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import type { CoreTokenSettings } from '../config/types.js';
import { maxCaFileBytes, readCaFile } from '../lib/pem.js';
import { accept, refuse, type Result } from '../lib/result.js';
import type { Clock, Files } from '../ports/system.js';
import type { ProofSigner, TokenFailure, TokenFetcher } from '../ports/tokens.js';
import { createCoreClient, type CoreClient } from './core-client.js';
import { normalizeApiDomain } from './core-url.js';
import { findHeader, formatCurlProblem, parseCurlConfig, type CurlConfig } from './curl/curl-config.js';
import { maxCurlConfigBytes } from './curl/curl-config-file.js';
import { mintToken, type MintFailure } from './mint.js';
import { cdiVersionProblem, tokenIdBytes, type MintRequest } from './mint-request.js';

interface CoreTokensDeps {
  readonly clock: Clock;
  readonly files: Pick<Files, 'read'>;
  /** The tokens are bound to its key; `null` where they count for whoever has them. */
  readonly proofs: Pick<ProofSigner, 'thumbprint'> | null;
}

/** The files are looked at for a call, at most each second. */
const lookEveryMs = 1_000;

/** Calls at once where each request gets a token of its own; more wait, within the time of a call. */
const singleUseConnections = 16;

/** A Core as its files describe it. */
interface Reached {
  readonly client: CoreClient;
  readonly digest: string;
  /** Under way. */
  calls: number;
  /** Whether the files describe another one by now. */
  isOld: boolean;
}

/**
 * Makes what has the Core mint tokens. The curl config file may be a link, as Kubernetes places secrets; a relative
 * `cacert` in it starts from its folder. Another key or address in it counts from the next call on.
 */
export function createCoreTokens(settings: CoreTokenSettings, { clock, files, proofs }: CoreTokensDeps): TokenFetcher {
  const { curlConfigFile, validityS, claims, singleUse } = settings;
  const issuer = normalizeApiDomain(settings.issuer);
  let reached: Reached | null = null;
  let looking: Promise<Result<Reached, string>> | null = null;
  let lookedAtMs = -Infinity;
  let isClosed = false;

  /** The Core as its files describe it now; several calls at once look at them once. */
  function reach(): Promise<Result<Reached, string>> {
    if (reached !== null && clock.monotonic() < lookedAtMs + lookEveryMs) return Promise.resolve(accept(reached));
    looking ??= look().finally(() => {
      looking = null;
    });
    return looking;
  }

  async function look(): Promise<Result<Reached, string>> {
    const core = await readCore();
    if (!core.ok) return core;
    if (isClosed) return refuse('the source was closed');
    lookedAtMs = clock.monotonic();
    const { config, ca, digest } = core.value;
    if (reached?.digest === digest) return accept(reached);
    const client = createCoreClient({
      baseUrl: config.url,
      headers: config.headers,
      ca,
      timeoutMs: config.timeoutMs,
      connectTimeoutMs: config.connectTimeoutMs,
      rules: { allowHttp: settings.allowHttp, allowPublic: settings.allowPublicCore },
      maxConnections: singleUse ? singleUseConnections : 1,
    });
    if (reached !== null) retire(reached);
    reached = { client, digest, calls: 0, isOld: false };
    return accept(reached);
  }

  /** Calls under way are answered. */
  function retire(core: Reached): void {
    core.isOld = true;
    if (core.calls === 0) void core.client.close();
  }

  async function mint(core: Reached, request: MintRequest): ReturnType<typeof mintToken> {
    core.calls += 1;
    try {
      return await mintToken(request, { client: core.client, clock });
    } finally {
      core.calls -= 1;
      if (core.isOld) retire(core);
    }
  }

  async function readCore(): Promise<Result<CoreFiles, string>> {
    const text = await files.read(curlConfigFile, { maxBytes: maxCurlConfigBytes });
    if (!text.ok) return refuse(`${curlConfigFile} ${text.error}`);
    const config = parseCurlConfig(text.value);
    if (!config.ok) return refuse(formatCurlProblem(curlConfigFile, config.error));
    const version = findHeader(config.value, 'cdi-version');
    const problem = version === null ? null : cdiVersionProblem(version);
    if (problem !== null) return refuse(`${curlConfigFile}: the header cdi-version ${problem}`);
    const hash = createHash('sha256').update(text.value);
    const { caFile } = config.value;
    if (caFile === null) return accept({ config: config.value, ca: null, digest: hash.digest('hex') });
    const path = resolve(dirname(curlConfigFile), caFile);
    const pem = await files.read(path, { maxBytes: maxCaFileBytes });
    const ca = readCaFile(path, pem);
    if (!ca.ok) return ca;
    return accept({ config: config.value, ca: ca.value, digest: hash.update(ca.value.join('\n')).digest('hex') });
  }

  return {
    fetch: async () => {
      if (!issuer.ok) return failed('refused', `the issuer is not ${issuer.error}`);
      const core = await reach();
      if (!core.ok) return failed('unreadable', core.error);
      const tokenId = singleUse ? randomBytes(tokenIdBytes).toString('base64url') : null;
      const bound = proofs === null ? {} : { confirmation: { certificate: null, key: proofs.thumbprint } };
      const request = { claims, issuer: issuer.value, validityS, tokenId, ...bound };
      const minted = await mint(core.value, request);
      if (!minted.ok) return refuse(inWords(minted.error));
      const { token, issuedAtS, expiresAtS } = minted.value;
      return accept({ token, lifetimeMs: (expiresAtS - issuedAtS) * 1_000 });
    },
    close: () => {
      isClosed = true;
      void reached?.client.close();
    },
  };
}

interface CoreFiles {
  readonly config: CurlConfig;
  readonly ca: readonly string[] | null;
  readonly digest: string;
}

const problems: Readonly<Record<MintFailure['kind'], TokenFailure['problem']>> = {
  unreachable: 'away',
  timeout: 'away',
  broken: 'away',
  aborted: 'away',
  core_error: 'away',
  rate_limited: 'away',
  refused_address: 'refused',
  unauthorized: 'refused',
  rejected: 'refused',
  unsupported_algorithm: 'refused',
  not_as_asked: 'bad_response',
};

function inWords({ kind, reason, status, retryAfterMs }: MintFailure): TokenFailure {
  const said = status === null ? `the Core gave no response: ${reason}` : reason;
  return { problem: problems[kind], reason: said, retryAfterMs };
}

function failed(problem: TokenFailure['problem'], reason: string): Result<never, TokenFailure> {
  return refuse({ problem, reason, retryAfterMs: null });
}
