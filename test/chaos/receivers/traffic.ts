/**
 * Callers that know nothing of each other send whatever they please; what each gets, and what the service ran, is
 * compared with what it sent.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { drawFrom, pick, type Draw } from '../../fuzz/draw.js';
import {
  connectRaw,
  requestBytes,
  type RawConnection,
  type RawResponse,
  type RequestInput,
} from '../../support/raw-client.js';
import type { ConfigTree } from '../../support/proxy-process.js';

const subjects = ['ann', 'ben', 'cid', 'dan', 'eve'];

/** Nobody's: requests of public routes. */
const nobody = '';

export const trafficConfig: ConfigTree = {
  upstream: { idle_timeout: '3s' },
  routes: [
    { name: 'write', methods: ['POST'], path: '/write', subjects, permissions: [], idempotency: 'required' },
    {
      name: 'any',
      methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
      path: '/any',
      subjects,
      permissions: [],
      idempotency: 'none',
      body: 'allow',
    },
    { name: 'open', methods: ['GET', 'HEAD'], path: '/open', access: 'public' },
  ],
};

export interface TrafficOptions {
  readonly port: number;
  /** `Bearer …` of a subject. */
  readonly bearer: (subject: string) => string;
  readonly ledger: string;
  readonly seed: number;
  readonly requests: number;
  /** Whether an answer may fail although nothing of the request asked for it. */
  readonly mayFail: boolean;
  readonly onProgress: (sent: number) => void;
}

export interface TrafficResult {
  readonly sent: number;
  /** How many answers of each kind: `200`, `502`, `cut`, `left` … */
  readonly answers: Readonly<Record<string, number>>;
  /** What may not be, with the request; at most 20. */
  readonly wrong: readonly string[];
  /** Reserved writes that the service ran. */
  readonly writes: number;
}

/** What an answer's bytes would be if somebody else took them for an answer of theirs. */
const poison = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON';
const smuggled = 'GET /any?id=smuggled HTTP/1.1\r\nHost: a\r\nX-Auth-Subject: root\r\n\r\n';

const connectionsAtOnce = 24;
const maxWrong = 20;

/** One request and what its answer has to be. */
interface Planned {
  readonly id: string;
  readonly subject: string;
  readonly input: RequestInput;
  readonly status: number;
  /** The body, where the answer is a success. */
  readonly body: string;
  /** The caller hangs up after so many bytes, and so many milliseconds. */
  readonly hangUp: { readonly bytes: number; readonly afterMs: number } | null;
  readonly isCut: boolean;
  readonly isWrite: boolean;
}

export async function sendTraffic(options: TrafficOptions): Promise<TrafficResult> {
  const campaign = new Campaign(options);
  await Promise.all(Array.from({ length: connectionsAtOnce }, async (_, index) => campaign.runCaller(index)));
  return campaign.result();
}

class Campaign {
  private readonly options: TrafficOptions;
  private readonly planned = new Map<string, Planned>();
  private readonly succeeded = new Set<string>();
  private readonly answers = new Map<string, number>();
  private readonly wrong: string[] = [];
  private sent = 0;

  constructor(options: TrafficOptions) {
    this.options = options;
  }

  /** One connection after the other, one request after the other on each. */
  async runCaller(index: number): Promise<void> {
    const draw = drawFrom(this.options.seed, index);
    const subject =
      index % (subjects.length + 1) === subjects.length ? nobody : (subjects[index % (subjects.length + 1)] ?? nobody);
    let connection: RawConnection | null = null;
    let earlier: Planned | null = null;
    while (this.sent < this.options.requests && this.wrong.length < maxWrong) {
      const next: Planned = earlier !== null && draw.below(3) === 0 ? earlier : this.plan(draw, subject);
      if (next.isWrite) earlier = next;
      if (connection?.isClosed() !== false) connection = await connectRaw(this.options.port);
      this.sent += 1;
      if (this.sent % 1_000 === 0) this.options.onProgress(this.sent);
      if (!(await this.ask(connection, next))) {
        connection.end();
        connection = null;
      }
    }
    connection?.end();
  }

  result(): TrafficResult {
    const runs = new Map<string, number>();
    for (const line of readFileSync(this.options.ledger, 'utf8').split('\n').slice(0, -1)) {
      const [method = '', id = '', subject = ''] = line.split(' ');
      const planned = this.planned.get(id);
      if (planned === undefined || planned.subject !== subject || !isSameMethod(planned.input.method, method)) {
        this.isWrong(`the service ran "${line}"`);
      } else if (planned.isWrite) runs.set(id, (runs.get(id) ?? 0) + 1);
    }
    for (const [id, count] of runs) if (count > 1) this.isWrong(`write ${id} ran ${String(count)} times`);
    for (const id of this.succeeded) {
      if (!runs.has(id)) this.isWrong(`write ${id} was answered with success and did not run`);
    }
    return {
      sent: this.sent,
      answers: Object.fromEntries([...this.answers].sort()),
      wrong: this.wrong,
      writes: runs.size,
    };
  }

  private isWrong(what: string): void {
    if (this.wrong.length < maxWrong) this.wrong.push(what);
  }

  private plan(draw: Draw, subject: string): Planned {
    const id = `${String(this.planned.size)}-${String(draw.below(1_000_000))}`;
    const kind = pick(draw, subject === nobody ? readingKinds : kinds);
    const query = new URLSearchParams({ id });
    const set = (name: string, value: string): string => {
      query.set(name, value);
      return value;
    };
    const isBodyless = kind === '204' || kind === '304';
    const hasEcho = kind === 'HEAD' || isBodyless || draw.below(4) === 0;
    const q = hasEcho ? set('q', poison) : '';
    const size = draw.below(3) === 0 ? Number(set('size', String(draw.below(40_000)))) : 0;
    if (draw.below(3) === 0) set('delay', String(draw.below(12)));
    if (kind === 'cut') set('cut', '1');
    if (isBodyless) set('status', kind);
    const leaves = kind === 'unread' || kind === 'unread GET';
    if (leaves) set('leave', '1');
    const hasBody = leaves || kind === 'POST' || kind === 'write';
    const body = !hasBody ? undefined : leaves ? smuggled.repeat(1 + draw.below(300)) : 'y'.repeat(draw.below(5_000));
    const method =
      kind === 'HEAD'
        ? 'HEAD'
        : hasBody && kind !== 'unread GET'
          ? pick(draw, kind === 'write' ? ['POST'] : ['POST', 'PUT', 'DELETE'])
          : 'GET';
    const path = kind === 'write' ? '/write' : subject === nobody ? '/open' : '/any';
    const planned: Planned = {
      id,
      subject,
      input: {
        method,
        path: `${path}?${query.toString()}`,
        headers: {
          ...(subject === nobody ? {} : { Authorization: this.options.bearer(subject) }),
          ...(kind === 'write' ? { 'Idempotency-Key': `key-${id}` } : {}),
        },
        ...(body === undefined ? {} : { body }),
      },
      status: isBodyless ? Number(kind) : 200,
      body: method === 'HEAD' || isBodyless ? '' : `${q}|${id}|${subject}|${'x'.repeat(size)}`,
      hangUp:
        draw.below(12) === 0
          ? { bytes: draw.below(3) === 0 ? draw.below(2_000) : Infinity, afterMs: draw.below(15) }
          : null,
      isCut: kind === 'cut',
      isWrite: kind === 'write',
    };
    this.planned.set(id, planned);
    return planned;
  }

  /** Whether the connection may be used again. */
  private async ask(connection: RawConnection, planned: Planned): Promise<boolean> {
    const bytes = requestBytes(this.options.port, planned.input);
    if (planned.hangUp !== null) {
      connection.write(bytes.subarray(0, planned.hangUp.bytes));
      await sleep(planned.hangUp.afterMs);
      this.count('left');
      return false;
    }
    connection.write(bytes);
    const answer = await connection
      .readResponse({ bodyless: planned.input.method === 'HEAD' })
      .catch((error: unknown) => {
        this.isWrong(`${describe(planned)}: ${String(error)}`);
        return null;
      });
    this.count(answer === null ? 'none' : answer.complete ? String(answer.status) : 'cut');
    this.judge(planned, answer);
    return (
      answer !== null && answer.complete && answer.field('connection') !== 'close' && connection.pending().length === 0
    );
  }

  private judge(planned: Planned, answer: RawResponse | null): void {
    const mayFail = planned.isCut || this.options.mayFail;
    if (answer === null) {
      if (!mayFail) this.isWrong(`${describe(planned)}: no answer`);
    } else if (answer.field('proxy-status') !== null && answer.status >= 400) {
      // A retry may come while the first attempt is under way, or in doubt; and the store of a busy machine may be too
      // slow.
      const isExpected = mayFail
        ? [409, 502, 503, 504].includes(answer.status)
        : planned.isWrite && (answer.status === 409 || answer.text.includes('urn:sallyport:store-unavailable'));
      if (!isExpected) this.isWrong(`${describe(planned)}: ${String(answer.status)} ${answer.text}`);
    } else if (!(answer.complete && !planned.isCut ? this.isOwn(planned, answer) : this.isBegun(planned, answer))) {
      this.isWrong(`${describe(planned)}: ${answer.raw.toString('latin1').slice(0, 300)}`);
    } else if (planned.isWrite && answer.status === 200 && answer.complete) this.succeeded.add(planned.id);
  }

  private isOwn(planned: Planned, answer: RawResponse): boolean {
    return answer.status === planned.status && answer.text === planned.body;
  }

  /**
   * What there is of an answer that broke off. PHP and Go may say an error's status for what they were told to break
   * off.
   */
  private isBegun(planned: Planned, answer: RawResponse): boolean {
    return (planned.isCut || this.options.mayFail) && (answer.status >= 500 || planned.body.startsWith(answer.text));
  }

  private count(kind: string): void {
    this.answers.set(kind, (this.answers.get(kind) ?? 0) + 1);
  }
}

type Kind = 'GET' | 'HEAD' | 'POST' | 'unread' | 'unread GET' | 'write' | '204' | '304' | 'cut';
const readingKinds: readonly Kind[] = ['GET', 'GET', 'HEAD', 'HEAD', '204', '304'];
const kinds: readonly Kind[] = [
  'GET',
  'GET',
  'GET',
  'GET',
  'HEAD',
  'HEAD',
  'HEAD',
  'POST',
  'unread',
  'unread GET',
  'write',
  'write',
  'write',
  '204',
  '304',
  'cut',
];

/** Some frameworks have their handlers run HEAD as GET, and tell them so. */
function isSameMethod(asked: string | undefined, ran: string): boolean {
  return asked === ran || (asked === 'HEAD' && ran === 'GET');
}

function describe({ id, subject, input }: Planned): string {
  return `${input.method ?? 'GET'} of ${subject === nobody ? 'nobody' : subject} (${id}, ${input.path.split('?')[1]?.slice(0, 200) ?? ''})`;
}
