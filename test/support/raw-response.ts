/** One response as it came over the wire. */
export interface ParsedResponse {
  readonly status: number;
  readonly httpVersion: string;
  /** Names as they were spelled. */
  readonly fields: readonly (readonly [string, string])[];
  /** The values of the field, joined with `, `; `null` where it does not occur. */
  readonly field: (name: string) => string | null;
  readonly body: Buffer;
  readonly text: string;
  /** The bytes of the response, head and framing included. */
  readonly raw: Buffer;
  /** Whether the body ended as its framing said it would. */
  readonly complete: boolean;
}

/** What could be read of a response so far: how many bytes it takes, or `null` while more are needed. */
interface Read {
  readonly response: ParsedResponse;
  readonly length: number;
}

/** Reads the first response of these bytes. `ended` says that no more will come; `bodyless` that it answers HEAD. */
export function readResponse(bytes: Buffer, ended: boolean, bodyless: boolean): Read | null {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const status = /^HTTP\/(\d\.\d) (\d{3})/.exec(statusLine);
  if (status === null) throw new Error(`not a response: ${JSON.stringify(statusLine)}`);
  const fields = lines.map((line): readonly [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const code = Number(status[2]);
  const framing = bodyless || code < 200 || code === 204 || code === 304 ? 'none' : framingOf(fields);
  const rest = bytes.subarray(headEnd + 4);
  const read = readBody(rest, framing);
  if (!read.complete && !ended) return null;
  const complete = read.complete || framing === 'close';
  const body = read.body;
  const length = headEnd + 4 + read.length;
  return {
    response: {
      status: code,
      httpVersion: status[1] ?? '',
      fields,
      field: (name) => fieldOf(fields, name),
      body,
      text: body.toString(),
      raw: bytes.subarray(0, length),
      complete,
    },
    length,
  };
}

type Framing = number | 'chunked' | 'close' | 'none';

function framingOf(fields: readonly (readonly [string, string])[]): Framing {
  if (fieldOf(fields, 'transfer-encoding') === 'chunked') return 'chunked';
  const length = fieldOf(fields, 'content-length');
  return length === null ? 'close' : Number(length);
}

function fieldOf(fields: readonly (readonly [string, string])[], name: string): string | null {
  const values = fields.filter(([key]) => key.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
  return values.length === 0 ? null : values.join(', ');
}

function readBody(bytes: Buffer, framing: Framing): { body: Buffer; length: number; complete: boolean } {
  if (framing === 'none') return { body: Buffer.alloc(0), length: 0, complete: true };
  if (framing === 'close') return { body: bytes, length: bytes.length, complete: false };
  if (framing === 'chunked') return readChunks(bytes);
  const body = bytes.subarray(0, framing);
  return { body, length: body.length, complete: body.length === framing };
}

function readChunks(bytes: Buffer): { body: Buffer; length: number; complete: boolean } {
  const chunks: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const size = lineEnd < 0 ? Number.NaN : Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    if (Number.isNaN(size)) return { body: Buffer.concat(chunks), length: bytes.length, complete: false };
    if (size === 0) {
      const end = bytes.indexOf('\r\n\r\n', lineEnd);
      return { body: Buffer.concat(chunks), length: end < 0 ? bytes.length : end + 4, complete: end >= 0 };
    }
    chunks.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
    if (at > bytes.length) return { body: Buffer.concat(chunks), length: bytes.length, complete: false };
  }
}
