/** How Envoy describes a request over gRPC (`envoy.service.auth.v3.Authorization`). */
import { denial, type Denial } from '../denial.js';
import { isGrpc } from '../grpc/content-type.js';
import { headerBytes, headerValue, type RequestHead } from '../http/request-head.js';
import { http2Version } from '../http2/request-head.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { isScheme, isUpgradeRefused, type DescribedRequest } from './forms.js';

/** `AttributeContext.HttpRequest`, one character for each byte. */
export interface CheckedRequest {
  readonly method: string;
  /** The request target, with its query. */
  readonly path: string;
  readonly host: string;
  readonly scheme: string;
  /** Envoy leaves it empty: it stands in `path`. */
  readonly query: string;
  readonly fragment: string;
  /** Names and values in turn, several of one name combined. Empty where `headerMap` is there. */
  readonly headers: readonly string[];
  /** The same as they came (`encode_raw_headers`); `null` where Envoy is not told to. */
  readonly headerMap: readonly string[] | null;
}

const checkPath = '/envoy.service.auth.v3.Authorization/Check';

/** Protobuf is the message format of `application/grpc`. */
const checkTypes: ReadonlySet<string | null> = new Set(['application/grpc', 'application/grpc+proto']);

/**
 * Tells whether a request is a call of `Check`. It has to be one to the letter: whatever a client can have its proxy
 * ask about in the words of HTTP is another request, and never one that describes another itself.
 */
export function isCheck(head: RequestHead): boolean {
  const { httpVersion, method, target } = head;
  return (
    httpVersion === http2Version &&
    method === 'POST' &&
    target === checkPath &&
    checkTypes.has(headerValue(head, 'content-type'))
  );
}

/**
 * Tells whether a request is a call of another method, which a server of gRPC answers as one that it does not have.
 * Such a call describes nothing, and is never judged.
 */
export function isOtherCall(head: RequestHead): boolean {
  const { httpVersion, method, target } = head;
  const isCall = httpVersion === http2Version && method === 'POST' && isGrpc(headerValue(head, 'content-type'));
  return isCall && target !== checkPath;
}

/**
 * Reads what Envoy asks about. Refuses with `description_malformed` where a part is missing, where query or fragment
 * stand outside of `path`, where headers come in both forms, or where a part is told twice and differs; with
 * `header_too_large` where it has more than `maxHeaderBytes`; with `upgrade_refused` as `describeRequest` does.
 */
export function describeChecked(checked: CheckedRequest, maxHeaderBytes: number): Result<DescribedRequest, Denial> {
  const { method, path, host, scheme, query, fragment, headers, headerMap } = checked;
  const malformed = refuse(denial('description_malformed'));
  if (method === '' || path === '' || host === '' || query !== '' || fragment !== '') return malformed;
  if (headerMap !== null && headers.length > 0) return malformed;
  const own = scheme.toLowerCase();
  if (own !== '' && !isScheme(own)) return malformed;
  const said = new Map([
    [':method', method],
    [':path', path],
    [':authority', host],
    [':scheme', scheme],
    ['host', host],
  ]);
  const rawHeaders = ['Host', host];
  const lines = headerMap ?? headers;
  let hasUpgrade = false;
  let hasKey = false;
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] ?? '';
    const value = lines[i + 1] ?? '';
    const lowerCase = name.toLowerCase();
    const expected = said.get(lowerCase);
    if (expected !== undefined) {
      // Each is told twice at most, and the same both times.
      if (value !== expected) return malformed;
      said.delete(lowerCase);
      continue;
    }
    if (name.startsWith(':') || lowerCase === 'host') return malformed;
    if (isUpgradeRefused(lowerCase, value)) return refuse(denial('upgrade_refused'));
    hasUpgrade ||= lowerCase === 'upgrade';
    hasKey ||= lowerCase === 'sec-websocket-key';
    rawHeaders.push(name, value);
  }
  // A handshake, whatever Envoy keeps of it to itself.
  if (hasUpgrade || hasKey) rawHeaders.push('Connection', 'Upgrade');
  if (hasKey && !hasUpgrade) rawHeaders.push('Upgrade', 'websocket');
  const head: RequestHead = { method, target: path, httpVersion: '1.1', rawHeaders };
  if (headerBytes(head) > maxHeaderBytes) return refuse(denial('header_too_large'));
  return accept({ head, encrypted: own === 'https' || own === 'wss' });
}
