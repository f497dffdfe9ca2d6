/**
 * An HTTP client that sends the bytes it is given and nothing else: `fetch`, undici and `inject` repair or refuse most
 * of what the tests have to send.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { readResponse, type ParsedResponse } from './raw-response.js';

/** One response of a connection; 1xx ones count as responses of their own. */
export interface RawResponse extends ParsedResponse {
  /** Whether the peer had closed the connection when this was returned. */
  readonly closed: boolean;
}

export interface ConnectOptions {
  /** 127.0.0.1 unless given. */
  readonly host?: string;
  readonly tls?: ConnectionOptions;
  /** Path of a unix socket, instead of the port. */
  readonly unix?: string;
  /** How long to wait for an answer; 20 s unless given. */
  readonly limitMs?: number;
}

export interface RawConnection {
  readonly socket: Socket;
  readonly write: (bytes: string | Buffer) => void;
  /** The next response, 1xx ones too; `null` once the peer closed without one. `bodyless` when it answers HEAD. */
  readonly readResponse: (options?: { readonly bodyless?: boolean }) => Promise<RawResponse | null>;
  /** Resolves when the connection is closed, by whomever. */
  readonly closed: Promise<void>;
  readonly isClosed: () => boolean;
  /** Bytes that came and were not yet taken by `readResponse`. */
  readonly pending: () => Buffer;
  /** Closes at once. */
  readonly end: () => void;
}

export interface SendOptions extends ConnectOptions {
  /** Final responses to wait for; 1 unless given. */
  readonly responses?: number;
  /** Wait until the peer closes, whatever came before. */
  readonly untilClosed?: boolean;
  /** Say that no more bytes follow (half-close) after the last one. */
  readonly finish?: boolean;
}

/** Opens a connection. An error of the socket counts as a close. */
export async function connectRaw(port: number, options: ConnectOptions = {}): Promise<RawConnection> {
  const limitMs = options.limitMs ?? 20_000;
  const socket = open(port, options);
  let buffered = Buffer.alloc(0);
  let over = false;
  let wake = (): void => undefined;
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      over = true;
      resolve();
      wake();
    });
  });
  socket.on('data', (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk]);
    wake();
  });
  socket.on('end', () => {
    over = true;
    wake();
  });
  await once(socket, options.tls === undefined ? 'connect' : 'secureConnect');
  socket.on('error', () => undefined);
  socket.setNoDelay(true);

  const next = async (bodyless: boolean): Promise<RawResponse | null> => {
    const deadline = performance.now() + limitMs;
    for (;;) {
      const read = readResponse(buffered, over, bodyless);
      if (read !== null) {
        buffered = buffered.subarray(read.length);
        return { ...read.response, closed: over };
      }
      if (over) return null;
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) {
        throw new Error(
          `no response within ${String(limitMs)} ms; so far: ${JSON.stringify(buffered.toString('latin1').slice(0, 500))}`,
        );
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        wake = (): void => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  };
  return {
    socket,
    write: (bytes) => {
      socket.write(bytes);
    },
    readResponse: async ({ bodyless = false } = {}) => next(bodyless),
    closed,
    isClosed: () => over,
    pending: () => buffered,
    end: () => socket.destroy(),
  };
}

/**
 * Sends the bytes over a new connection and returns what came back, 1xx responses included. Ends after the wanted
 * number of final responses, having waited for the close when the last one announced it, or when the peer closes.
 */
export async function sendRaw(port: number, bytes: string | Buffer, options: SendOptions = {}): Promise<RawResponse[]> {
  const connection = await connectRaw(port, options);
  const bodyless = bytes.toString('latin1').startsWith('HEAD ');
  const responses: RawResponse[] = [];
  let wanted = options.responses ?? 1;
  try {
    connection.write(bytes);
    if (options.finish === true) connection.socket.end();
    while (wanted > 0 || options.untilClosed === true) {
      const response = await connection.readResponse({ bodyless: bodyless && wanted === (options.responses ?? 1) });
      if (response === null) break;
      responses.push(response);
      if (response.status < 200) continue;
      wanted -= 1;
      if (closes(response)) break;
    }
    const last = responses.at(-1);
    if (last === undefined) return responses;
    if (!closes(last)) return responses;
    const extra = await connection.readResponse();
    return [...responses.slice(0, -1), { ...last, closed: true }, ...(extra === null ? [] : [extra])];
  } finally {
    connection.end();
  }
}

function closes(response: RawResponse): boolean {
  return response.status >= 200 && (response.field('connection')?.toLowerCase().includes('close') ?? false);
}

export type RequestHeaders = readonly (readonly [string, string])[] | Readonly<Record<string, string>>;

export interface RequestInput {
  /** GET unless given. */
  readonly method?: string;
  /** The request target, sent as it stands. */
  readonly path: string;
  readonly headers?: RequestHeaders;
  readonly body?: string | Buffer;
}

/** Sends one request over a connection of its own and returns the final response. */
export async function request(port: number, input: RequestInput, options: SendOptions = {}): Promise<RawResponse> {
  const responses = await sendRaw(port, requestBytes(port, input), options);
  const final = responses.find((response) => response.status >= 200);
  if (final === undefined) throw new Error(`no answer to ${input.method ?? 'GET'} ${input.path}`);
  return final;
}

/** The bytes of a request; `Host` and, with a body, `Content-Length` are added where they are not given. */
export function requestBytes(port: number, input: RequestInput): Buffer {
  const given = Array.isArray(input.headers)
    ? (input.headers as readonly (readonly [string, string])[])
    : Object.entries(input.headers ?? {});
  const names = new Set(given.map(([name]) => name.toLowerCase()));
  const fields = [...given];
  if (!names.has('host')) fields.unshift(['Host', `127.0.0.1:${String(port)}`]);
  const body = Buffer.from(input.body ?? '');
  const framed = names.has('content-length') || names.has('transfer-encoding');
  if (input.body !== undefined && !framed) fields.push(['Content-Length', String(body.length)]);
  const head = [
    `${input.method ?? 'GET'} ${input.path} HTTP/1.1`,
    ...fields.map(([name, value]) => `${name}: ${value}`),
    '',
    '',
  ].join('\r\n');
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}

function open(port: number, options: ConnectOptions): Socket {
  const place = options.unix === undefined ? { port, host: options.host ?? '127.0.0.1' } : { path: options.unix };
  return options.tls === undefined ? connect(place) : connectTls({ ...place, ...options.tls });
}
