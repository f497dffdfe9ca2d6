/**
 * HTTP/1.1 requests in bytes, read strictly by RFC 9112: one character is one byte. Shares nothing with any parser of
 * Node.
 */
import type { Field } from './model-fields.js';
import type { Head } from './model.js';

export interface WireRequest {
  readonly head: Head;
  readonly body: string;
  /** Where it ends. */
  readonly end: number;
}

export interface ReadWire {
  readonly requests: readonly WireRequest[];
  /** What follows the last whole request: nothing, a beginning, or what is no request. */
  readonly rest: 'none' | 'incomplete' | 'malformed';
}

class Malformed extends Error {}

/** Reads all that is there. */
export function readWire(bytes: string): ReadWire {
  const requests: WireRequest[] = [];
  let at = 0;
  for (;;) {
    // RFC 9112 §2.2: empty lines before a request line are to be ignored.
    while (bytes[at] === '\r' || bytes[at] === '\n') at += 1;
    if (at === bytes.length) return { requests, rest: 'none' };
    try {
      const request = readRequest(bytes, at);
      if (request === null) return { requests, rest: 'incomplete' };
      requests.push(request);
      at = request.end;
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      return { requests, rest: 'malformed' };
    }
  }
}

function readRequest(bytes: string, start: number): WireRequest | null {
  const lines: string[] = [];
  let at = start;
  for (;;) {
    const line = lineAt(bytes, at);
    if (line === null) return null;
    at += line.length + 2;
    if (line === '') break;
    lines.push(line);
  }
  // RFC 9112 §3 lets a server take several spaces for one. Node does; what goes on has one.
  const [, method, target, version] = /^([^ ]+) +([^ ]+) +HTTP\/([0-9]\.[0-9])$/.exec(lines[0] ?? '') ?? [];
  if (method === undefined || target === undefined || version === undefined) throw new Malformed();
  const fields = lines.slice(1).map(readField);
  const head: Head = { method, target, version, fields };
  const body = readBody(bytes, at, fields);
  return body === null ? null : { head, body: body.text, end: body.end };
}

/** A line up to CRLF; `null` where that is still to come. A CR or LF alone ends nothing, and stands in no line. */
function lineAt(bytes: string, at: number): string | null {
  const end = bytes.indexOf('\n', at);
  const line = bytes.slice(at, end < 0 ? bytes.length : end - 1);
  if (/[\r\n\0]/.test(end < 0 ? line.replace(/\r$/, '') : line)) throw new Malformed();
  if (end < 0) return null;
  if (end === at || bytes[end - 1] !== '\r') throw new Malformed();
  return line;
}

function readField(line: string): Field {
  const [, name, value] = /^([^\s:]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
  if (name === undefined || value === undefined) throw new Malformed();
  return [name, value];
}

function readBody(
  bytes: string,
  at: number,
  fields: readonly Field[],
): { readonly text: string; readonly end: number } | null {
  const valuesOf = (wanted: string): string[] =>
    fields.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value);
  const [lengths, codings] = [valuesOf('content-length'), valuesOf('transfer-encoding')];
  if (lengths.length + codings.length > 1) throw new Malformed();
  if (codings[0] !== undefined) {
    if (codings[0].toLowerCase() !== 'chunked') throw new Malformed();
    return readChunks(bytes, at);
  }
  const length = lengths[0] ?? '0';
  if (!/^[0-9]+$/.test(length)) throw new Malformed();
  const end = at + Number(length);
  return end > bytes.length ? null : { text: bytes.slice(at, end), end };
}

function readChunks(bytes: string, start: number): { readonly text: string; readonly end: number } | null {
  let at = start;
  let text = '';
  for (;;) {
    const line = lineAt(bytes, at);
    if (line === null) return null;
    const size = /^([0-9a-fA-F]+)(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?$/.exec(line)?.[1];
    if (size === undefined) throw new Malformed();
    at += line.length + 2;
    const length = Number.parseInt(size, 16);
    if (length === 0) return readTrailers(bytes, at, text);
    if (!Number.isSafeInteger(length)) throw new Malformed();
    const after = bytes.slice(at + length, at + length + 2);
    if (!'\r\n'.startsWith(after)) throw new Malformed();
    if (after.length < 2) return null;
    text += bytes.slice(at, at + length);
    at += length + 2;
  }
}

/** Trailers end here; they only have to be well-formed. */
function readTrailers(
  bytes: string,
  start: number,
  text: string,
): { readonly text: string; readonly end: number } | null {
  let at = start;
  for (;;) {
    const line = lineAt(bytes, at);
    if (line === null) return null;
    at += line.length + 2;
    if (line === '') return { text, end: at };
    readField(line);
  }
}
