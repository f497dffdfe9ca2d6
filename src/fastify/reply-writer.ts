import type { ServerResponse } from 'node:http';
import { bodyless } from '../proxy/upstream/http1/response-head.js';

/** Headers that tell of one body: that of another response has its own. */
const ofBody: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'trailer']);

/** What hooks have set, by lower-case names. */
type EarlierHeaders = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** Adds what is this caller's alone to all other headers of a response, names and values in turn. */
type AddOwn = (headers: string[]) => string[];

const nothing = Buffer.alloc(0);

/**
 * Writes to the caller past Fastify: what a handler has answered already, what was kept, and refusals while a handler
 * runs. Headers that hooks have set before stay, but where the response says otherwise: those of CORS, for instance,
 * which are never kept.
 */
export class ReplyWriter {
  private readonly raw: ServerResponse;
  private readonly earlier: EarlierHeaders;
  /** Whether nothing follows on its head. */
  private isWhole = false;

  constructor(raw: ServerResponse, earlier: EarlierHeaders) {
    this.raw = raw;
    this.earlier = earlier;
  }

  /** Writes a response that is complete. `headers` are names and values in turn. */
  sendWhole(status: number, headers: readonly string[], body: Buffer, addOwn?: AddOwn): void {
    const hasLength = headers.some((text, i) => i % 2 === 0 && text.toLowerCase() === 'content-length');
    const length = hasLength || this.hasNoBody(status) ? [] : ['Content-Length', String(body.length)];
    this.writeHead(status, [...headers, ...length], addOwn);
    this.end(body);
  }

  /** Begins a response that comes in pieces. */
  begin(status: number, headers: readonly string[], addOwn?: AddOwn): void {
    this.writeHead(status, headers, addOwn);
    if (this.isWhole) this.raw.end();
    // `flushHeaders` would write the head as UTF-8, and with it other bytes than the handler's.
    else this.raw.write('', 'latin1');
  }

  /** `false` when the caller does not keep up: `onDrain` is called once when it does. */
  write(chunk: Buffer, onDrain: () => void): boolean {
    const { raw } = this;
    if (this.isWhole || raw.destroyed || raw.write(chunk)) return true;
    raw.once('drain', onDrain);
    return false;
  }

  end(rest: Buffer = nothing): void {
    if (this.raw.writableEnded) return;
    if (this.isWhole || rest.length === 0) this.raw.end();
    else this.raw.end(rest);
  }

  private writeHead(status: number, headers: readonly string[], addOwn: AddOwn = (all) => all): void {
    const { raw, earlier } = this;
    const said = new Set(headers.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()));
    const kept = Object.entries(earlier).flatMap(([name, value]) =>
      value === undefined || said.has(name) || ofBody.has(name)
        ? []
        : [value].flat().flatMap((each) => [name, String(each)]),
    );
    for (const name of raw.getHeaderNames()) raw.removeHeader(name);
    raw.writeHead(status, addOwn([...kept, ...headers]));
    this.isWhole = this.hasNoBody(status);
  }

  private hasNoBody(status: number): boolean {
    return this.raw.req.method === 'HEAD' || bodyless.has(status);
  }
}
