/**
 * Asks so many requests a second whatever becomes of them, as a process of its own: `PORT BEARERS RATE SECONDS
 * fresh|kept TARGET`. `BEARERS` are the callers, separated by commas, each with the share of the rate that stands
 * behind its colon. Writes what became of the requests as one line of JSON.
 */
import { connect, type Socket } from 'node:net';

const [port = '', callers = '', rate = '', seconds = '', connections = '', target = ''] = process.argv.slice(2);

/** Who has no answer after so long has none. */
const patienceMs = 8_000;

/** So often requests go out, as many as are due. */
const tickMs = 2;

interface Caller {
  readonly bearer: string;
  readonly share: number;
  due: number;
  /** Milliseconds of each answer, by its status; 0 where there was none. */
  readonly took: Record<string, number[]>;
  /** Connections that wait for the next request. */
  readonly idle: Connection[];
}

const isFresh = connections === 'fresh';
const isWrite = target.startsWith('/write');
const all: readonly Caller[] = callers.split(',').map((text) => {
  const [bearer = '', share = '1'] = text.split(':');
  return { bearer, share: Number(share), due: 0, took: {}, idle: [] };
});
/** The oldest first. */
const underWay = new Set<Connection>();

class Connection {
  private readonly socket: Socket;
  private readonly caller: Caller;
  private text = '';
  beganMs = 0;

  constructor(caller: Caller) {
    this.caller = caller;
    this.socket = connect(Number(port), '127.0.0.1').setNoDelay(true);
    this.socket
      .on('error', () => undefined)
      .on('close', () => this.end('0'))
      .on('data', (chunk: Buffer) => this.read(chunk));
  }

  ask(): void {
    this.beganMs = performance.now();
    underWay.add(this);
    const key = isWrite ? `Idempotency-Key: "${String(Math.random()).slice(2)}"\r\nContent-Length: 0\r\n` : '';
    const head = `${isWrite ? 'POST' : 'GET'} ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${this.caller.bearer}\r\n`;
    this.socket.write(`${head}${key}${isFresh ? 'Connection: close\r\n' : ''}\r\n`);
  }

  end(status: string): void {
    if (!underWay.delete(this)) return;
    (this.caller.took[status] ??= []).push(performance.now() - this.beganMs);
    if (isFresh || status === '0' || this.text.toLowerCase().includes('\r\nconnection: close')) this.socket.destroy();
    else this.caller.idle.push(this);
    this.text = '';
  }

  isOpen(): boolean {
    return !this.socket.destroyed;
  }

  private read(chunk: Buffer): void {
    this.text += chunk.toString('latin1');
    const body = this.text.indexOf('\r\n\r\n') + 4;
    if (body < 4) return;
    const lengthAt = this.text.toLowerCase().indexOf('\r\ncontent-length: ');
    if (this.text.length >= body + (lengthAt < 0 ? 0 : parseInt(this.text.slice(lengthAt + 18), 10))) {
      this.end(this.text.slice(9, 12));
    }
  }
}

function ask(caller: Caller): void {
  let connection = caller.idle.pop();
  while (connection?.isOpen() === false) connection = caller.idle.pop();
  (connection ?? new Connection(caller)).ask();
}

/** Ends what had no answer for too long. */
function expire(): void {
  for (const connection of underWay) {
    if (performance.now() - connection.beganMs < patienceMs) return;
    connection.end('0');
  }
}

let askedUntilMs = performance.now();
const endMs = askedUntilMs + Number(seconds) * 1_000;
const ticking = setInterval(() => {
  const nowMs = Math.min(performance.now(), endMs);
  for (const caller of all) {
    caller.due += ((nowMs - askedUntilMs) / 1_000) * Number(rate) * caller.share;
    for (; caller.due >= 1; caller.due -= 1) ask(caller);
  }
  askedUntilMs = nowMs;
  expire();
  if (nowMs < endMs) return;
  clearInterval(ticking);
  const waiting = setInterval(() => {
    expire();
    if (underWay.size > 0) return;
    clearInterval(waiting);
    process.stdout.write(`${JSON.stringify(all.map(({ took }) => took))}\n`, () => process.exit());
  }, 20);
}, tickMs);
