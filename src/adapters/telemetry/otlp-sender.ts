import type { Agent, Dispatcher } from 'undici';
import { readRetryAfter } from '../../decision/egress/retry-after.js';
import { isFieldName } from '../../decision/http/header-names.js';
import { isFieldValue } from '../../decision/http/header-values.js';
import type { TelemetrySettings } from '../../decision/telemetry/otel-variables.js';
import { networkFailure } from '../../lib/errors.js';
import { agentFor, readBody } from '../../lib/http/requests.js';
import { maxCaFileBytes, readCaFile } from '../../lib/pem.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Files } from '../../ports/system.js';

/** What a collector answered, or why there is nothing. */
type SendResult =
  | { readonly kind: 'answered'; readonly body: Buffer }
  | { readonly kind: 'later'; readonly why: string; readonly afterMs: number | null }
  | { readonly kind: 'failed'; readonly why: string };

type SenderSettings = Pick<TelemetrySettings, 'protocol' | 'headers' | 'headersFile' | 'caFile' | 'timeoutMs'>;

/** A whole response has some bytes: a count and a sentence. */
const maxResponseBytes = 64 * 1024;
const maxHeadersFileBytes = 64 * 1024;

/** One for each kind of export. */
const maxConnections = 3;

/** With these the same export may be taken later (OTLP/HTTP, "Retryable Response Codes"). */
const retried: ReadonlySet<number> = new Set([429, 502, 503, 504]);

const mediaTypes = { 'http/protobuf': 'application/x-protobuf', 'http/json': 'application/json' } as const;

/**
 * Sends exports to a collector. Its responses are read within bounds, redirects are not followed, and what it says
 * stands in no message. Headers and authorities are read for every export, so that new ones count from the next on.
 */
export class OtlpSender {
  private readonly settings: SenderSettings;
  private readonly files: Files;
  private agent: { readonly ca: string; readonly agent: Agent } | null = null;

  constructor(settings: SenderSettings, files: Files) {
    this.settings = settings;
    this.files = files;
  }

  /** Never rejects. */
  async send(url: string, body: Uint8Array): Promise<SendResult> {
    const { headers: own, headersFile, protocol, timeoutMs } = this.settings;
    const headers = headersFile === null ? accept([]) : await readHeadersFile(headersFile, this.files);
    if (!headers.ok) return { kind: 'failed', why: headers.error };
    const agent = await this.agentInForce();
    if (!agent.ok) return { kind: 'failed', why: agent.error };
    const { origin, pathname, search } = new URL(url);
    try {
      const response = await agent.value.request({
        origin,
        path: `${pathname}${search}`,
        method: 'POST',
        headers: [...own, ...headers.value, 'content-type', mediaTypes[protocol], 'user-agent', 'sallyport'],
        body,
        signal: AbortSignal.timeout(timeoutMs),
      });
      return await read(response);
    } catch (error) {
      return { kind: 'later', why: networkFailure(error), afterMs: null };
    }
  }

  async close(): Promise<void> {
    await this.agent?.agent.destroy();
    this.agent = null;
  }

  private async agentInForce(): Promise<Result<Agent, string>> {
    const { caFile, timeoutMs } = this.settings;
    const ca =
      caFile === null ? accept(null) : readCaFile(caFile, await this.files.read(caFile, { maxBytes: maxCaFileBytes }));
    if (!ca.ok) return ca;
    const text = ca.value?.join('\n') ?? '';
    if (this.agent?.ca !== text) {
      void this.agent?.agent.close();
      const agent = agentFor({ ca: ca.value, certificate: null }, { timeoutMs, maxConnections });
      this.agent = { ca: text, agent };
    }
    return accept(this.agent.agent);
  }
}

/** `Name: value` in each line; empty ones and those that begin with `#` are left out. */
export async function readHeadersFile(path: string, files: Files): Promise<Result<readonly string[], string>> {
  const text = await files.read(path, { maxBytes: maxHeadersFileBytes });
  if (!text.ok) return refuse(`the headers file ${path} ${text.error}`);
  const headers: string[] = [];
  for (const [index, line] of text.value.split('\n').entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const colon = line.indexOf(':');
    const [name, value] = [line.slice(0, Math.max(colon, 0)), line.slice(colon + 1).trim()];
    if (!isFieldName(name) || value === '' || !isFieldValue(value)) {
      return refuse(`the headers file ${path} has no header in line ${String(index + 1)}; allowed: Name: value`);
    }
    headers.push(name, value);
  }
  return accept(headers);
}

async function read({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<SendResult> {
  const whole = await readBody(body, maxResponseBytes);
  if (whole === null) return { kind: 'failed', why: 'the answer of the collector is larger than 64 KiB' };
  if (statusCode === 200) return { kind: 'answered', body: whole };
  const why = `the collector answered with status ${String(statusCode)}`;
  if (!retried.has(statusCode)) return { kind: 'failed', why };
  const { 'retry-after': retryAfter } = headers;
  const afterMs = typeof retryAfter === 'string' ? readRetryAfter(retryAfter, Date.now()) : null;
  return { kind: 'later', why, afterMs };
}
