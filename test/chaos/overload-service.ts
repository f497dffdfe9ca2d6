/**
 * The service behind a proxy that gets too much, as a process: takes so many milliseconds for each request, however
 * many there are.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const [serviceMs = 50] = process.argv.slice(2).map(Number);

const server = createServer((_req, res) => {
  setTimeout(() => res.end('done'), serviceMs);
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${String((server.address() as AddressInfo).port)}\n`);
});
