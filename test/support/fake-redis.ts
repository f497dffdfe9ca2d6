import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import type { Scope } from './scope.js';

/** What a fake server says: RESP as it goes over the wire, or nothing at all. */
export type FakeReply = string | null;

/** Bulk string of RESP. */
export function bulk(text: string): string {
  return `$${String(Buffer.byteLength(text))}\r\n${text}\r\n`;
}

/** A server that speaks RESP and answers as the test says: for versions and answers that no real one at hand gives. */
export async function startFakeRedis(
  t: Scope,
  reply: (command: readonly string[]) => FakeReply,
): Promise<{ readonly port: number }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let rest = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      rest += text;
      // Not RESP: somebody speaks TLS.
      if (!rest.startsWith('*')) {
        socket.destroy();
        return;
      }
      for (let parsed = parse(rest); parsed !== null; parsed = parse(rest)) {
        rest = parsed.rest;
        const answer = reply(parsed.command);
        if (answer !== null) socket.write(answer);
      }
    });
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port };
}

/** One whole command at the start of the text, lower-case by its name. */
function parse(text: string): { readonly command: readonly string[]; readonly rest: string } | null {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (head === null) return null;
  const command: string[] = [];
  let at = head[0].length;
  for (let part = 0; part < Number(head[1]); part += 1) {
    const length = /^\$(\d+)\r\n/.exec(text.slice(at));
    if (length === null) return null;
    at += length[0].length;
    const end = at + Number(length[1]);
    if (text.length < end + 2) return null;
    command.push(part === 0 ? text.slice(at, end).toLowerCase() : text.slice(at, end));
    at = end + 2;
  }
  return { command, rest: text.slice(at) };
}
