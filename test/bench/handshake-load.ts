/**
 * Handshakes of TLS 1.3, as a process of its own:
 *
 *   node handshake-load.js PORT SECONDS CONNECTIONS full | resumed
 *
 * Each connection carries one request without a credential and is closed. Prints how many there were, as JSON.
 */
import { connect } from 'node:tls';

const [port = '', seconds = '1', connections = '1', kind = 'full'] = process.argv.slice(2);
const request = 'GET /orders HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const endMs = performance.now() + Number(seconds) * 1000;
let [handshakes, resumed, failed] = [0, 0, 0];

/** One connection; returns the session that it was given. */
function handshake(session: Buffer | undefined): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    let given = session;
    const socket = connect({
      host: '127.0.0.1',
      port: Number(port),
      rejectUnauthorized: false,
      minVersion: 'TLSv1.3',
      ...(session === undefined ? {} : { session }),
    });
    socket.on('session', (next: Buffer) => (given = next));
    socket.on('secureConnect', () => {
      handshakes += 1;
      if (socket.isSessionReused()) resumed += 1;
      socket.write(request);
    });
    socket.resume();
    socket.on('error', () => (failed += 1));
    socket.on('close', () => resolve(given));
  });
}

async function work(): Promise<void> {
  let session: Buffer | undefined;
  while (performance.now() < endMs) {
    const given = await handshake(session);
    session = kind === 'resumed' ? given : undefined;
  }
}

await Promise.all(Array.from({ length: Number(connections) }, work));
process.stdout.write(JSON.stringify({ handshakes, resumed, failed }));
