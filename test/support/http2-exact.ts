/**
 * Requests of HTTP/2 with any fields at all, byte for byte, and their answers as Node's client reads them: in what that
 * client sends each head is replaced on its way by the one that was asked for.
 */
import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { ask, type Http2Response } from './http2-client.js';
import { fieldBlock, flags, frame, frameTypes, preface } from './http2-frames.js';

/** Bytes that one frame may have unless the peer allows more (RFC 9113 §4.2). */
const maxFrameBytes = 16_384;

export interface ExactRequest {
  /** Names and values in turn, pseudo-header fields too; one byte for each character. */
  readonly fields: readonly string[];
  /** `null` where the head ends the stream. */
  readonly body: Buffer | null;
  /** Whether the answer has no body: it is to HEAD. */
  readonly isHead: boolean;
}

export interface ExactClient {
  readonly ask: (request: ExactRequest) => Promise<Http2Response>;
  /** Whether it takes no more requests. */
  readonly isClosed: () => boolean;
  readonly close: () => void;
}

export interface ExactOptions {
  readonly tls?: ConnectionOptions;
  /** Path of a unix socket, instead of the port. */
  readonly unix?: string;
  /** How long to wait for an answer; 20 s unless given. */
  readonly limitMs?: number;
}

/** Opens a connection, on which one request is made at a time. */
export async function connectExact(port: number, options: ExactOptions = {}): Promise<ExactClient> {
  const place = options.unix === undefined ? { port, host: '127.0.0.1' } : { path: options.unix };
  const socket: Socket =
    options.tls === undefined ? connect(place) : connectTls({ ...place, ...options.tls, ALPNProtocols: ['h2'] });
  socket.on('error', () => undefined);
  await once(socket, options.tls === undefined ? 'connect' : 'secureConnect');
  const heads = new HeadReplacer(socket);
  const session = connectHttp2('http://127.0.0.1', { createConnection: () => heads });
  session.on('error', () => undefined);
  await once(session, 'connect');
  return {
    ask: async (request) => {
      heads.next = request.fields;
      return within(options.limitMs ?? 20_000, askPlainly(session, request));
    },
    isClosed: () => session.closed || session.destroyed || socket.destroyed,
    close: () => {
      session.destroy();
      socket.destroy();
    },
  };
}

async function askPlainly(session: ClientHttp2Session, { body, isHead }: ExactRequest): Promise<Http2Response> {
  const method = isHead ? 'HEAD' : body === null ? 'GET' : 'POST';
  return ask(session, { ':method': method, ':path': '/' }, body);
}

async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${limitMs} ms`)), limitMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** Carries a connection, and puts the fields of `next` in the place of each head that goes out. */
class HeadReplacer extends Duplex {
  next: readonly string[] = [];
  private readonly socket: Socket;
  private pending: Buffer = Buffer.alloc(0);
  private isBegun = false;

  constructor(socket: Socket) {
    super();
    this.socket = socket;
    socket.on('data', (bytes: Buffer) => {
      if (!this.push(bytes)) socket.pause();
    });
    socket.on('end', () => this.push(null));
    socket.on('close', () => this.destroy());
  }

  override _read(): void {
    this.socket.resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.pending = Buffer.concat([this.pending, bytes]);
    const out = this.takeFrames();
    if (out.length === 0 || this.socket.destroyed) done();
    else this.socket.write(out, () => done());
  }

  override _final(done: () => void): void {
    this.socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.socket.destroy();
    done(error);
  }

  private takeFrames(): Buffer {
    const out: Buffer[] = [];
    if (!this.isBegun && this.pending.length >= preface.length) {
      out.push(this.pending.subarray(0, preface.length));
      this.pending = this.pending.subarray(preface.length);
      this.isBegun = true;
    }
    while (this.isBegun && this.pending.length >= 9) {
      const end = 9 + this.pending.readUIntBE(0, 3);
      if (this.pending.length < end) break;
      const isHead = this.pending.readUInt8(3) === frameTypes.headers;
      out.push(
        isHead
          ? headFrames(this.pending.readUInt32BE(5), this.next, (this.pending.readUInt8(4) & flags.endStream) !== 0)
          : this.pending.subarray(0, end),
      );
      this.pending = this.pending.subarray(end);
    }
    return Buffer.concat(out);
  }
}

/** A head in as many frames as it takes. */
function headFrames(stream: number, fields: readonly string[], endStream: boolean): Buffer {
  const block = fieldBlock(fields);
  const frames: Buffer[] = [];
  for (let at = 0; at === 0 || at < block.length; at += maxFrameBytes) {
    const isLast = at + maxFrameBytes >= block.length;
    const flag = (isLast ? flags.endHeaders : 0) + (at === 0 && endStream ? flags.endStream : 0);
    const type = at === 0 ? frameTypes.headers : frameTypes.continuation;
    frames.push(frame(type, flag, stream, block.subarray(at, at + maxFrameBytes)));
  }
  return Buffer.concat(frames);
}
