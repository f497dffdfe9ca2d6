import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { UpstreamSettings } from '../../../config/types.js';
import type { Result } from '../../../lib/result.js';
import { version } from '../../../version.js';
import { ok, problem, warning, type Finding } from './finding.js';

/** Opens a connection to the upstream, or says why there is none. */
export type OpenConnection = () => Promise<Result<Socket, string>>;

const heads = 'receiver heads';
const bodies = 'receiver bodies';

/** How long a response may take; milliseconds. */
const responseLimitMs = 3_000;
/** How long bytes that nobody asked for are waited for; milliseconds. */
const surplusMs = 500;

/** A page of an error takes less. */
const maxResponseChars = 1024 * 1024;

/**
 * The status line of a final response. Bounded: without an end of line, each of many would be looked for to the end of
 * the text.
 */
const finalStatusLine = /HTTP\/1\.[01] [2-9]\d\d[^\r\n]{0,256}\r\n/g;

/**
 * Asks the service for what leaves bytes on a connection where it keeps to HTTP less strictly than it should: HEAD, and
 * a POST whose body is a request of its own. Neither has a credential or an identity, and both go to a path that no
 * service has.
 */
export async function checkResponses(
  host: string,
  upstream: UpstreamSettings,
  open: OpenConnection,
): Promise<readonly Finding[]> {
  return Promise.all([checkHead(host, upstream, open), checkUnreadBody(host, upstream, open)]);
}

async function checkHead(host: string, { reuse }: UpstreamSettings, open: OpenConnection): Promise<Finding> {
  const said = await exchange(open, requestText('HEAD', host, ''));
  const headEnd = said?.search(/\r\n\r\n/) ?? -1;
  if (said === null || headEnd < 0) return noResponse(heads, 'HEAD');
  if (said.length === headEnd + '\r\n\r\n'.length) return ok(heads, 'answers to HEAD have no body');
  if (reuse !== 'always') {
    return ok(heads, `sends a body after HEAD, which upstream.reuse: ${reuse} keeps from other callers`);
  }
  return problem(heads, 'sends a body after HEAD, which the next caller would get', 'set upstream.reuse: safe');
}

async function checkUnreadBody(
  host: string,
  { reuse, readsBodies }: UpstreamSettings,
  open: OpenConnection,
): Promise<Finding> {
  const said = await exchange(open, requestText('POST', host, requestText('GET', host, '')));
  const responses = said?.match(finalStatusLine)?.length ?? 0;
  if (responses === 0) return noResponse(bodies, 'POST');
  if (responses === 1) return ok(bodies, 'what it leaves unread of a body is not taken for a request');
  if (reuse === 'never' || (reuse === 'safe' && !readsBodies)) {
    return ok(
      bodies,
      `takes what it leaves unread of a body for a request; upstream.reuse: ${reuse} tells it that none follows`,
    );
  }
  return problem(
    bodies,
    'takes what it leaves unread of a body for a request, with any identity that the caller wrote there',
    'set upstream.reuse: safe, and receiver.reads_bodies: false',
  );
}

function noResponse(subject: string, method: string): Finding {
  const what = `no answer to ${method} within ${String(responseLimitMs / 1_000)} s, so that it is not known how it ends answers`;
  return warning(subject, what, 'see why it does not answer');
}

function requestText(method: string, host: string, body: string): string {
  const lines = [
    `${method} /sallyport-doctor-${randomUUID()} HTTP/1.1`,
    `Host: ${host}`,
    `User-Agent: sallyport-doctor/${version}`,
  ];
  if (body !== '') lines.push('Content-Type: text/plain', `Content-Length: ${String(body.length)}`);
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** What comes until it is silent, one character for each byte; `null` where there is no connection. */
async function exchange(open: OpenConnection, request: string): Promise<string | null> {
  const opened = await open();
  if (!opened.ok) return null;
  const socket = opened.value;
  return new Promise((resolve) => {
    let said = '';
    const end = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(said);
    };
    let timer = setTimeout(end, responseLimitMs);
    socket
      .setEncoding('latin1')
      .on('data', (text: string) => {
        said += text;
        clearTimeout(timer);
        timer = setTimeout(end, surplusMs);
        if (said.length > maxResponseChars) end();
      })
      .on('close', end)
      .on('error', () => undefined);
    socket.write(request);
  });
}
