import { STATUS_CODES } from 'node:http';
import { denial, type Denial, type Reason } from '../../decision/denial.js';
import { problemOf, type Problem } from '../../decision/http/problem-details.js';
import { codeOf } from '../../lib/errors.js';
import type { ClientConnection, PipelinedRequest } from './client-connection.js';
import { ExchangeSummary, recordRequest, type Recorder } from '../exchange/access-log-record.js';

const reasons: ReadonlyMap<string, Reason> = new Map<string, Reason>([
  ['ERR_HTTP_REQUEST_TIMEOUT', 'header_timeout'],
  ['HPE_HEADER_OVERFLOW', 'header_too_large'],
  ['HPE_INVALID_METHOD', 'method_malformed'],
  ['HPE_INVALID_URL', 'target_malformed'],
  ['HPE_INVALID_VERSION', 'http_version'],
  // The preface of HTTP/2.
  ['HPE_PAUSED_H2_UPGRADE', 'http_version'],
  ['HPE_INVALID_HEADER_TOKEN', 'field_malformed'],
  ['HPE_INVALID_EOF_STATE', 'body_broken'],
]);

/**
 * Why Node's parser gave up on a connection, or `null` where there is nobody to answer: a reset, or a failed handshake.
 */
export function parseErrorDenial(error: Error): Denial | null {
  const code = codeOf(error, '');
  const known = reasons.get(code);
  if (known !== undefined) return denial(known);
  return code.startsWith('HPE_') ? denial('framing') : null;
}

/** What is known of it, for the log. */
export interface ParsedLine {
  readonly method: string;
  readonly target: string;
}

/** Answers what never became a request. */
export function createParseErrorResponse(
  connection: ClientConnection,
  reason: Denial,
  recorder: Recorder,
  { method, target }: ParsedLine = { method: '', target: '' },
): PipelinedRequest {
  const summary = new ExchangeSummary(recorder.clock);
  summary.begin();
  summary.reason = reason.reason;
  const head = { method, target, httpVersion: '1.1', rawHeaders: [] };
  return {
    start: () => {
      const problem = problemOf(reason, summary.identify());
      connection.writeLast(problemBytes(problem, new Date(recorder.clock.now())));
      const endedMs = recorder.clock.monotonic();
      recordRequest(recorder, {
        head,
        peer: connection.peer,
        status: problem.status,
        grpcStatus: null,
        summary,
        endedMs,
      });
    },
    isReceived: () => false,
    failBody: () => undefined,
    shortenBodyTimeouts: () => undefined,
    cutOff: () => undefined,
    onDrain: () => undefined,
  };
}

/** A whole response that closes its connection, for callers of whom Node made no request. */
function problemBytes({ status, headers, body }: Problem, now: Date): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nDate: ${now.toUTCString()}\r\nConnection: close\r\n`;
  for (let i = 0; i + 1 < headers.length; i += 2) head += `${headers[i] ?? ''}: ${headers[i + 1] ?? ''}\r\n`;
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
