/**
 * A receiver that keeps to nothing: it cuts answers anywhere, sends bodies where there are none, sends too much, hangs
 * up at any moment and takes what it leaves unread of a body for a request. What it does with a request is drawn from
 * the run's seed.
 */
import { appendFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { drawFrom, pick, runSeed, type Draw } from '../../fuzz/draw.js';
import { listen } from '../../support/listening.js';
import type { Scope } from '../../support/scope.js';
import type { RealReceiver } from './real-receiver.js';

export const faultyReceiver: RealReceiver = { name: 'a receiver that keeps to nothing', start: startFaulty };

const surplus = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON';

/** What it does beside answering. `later` is done only where it was told that no request follows. */
type Fault =
  'none' | 'surplus at once' | 'surplus behind' | 'surplus later' | 'hang up' | 'hang up unasked' | 'hang up behind';
const faults: readonly Fault[] = [
  'none',
  'none',
  'none',
  'none',
  'none',
  'none',
  'surplus at once',
  'surplus behind',
  'surplus later',
  'hang up',
  'hang up unasked',
  'hang up behind',
];

interface Asked {
  readonly method: string;
  readonly query: URLSearchParams;
  readonly subject: string;
  readonly isLast: boolean;
  readonly bodyBytes: number;
  readonly length: number;
}

async function startFaulty(t: Scope, { LEDGER }: { readonly LEDGER: string }): Promise<number> {
  let count = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    let unread = '';
    let busy = false;
    const next = async (): Promise<void> => {
      for (let asked = readRequest(unread); asked !== null && !socket.destroyed; asked = readRequest(unread)) {
        const draw = drawFrom(runSeed, count);
        count += 1;
        const leaves = asked.query.has('leave');
        if (!leaves && unread.length < asked.length + asked.bodyBytes) return;
        unread = unread.slice(asked.length + (leaves ? 0 : asked.bodyBytes));
        appendFileSync(LEDGER, `${asked.method} ${asked.query.get('id') ?? ''} ${asked.subject}\n`);
        await answer(socket, asked, draw);
        if (asked.isLast) unread = '';
      }
    };
    socket.setEncoding('latin1').on('data', (text: string) => {
      unread += text;
      if (busy) return;
      busy = true;
      void next().finally(() => {
        busy = false;
      });
    });
  });
  return (await listen(t, server)).port;
}

function readRequest(text: string): Asked | null {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const head = text.slice(0, headEnd);
  const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1] ?? '';
  const [method = '', target = ''] = head.split(' ');
  return {
    method,
    query: new URL(target, 'http://a').searchParams,
    subject: field('X-Auth-Subject'),
    isLast: field('Connection') === 'close',
    bodyBytes: Number(field('Content-Length') || '0'),
    length: headEnd + '\r\n\r\n'.length,
  };
}

async function answer(socket: Socket, { method, query, subject, isLast }: Asked, draw: Draw): Promise<void> {
  const body = `${query.get('q') ?? ''}|${query.get('id') ?? ''}|${subject}|${'x'.repeat(Number(query.get('size') ?? 0))}`;
  const status = Number(query.get('status') ?? 200);
  const isBodyless = method === 'HEAD' || status === 204 || status === 304;
  const fault = pick(draw, faults);
  if (fault === 'hang up') {
    socket.destroy();
    return;
  }
  await pause(Number(query.get('delay') ?? 0));
  const isChunked = !isBodyless && draw.below(3) === 0;
  const framing = isChunked
    ? 'Transfer-Encoding: chunked\r\n'
    : isBodyless && draw.below(2) === 0
      ? ''
      : `Content-Length: ${String(body.length)}\r\n`;
  const head = `HTTP/1.1 ${String(status)} Status\r\n${framing}\r\n`;
  if (isBodyless) {
    socket.write(head);
    // At once, or whenever it likes.
    await pause(draw.below(3) * 10);
    socket.write(body);
  } else {
    const framed = isChunked ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body;
    const whole = query.has('cut')
      ? `${head}${framed}`.slice(0, head.length + 10)
      : `${head}${framed}${fault === 'surplus at once' ? surplus : ''}`;
    await writeTorn(socket, whole, draw);
    if (query.has('cut')) socket.destroy();
  }
  if (fault === 'surplus behind') socket.write(surplus);
  if (fault === 'surplus later' && isLast) {
    await pause(draw.below(30));
    socket.write(surplus);
  }
  if (fault === 'hang up behind') socket.destroySoon();
  if (fault === 'hang up unasked') setTimeout(() => socket.destroy(), draw.below(10));
}

/** In up to four pieces, some of them a while apart. */
async function writeTorn(socket: Socket, bytes: string, draw: Draw): Promise<void> {
  let at = 0;
  for (let pieces = draw.below(4); pieces > 0; pieces -= 1) {
    const until = at + draw.below(bytes.length - at + 1);
    if (until > at) socket.write(bytes.slice(at, until), 'latin1');
    at = until;
    if (draw.below(2) === 0) await pause(draw.below(4));
  }
  if (at < bytes.length) socket.write(bytes.slice(at), 'latin1');
}

async function pause(ms: number): Promise<void> {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
}
