/** What every request of ours to a server beside the upstream has in common: TLS is verified, responses are bounded. */
import { Agent, type Dispatcher } from 'undici';

/** A response has a dozen headers at most. */
const maxHeaderBytes = 16 * 1024;

/** Shorter than what servers allow, so that a request does not meet a connection that was just given up. */
const keepAliveMs = 4_000;

/** What both sides show in TLS, in PEM. */
interface TlsSettings {
  /** Authorities that vouch for the server; `null` stands for the system's. */
  readonly ca: readonly string[] | null;
  /** What it is shown; `null` where nothing is. */
  readonly certificate: { readonly cert: string; readonly key: string } | null;
}

/** Connections with one server. */
interface ConnectionLimits {
  /** For a request as a whole, milliseconds. */
  readonly timeoutMs: number;
  /** Requests at once; more wait for a connection. `null` opens one for each request, and keeps none. */
  readonly maxConnections: number | null;
}

/** Opens connections, when they are needed. TLS is verified by the given authorities alone where there are some. */
export function agentFor({ ca, certificate }: TlsSettings, { timeoutMs, maxConnections }: ConnectionLimits): Agent {
  return new Agent({
    connect: {
      // Said here, so that NODE_TLS_REJECT_UNAUTHORIZED in the environment does not unsay it.
      rejectUnauthorized: true,
      timeout: timeoutMs,
      ...(ca === null ? {} : { ca: [...ca] }),
      ...(certificate ?? {}),
    },
    ...(maxConnections === null ? { pipelining: 0 } : { connections: maxConnections }),
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxHeaderSize: maxHeaderBytes,
  });
}

/** Reads a whole body; `null` where it is larger than that, and then no more of it is read. */
export async function readBody(body: Dispatcher.ResponseData['body'], maxBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    // Leaving the loop destroys the stream: nothing more is read.
    if (bytes > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Reads nothing of a body. */
export function dropBody(body: Dispatcher.ResponseData['body']): void {
  // Nobody looks at it, but an error of its stream still has to be taken.
  body.on('error', () => undefined).destroy();
}

/** Whether a response sends elsewhere (RFC 9110 §15.4). */
export function isRedirect(status: number): boolean {
  return [301, 302, 303, 307, 308].includes(status);
}

/** Whether the body is as its type says, not compressed: nobody asked for that. */
export function isPlain(headers: Dispatcher.ResponseData['headers']): boolean {
  return (headers['content-encoding'] ?? 'identity') === 'identity';
}
