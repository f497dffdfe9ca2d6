import type { RequestHead } from '../../decision/http/request-head.js';

/** A request as a person writes it down. */
export interface PolicyRequest {
  readonly method: string;
  /** The request target: path and query. */
  readonly path: string;
  /** Names and values; a name may come more than once. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | null;
}

/** What a request has to say that was sent by nobody in particular. */
const assumedHost = 'sallyport.invalid';

/**
 * The head of a request as it would come over the wire: with `Host`, the body's length and the credential added where
 * they are not given.
 */
export function headOf(request: PolicyRequest, credential: readonly string[] = []): RequestHead {
  const { method, path, headers, body } = request;
  const has = (name: string): boolean => headers.some(([given]) => given.toLowerCase() === name);
  const rawHeaders = headers.flat().map(asBytes);
  if (!has('host')) rawHeaders.unshift('Host', assumedHost);
  if (body !== null && !has('content-length') && !has('transfer-encoding')) {
    rawHeaders.push('Content-Length', String(Buffer.byteLength(body)));
  }
  return { method, target: asBytes(path), httpVersion: '1.1', rawHeaders: [...rawHeaders, ...credential] };
}

/** One character for each byte, and no white space around, as Node's parser gives it. */
function asBytes(text: string): string {
  return Buffer.from(text)
    .toString('latin1')
    .replace(/^[\t ]+|[\t ]+$/g, '');
}
