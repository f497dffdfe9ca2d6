/** A receiver that sends one answer more than it was asked for, at every moment at which it can. */
import { connectRaw } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';
import { okResponse, startRawUpstream } from './raw-upstream.js';

type Write = (bytes: string) => void;

export interface Poison {
  readonly name: string;
  readonly send: (write: Write, answer: string) => void;
  /** Ask the next one only when the connection was closed. */
  readonly waits?: true;
}

const unasked = okResponse('poison');

/** Writes the answer, then the other one at a moment that `later` chooses. */
const apart =
  (later: (send: () => void) => void) =>
  (write: Write, answer: string): void => {
    write(answer);
    later(() => write(unasked));
  };

export const poisons: readonly Poison[] = [
  { name: 'in one piece with the answer', send: (write, answer): void => write(answer + unasked) },
  { name: 'right behind the answer', send: apart((send) => send()) },
  { name: 'in the next turn', send: apart((send) => setImmediate(send)) },
  { name: 'while the connection is idle', send: apart((send) => setTimeout(send, 3)), waits: true },
  { name: 'half of it', send: (write, answer): void => write(answer + unasked.slice(0, 20)) },
];

/** Asks so many times, each with a marker that the answer has to bear, and counts what came back. */
export async function poison(
  t: Scope,
  { send, waits }: Poison,
  rounds: number,
): Promise<{ readonly served: number; readonly mistaken: number; readonly other: number }> {
  const upstream = await startRawUpstream(t, (socket, received) => {
    const marker = received.slice(received.lastIndexOf('X-Marker: ')).match(/X-Marker: (\S+)/)?.[1] ?? '';
    send((bytes) => socket.write(bytes), okResponse(marker));
  });
  const routes = [{ name: 'any', methods: ['GET'], path: '/**', subjects: ['checkout'], permissions: [] }];
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
  const bearer = proxy.bearer();
  const caller = await connectRaw(proxy.port);
  t.teardown(caller.end);
  const counted = { served: 0, mistaken: 0, other: 0 };
  for (let i = 0; i < rounds; i++) {
    caller.write(`GET /a HTTP/1.1\r\nHost: a\r\n${bearer}X-Marker: caller-${String(i)}\r\n\r\n`);
    const response = await caller.readResponse();
    if (response?.status === 200 && response.text === `caller-${String(i)}`) counted.served += 1;
    else if (response?.status === 200) counted.mistaken += 1;
    else if (response?.status !== 502) counted.other += 1;
    if (waits === true) await until('the connection is closed', () => upstream.open() === 0);
  }
  return counted;
}
