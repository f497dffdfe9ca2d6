import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { RunningServer } from '../../../core-emulator/http/messages.js';
import { frameMessage } from '../../../decision/grpc/messages.js';

/** The one method of the demo; what it is sent, it answers. */
export const echoMethod = 'demo.v1.Echo/Say';

/** For tools that make messages themselves. */
export const echoProto = `syntax = "proto3";
package demo.v1;
service Echo {
  rpc Say(Text) returns (Text);
}
message Text {
  string text = 1;
}
`;

/** A message of the demo as it stands in a body: `text` is field 1, of a length, at most 127 bytes. */
export function echoMessage(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  return frameMessage(Buffer.concat([Buffer.of(0x0a, bytes.length), bytes]));
}

/** Starts a gRPC service on a free port of loopback, without TLS, that answers each message with itself. */
export async function startGrpcUpstream(): Promise<RunningServer> {
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream, headers) => respond(stream, headers[':path'] ?? ''));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const session of sessions) session.destroy();
      }),
  };
}

function respond(stream: ServerHttp2Stream, path: string): void {
  // The proxy broke off: nobody is left to answer.
  stream.on('error', () => undefined);
  const head = { ':status': 200, 'content-type': 'application/grpc' };
  if (path !== `/${echoMethod}`) {
    stream.respond({ ...head, 'grpc-status': '12' }, { endStream: true });
    return;
  }
  stream.respond(head, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.pipe(stream);
}
