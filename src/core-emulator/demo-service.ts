import { createServer, type IncomingMessage } from 'node:http';
import { json, listen, readBody, send, text, type RunningServer } from './http/messages.js';

/** Starts a receiving service that answers with what it received. */
export function startDemoUpstream(host: string, port: number): Promise<RunningServer> {
  const server = createServer((request, response) => {
    readBody(request).then(
      (body) => send(request, response, body === null ? text(413, 'Request body too large') : echo(request, body)),
      // The proxy broke off: nobody is left to answer.
      () => response.destroy(),
    );
  });
  return listen(server, host, port);
}

function echo(request: IncomingMessage, body: Buffer): ReturnType<typeof json> {
  const headers = Object.fromEntries(headerNames(request).map((name) => [name, valueOf(request, name)]));
  return json(200, { method: request.method, path: request.url, headers, body: body.toString('utf8') });
}

function headerNames(request: IncomingMessage): readonly string[] {
  return [...new Set(request.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()))];
}

/** One value as it came, or all of them where the name is repeated: Node would hide the second. */
function valueOf(request: IncomingMessage, name: string): string | readonly string[] {
  const values = request.rawHeaders.filter(
    (_, index, raw) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === name,
  );
  return values.length === 1 ? (values[0] ?? '') : values;
}
