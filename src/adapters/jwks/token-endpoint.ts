import { accept, refuse, type Result } from '../../lib/result.js';
import type { Clock } from '../../ports/system.js';
import { fetchText, type FetchAccess } from './fetch-url.js';
import { readTokenEndpoints, type TokenEndpoints } from './metadata-document.js';

/** Where an issuer's metadata is. */
interface MetadataPlace {
  /** What the document's `issuer` has to be, to the letter. */
  readonly issuer: string;
  /** In the order in which they are asked: the next where the response to one says that there is none. */
  readonly urls: readonly string[];
  /** For all of them together, milliseconds. */
  readonly timeoutMs: number;
}

/** Where tokens are asked for, as long as nobody says otherwise. */
interface FoundEndpoint {
  readonly find: () => Promise<Result<TokenEndpoints, string>>;
  /** It is looked for anew, at most once in 30 s. What was known serves on where nothing else is found. */
  readonly forget: () => void;
}

/** For how long a document is believed, milliseconds. */
const keptMs = 10 * 60_000;

/** Where one is known, it is looked for anew at most this often, milliseconds, however many requests fail. */
const lookEveryMs = 30_000;

const maxBytes = 64 * 1024;

/** Finds an issuer's token endpoint by its metadata (OpenID Connect Discovery §4, RFC 8414 §3). */
export function createTokenEndpoint(
  { issuer, urls, timeoutMs }: MetadataPlace,
  access: Omit<FetchAccess, 'tokenFile'>,
  { monotonic }: Pick<Clock, 'monotonic'>,
): FoundEndpoint {
  let known: TokenEndpoints | null = null;
  let freshUntilMs = -Infinity;
  let forgottenAtMs = -Infinity;
  let underWay: Promise<Result<TokenEndpoints, string>> | null = null;

  async function look(): Promise<Result<TokenEndpoints, string>> {
    const startedMs = monotonic();
    const read = await readFirst();
    if (!read.ok) {
      if (known === null) return read;
      freshUntilMs = startedMs + lookEveryMs;
      return accept(known);
    }
    known = read.value;
    freshUntilMs = startedMs + keptMs;
    return read;
  }

  async function readFirst(): Promise<Result<TokenEndpoints, string>> {
    const signal = AbortSignal.timeout(timeoutMs);
    let why = 'it has no place';
    for (const url of urls) {
      const limits = { maxBytes, timeoutMs, maxRedirects: 0 };
      const fetched = await fetchText(new URL(url), { ...access, tokenFile: null }, limits, signal);
      if (fetched.ok) return readTokenEndpoints(fetched.value.bytes, issuer);
      why = signal.aborted ? `no complete response within ${String(timeoutMs)} ms` : fetched.error.why;
      if (fetched.error.status !== 404) break;
    }
    return refuse(`the issuer’s metadata could not be had: ${why}`);
  }

  return {
    find: () => {
      if (known !== null && monotonic() < freshUntilMs) return Promise.resolve(accept(known));
      underWay ??= look().finally(() => {
        underWay = null;
      });
      return underWay;
    },
    forget: () => {
      const nowMs = monotonic();
      if (nowMs < forgottenAtMs + lookEveryMs) return;
      forgottenAtMs = nowMs;
      freshUntilMs = -Infinity;
    },
  };
}
