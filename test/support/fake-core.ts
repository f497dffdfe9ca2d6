/** A server in the Core's place that answers as a test says, and keeps what it was asked. */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { listen } from './listening.js';
import type { Scope } from './scope.js';

export interface ReceivedCall {
  readonly method: string;
  readonly target: string;
  /** Names in lower case, in the order they came. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
}

export type FakeAnswer = (call: ReceivedCall, response: ServerResponse) => unknown;

export interface FakeCore {
  readonly url: string;
  readonly port: number;
  readonly calls: readonly ReceivedCall[];
  readonly answer: (answer: FakeAnswer) => void;
  readonly close: () => Promise<void>;
}

/** Answers `{"status":"OK"}` unless told otherwise; with `tls`, over https. */
export async function startFakeCore(t: Scope, tls?: ServerOptions): Promise<FakeCore> {
  const calls: ReceivedCall[] = [];
  let answer: FakeAnswer = (_, response) => response.end('{"status":"OK"}');
  const listener: RequestListener = (request, response) => {
    receive(request).then(
      (call) => {
        calls.push(call);
        answer(call, response);
      },
      () => response.destroy(),
    );
  };
  const server: Server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  const { port, close } = await listen(t, server);
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${String(port)}`,
    port,
    calls,
    answer: (next) => {
      answer = next;
    },
    close,
  };
}

async function receive(request: IncomingMessage): Promise<ReceivedCall> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const raw = request.rawHeaders;
  const headers = raw.flatMap((name, index) =>
    index % 2 === 0 ? [[name.toLowerCase(), raw[index + 1] ?? ''] as const] : [],
  );
  return {
    method: request.method ?? '',
    target: request.url ?? '',
    headers,
    body: Buffer.concat(chunks).toString('utf8'),
  };
}
