import { denial, type Denial } from '../denial.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { RequestHead } from '../http/request-head.js';
import { connectionHeaders } from './header-names.js';

/** As `RequestHead.httpVersion` of what came over HTTP/2. */
export const http2Version = '2.0';

const upperCase = /[A-Z]/;

/** A request has one of these; which of them tells nothing of the connection (RFC 9113 §8.3.1). */
const schemes: ReadonlySet<string> = new Set(['http', 'https']);

const pseudoNames: ReadonlySet<string> = new Set([':method', ':scheme', ':path', ':authority']);

/**
 * Reads the header section of a request of HTTP/2 as the one head that every decision is made from: the pseudo-header
 * headers are its method, target and Host. A Cookie in several headers is one (RFC 9113 §8.2.3).
 *
 * Refusals: `field_repeated` for a second one, `field_malformed` for one that is unknown or comes after a header, for a
 * name in upper case and for a header of a connection, `host_malformed` where `:authority` and Host differ, and
 * `target_malformed` and `method_malformed` where there is no such.
 *
 * @param rawHeaders names and values in turn, as they came.
 */
export function readHttp2Head(rawHeaders: readonly string[], endsStream: boolean): Result<RequestHead, Refused> {
  const pseudo = new Map<string, string>();
  const headers: string[] = [];
  let host: string | null = null;
  let cookieAt = -1;
  let problem: Denial | null = null;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    if (name.startsWith(':')) {
      if (!pseudoNames.has(name) || headers.length > 0 || host !== null) problem ??= denial('field_malformed');
      else if (pseudo.has(name)) problem ??= denial('field_repeated');
      else pseudo.set(name, value);
    } else if (upperCase.test(name) || connectionHeaders.has(name) || (name === 'te' && value !== 'trailers')) {
      problem ??= denial('field_malformed');
    } else if (name === 'host') {
      if (host !== null) problem ??= denial('field_repeated');
      host = value;
    } else if (name === 'cookie' && cookieAt !== -1) {
      headers[cookieAt] = `${headers[cookieAt] ?? ''}; ${value}`;
    } else {
      if (name === 'cookie') cookieAt = headers.length + 1;
      headers.push(name, value);
    }
  }
  const method = pseudo.get(':method') ?? '';
  const target = pseudo.get(':path') ?? '';
  const authority = pseudo.get(':authority') ?? null;
  const named = authority ?? host;
  const head: RequestHead = {
    method,
    target,
    httpVersion: http2Version,
    // First, as HTTP/1.1 recommends: what reads the head reads it there.
    rawHeaders: named === null ? headers : ['host', named, ...headers],
    endsStream,
  };
  problem ??= problemOfPseudo({ method, target, scheme: pseudo.get(':scheme') ?? '' });
  if (problem === null && authority !== null && host !== null && authority.toLowerCase() !== host.toLowerCase()) {
    problem = denial('host_malformed');
  }
  return problem === null ? accept(head) : refuse({ head, denial: problem });
}

/** What could be read of it, for its record, and why it goes no further. */
interface Refused {
  readonly head: RequestHead;
  readonly denial: Denial;
}

function problemOfPseudo({
  method,
  target,
  scheme,
}: Readonly<Record<'method' | 'target' | 'scheme', string>>): Denial | null {
  if (method === '') return denial('method_malformed');
  // A tunnel, which is refused as such: it has neither scheme nor path (RFC 9113 §8.5).
  if (method === 'CONNECT') return null;
  if (!schemes.has(scheme)) return denial('field_malformed');
  // There is no absolute form (RFC 9113 §8.3.1), and `*` is of OPTIONS alone.
  return target.startsWith('/') || (target === '*' && method === 'OPTIONS') ? null : denial('target_malformed');
}
