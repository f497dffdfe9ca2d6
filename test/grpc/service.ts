/** `shop.v1.Orders` on `@grpc/grpc-js`: the same methods as the service in Python of `support/grpcio.ts`. */
import {
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  status,
  type CallOptions,
  type ChannelCredentials,
  type ChannelOptions,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientUnaryCall,
  type ClientWritableStream,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type StatusObject,
  type handleUnaryCall,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { bytesMethod } from '../support/grpc-server.js';
import type { Scope } from '../support/scope.js';

export const prefix = '/shop.v1.Orders/';

/** All values of a byte. */
export const allBytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

type AnyCall = Pick<ServerUnaryCall<Buffer, Buffer>, 'metadata' | 'sendMetadata'>;

/** What it was sent is told in the head of the answer and behind it. */
function echoMetadata(call: AnyCall): Metadata {
  const text = call.metadata.get('x-text')[0] ?? '';
  const bytes = call.metadata.get('x-data-bin')[0] ?? Buffer.alloc(0);
  const initial = new Metadata();
  initial.set('x-initial', text);
  initial.set('x-initial-bin', bytes);
  call.sendMetadata(initial);
  const trailing = new Metadata();
  trailing.set('x-trailing', text);
  trailing.set('x-trailing-bin', bytes);
  trailing.set('x-seen-subject', String(call.metadata.get('x-auth-subject')[0] ?? ''));
  return trailing;
}

export interface NodeService {
  readonly port: number;
  /** Calls that it saw end before it answered. */
  readonly cancelled: () => number;
  /** Unary calls that it ran. */
  readonly runs: () => number;
  /** Calls of `Wait` that are under way. */
  readonly waiting: () => number;
  /** Answers them. */
  readonly release: () => void;
  /** Breaks off what is under way, and listens no more. */
  readonly kill: () => void;
}

/** Serves it on a free port of loopback until the test ends; over TLS with these credentials. */
export async function startNodeService(
  t: Scope,
  tls: ServerCredentials = ServerCredentials.createInsecure(),
): Promise<NodeService> {
  let cancelled = 0;
  let runs = 0;
  const waiting = new Set<sendUnaryData<Buffer>>();
  const unary: handleUnaryCall<Buffer, Buffer> = (call, reply) => {
    runs += 1;
    reply(null, call.request, echoMetadata(call));
  };
  const handlers = {
    Unary: unary,
    Collect: (call: ServerReadableStream<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => {
      const trailing = echoMetadata(call);
      let [messages, bytes] = [0, 0];
      call.on('data', (message: Buffer) => {
        messages += 1;
        bytes += message.length;
      });
      call.on('end', () => reply(null, Buffer.from(`${String(messages)}:${String(bytes)}`), trailing));
    },
    Split: (call: ServerWritableStream<Buffer, Buffer>) => {
      const trailing = echoMetadata(call);
      const count = Number(call.request.toString());
      let number = 0;
      const write = (): void => {
        while (number < count) {
          const flows = call.write(Buffer.from(String(number)));
          number += 1;
          if (!flows) {
            call.once('drain', write);
            return;
          }
        }
        call.end(trailing);
      };
      write();
    },
    Both: (call: ServerDuplexStream<Buffer, Buffer>) => {
      const trailing = echoMetadata(call);
      call.on('data', (message: Buffer) => call.write(message));
      call.on('end', () => call.end(trailing));
    },
    /** Both ways, and never at an end by itself. */
    Hold: (call: ServerDuplexStream<Buffer, Buffer>) => {
      call.on('data', (message: Buffer) => call.write(message));
      call.on('cancelled', () => (cancelled += 1));
    },
    Fail: (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => {
      const metadata = new Metadata();
      metadata.set('x-trailing', 'of a failure');
      metadata.set('grpc-status-details-bin', call.request);
      reply({ code: status.FAILED_PRECONDITION, details: 'half ä and 100%', metadata });
    },
    Wait: (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => {
      waiting.add(reply);
      call.on('cancelled', () => {
        waiting.delete(reply);
        cancelled += 1;
      });
    },
    Ticks: (call: ServerWritableStream<Buffer, Buffer>) => {
      const timer = setInterval(() => call.write(Buffer.from('tick')), 50);
      call.on('cancelled', () => {
        clearInterval(timer);
        cancelled += 1;
      });
    },
    Cancelled: (_call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => {
      reply(null, Buffer.from(String(cancelled)));
    },
    Remaining: (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => {
      const deadline = call.getDeadline();
      reply(null, Buffer.from(deadline === Infinity ? 'none' : String(Number(deadline) - Date.now())));
    },
  };
  const server = new Server();
  const streams: Readonly<Record<string, readonly [boolean, boolean]>> = {
    Collect: [true, false],
    Split: [false, true],
    Both: [true, true],
    Hold: [true, true],
    Ticks: [false, true],
  };
  for (const service of ['/shop.v1.Orders/', '/shop.v1.Small/']) {
    const methods = Object.keys(handlers).map((name) => {
      const [requests = false, responses = false] = streams[name] ?? [];
      return [name, bytesMethod(`${service}${name}`, requests, responses)] as const;
    });
    server.addService(Object.fromEntries(methods), handlers);
  }
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', tls, (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  t.teardown(() => server.forceShutdown());
  return {
    port,
    cancelled: () => cancelled,
    runs: () => runs,
    waiting: () => waiting.size,
    release: () => {
      for (const reply of waiting) reply(null, Buffer.from('released'));
      waiting.clear();
    },
    kill: () => server.forceShutdown(),
  };
}

/** How a call ended, and what it was told. */
export interface Outcome {
  readonly messages: readonly Buffer[];
  readonly initial: Metadata | null;
  readonly status: StatusObject;
}

export interface CallerOptions {
  readonly metadata?: Readonly<Record<string, string | Buffer>>;
  readonly call?: CallOptions;
}

export interface Caller {
  /** One message there, one back. */
  readonly unary: (path: string, message?: Buffer, options?: CallerOptions) => Promise<Outcome>;
  /** Many there, one back. */
  readonly collect: (path: string, messages: readonly Buffer[], options?: CallerOptions) => Promise<Outcome>;
  /** A call that streams back. */
  readonly split: (path: string, message?: Buffer, options?: CallerOptions) => ClientReadableStream<Buffer>;
  /** A call that streams both ways. */
  readonly both: (path: string, options?: CallerOptions) => ClientDuplexStream<Buffer, Buffer>;
}

/**
 * A client that shows this credential, with a connection of its own, and repeats nothing by itself.
 *
 * @param tls how it speaks TLS, without which it does not.
 */
export function createCaller(
  t: Scope,
  port: number,
  authorization: string | null = null,
  channel: ChannelOptions = {},
  tls: ChannelCredentials | null = null,
): Caller {
  const host = tls === null ? '127.0.0.1' : 'localhost';
  const client = new Client(`${host}:${String(port)}`, tls ?? credentials.createInsecure(), {
    'grpc.enable_retries': 0,
    'grpc.use_local_subchannel_pool': 1,
    ...channel,
  });
  t.teardown(() => client.close());
  const asIs = (bytes: Buffer): Buffer => bytes;
  const metadataOf = ({ metadata = {} }: CallerOptions): Metadata => {
    const sent = new Metadata();
    if (authorization !== null) sent.set('authorization', authorization);
    for (const [name, value] of Object.entries(metadata)) sent.set(name, value);
    return sent;
  };
  const single = (
    begin: (
      callback: (error: ServiceError | null, message?: Buffer) => void,
    ) => ClientUnaryCall | ClientWritableStream<Buffer>,
  ): Promise<Outcome> =>
    new Promise((resolve) => {
      let initial: Metadata | null = null;
      const messages: Buffer[] = [];
      const call = begin((_error, message) => {
        if (message !== undefined) messages.push(message);
      });
      call.on('metadata', (metadata: Metadata) => (initial = metadata));
      call.on('status', (ended: StatusObject) => setImmediate(() => resolve({ messages, initial, status: ended })));
    });
  return {
    unary: (path, message = Buffer.alloc(0), options = {}) =>
      single((callback) =>
        client.makeUnaryRequest(path, asIs, asIs, message, metadataOf(options), options.call ?? {}, callback),
      ),
    collect: (path, messages, options = {}) =>
      single((callback) => {
        const call = client.makeClientStreamRequest(
          path,
          asIs,
          asIs,
          metadataOf(options),
          options.call ?? {},
          callback,
        );
        for (const message of messages) call.write(message);
        call.end();
        return call;
      }),
    split: (path, message = Buffer.alloc(0), options = {}) =>
      client.makeServerStreamRequest(path, asIs, asIs, message, metadataOf(options), options.call ?? {}),
    both: (path, options = {}) =>
      client.makeBidiStreamRequest(path, asIs, asIs, metadataOf(options), options.call ?? {}),
  };
}

/** Reads a call that streams back to its end, however it ends. */
export function outcomeOf(call: ClientReadableStream<Buffer> | ClientDuplexStream<Buffer, Buffer>): Promise<Outcome> {
  return new Promise((resolve) => {
    let initial: Metadata | null = null;
    const messages: Buffer[] = [];
    call.on('metadata', (metadata: Metadata) => (initial = metadata));
    call.on('data', (message: Buffer) => messages.push(message));
    // Its status says the same.
    call.on('error', () => undefined);
    call.on('status', (ended: StatusObject) => setImmediate(() => resolve({ messages, initial, status: ended })));
  });
}
