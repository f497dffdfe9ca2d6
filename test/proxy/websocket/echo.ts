/** Large echoes through a proxy in a process of its own, whose memory is looked at meanwhile. */
import { WebSocket } from 'ws';
import { residentBytes } from '../../support/linux.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { startProxyProcess, type ProxyProcess } from '../../support/proxy-process.js';
import { clientOf, startWebSocketUpstream, webSocketRoutes, type WebSocketUpstream } from './websocket-proxy.js';

export interface EchoProxy {
  readonly proxy: ProxyProcess;
  readonly webSockets: WebSocketUpstream;
  /** Resident memory of the proxy, in MiB. */
  readonly residentMiB: () => number;
}

export async function startEchoProxy(t: Scope, listen: Readonly<Record<string, unknown>> = {}): Promise<EchoProxy> {
  const webSockets = await startWebSocketUpstream(t);
  const proxy = await startProxyProcess(t, {
    config: { listen, upstream: { url: webSockets.url, connect_timeout: '20s' }, routes: webSocketRoutes },
  });
  const residentMiB = (): number => residentBytes(proxy.process.pid) / 1_024 ** 2;
  return { proxy, webSockets, residentMiB };
}

export interface Echoed {
  readonly bytes: number;
  /** Resident memory before, and the most meanwhile. */
  readonly beforeMiB: number;
  readonly peakMiB: number;
}

/** Sends that many bytes in messages of this size, and waits for all of their echoes. */
export async function echo(
  t: Scope,
  { proxy, residentMiB }: EchoProxy,
  totalBytes: number,
  messageBytes: number,
): Promise<Echoed> {
  const { socket, opened } = clientOf(
    t,
    new WebSocket(`ws://127.0.0.1:${proxy.port}/live`, { headers: proxy.authorization(), perMessageDeflate: false }),
  );
  await opened;
  const beforeMiB = residentMiB();
  const message = Buffer.alloc(messageBytes, 'a');
  let [sent, bytes, peakMiB] = [0, 0, beforeMiB];
  socket.removeAllListeners('message').on('message', (data: Buffer) => {
    bytes += data.length;
    if (bytes % (16 * 1024 * 1024) === 0) peakMiB = Math.max(peakMiB, residentMiB());
  });
  const send = (): void => {
    if (sent >= totalBytes) return;
    sent += messageBytes;
    // The next one when this one is with the system: the caller keeps up with itself.
    socket.send(message, send);
  };
  send();
  await until('the whole echo', () => bytes === totalBytes, 240_000);
  socket.close();
  return { bytes, beforeMiB, peakMiB: Math.max(peakMiB, residentMiB()) };
}
