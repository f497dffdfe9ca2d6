/**
 * The conformance suite over HTTP/2: beside each proxy runs a second one, with the same config but `listen.http2`, and
 * mirrors of all its servers. Each request that HTTP/2 can say is made of that one over HTTP/2, and what becomes of it
 * has to be what became of it over HTTP/1.1.
 */
import { inspect } from 'node:util';
import type { Http2Response } from './http2-client.js';
import { connectExact, type ExactRequest } from './http2-exact.js';
import { sayInHttp2, type Unsayable } from './http2-saying.js';
import {
  changing,
  createComparable,
  isOwnAnswer,
  nameOf,
  patienceMs,
  sendOnce,
  type Answer,
  type LeftOut,
} from './mirror-answers.js';
import { mirrorKind, seenBy, type Seen } from './mirror-servers.js';
import { request, requestBytes, type RawResponse, type SendOptions } from './raw-client.js';
import type { Scope } from './scope.js';
import { startServe } from './serve-process.js';
import type { Mirror, MirrorSettings } from './shadow-mirror.js';
import { until } from './until.js';

/** What was compared in this process; told at its end. */
const counts = { refused: 0, reset: 0, allowed: 0 };
/** What was not compared: `row: why`. What is refused with another status: `row: status`. */
const [left, otherwise] = [new Set<string>(), new Set<string>()];

/**
 * What may stand for a refusal: a malformed message may have its stream reset (RFC 9113 §8.1.1), and a head that is
 * far too long is not even decoded, which ends the connection (RFC 9113 §10.5.1 leaves that open).
 */
const resets: Readonly<Record<number, readonly number[]>> = { 400: [1], 431: [9, 11] };

/** Fields of an answer that only one of the two protocols has, or that are new each time. */
const ownFields: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'date',
  'x-request-id',
  'traceparent',
  // What is made anew for a session: its token, and what a frontend is told of it.
  'front-token',
  'st-access-token',
  'set-cookie',
]);

interface Sent {
  readonly bytes: Buffer;
  readonly options: SendOptions;
  readonly idempotencyKey: string | null;
  /** What it is called where something is wrong. */
  readonly row: string;
}

type Look =
  | { readonly as: 'refused' | 'reset' | 'allowed'; readonly problem: string | null }
  | { readonly as: 'otherwise'; readonly problem: null; readonly status: number }
  | { readonly as: 'left'; readonly why: LeftOut | Unsayable };

export async function startHttp2Mirror(
  t: Scope,
  { configFile, env, ready, port: firstPort }: MirrorSettings,
): Promise<Mirror> {
  const serve = startServe(t, configFile, { env });
  const port = await serve.port('proxy');
  const adminPort = await serve.port('admin');
  const admin = async (path: string): Promise<RawResponse> => request(adminPort, { path });
  if (ready) await until('the proxy with HTTP/2 is ready', async () => (await admin('/readyz')).status === 200);
  const comparable = createComparable();

  async function look({ bytes, options, idempotencyKey }: Sent, first: RawResponse | null): Promise<Look> {
    const said = sayInHttp2(bytes, options.tls !== undefined);
    if (typeof said === 'string') return { as: 'left', why: said };
    const why = comparable.whyNot(idempotencyKey, first);
    if (why !== null) return { as: 'left', why };
    const second = await askOnce(port, said, options);
    if (first === null || second === null) {
      return { as: 'refused', problem: first === second ? null : 'answered, or not, where HTTP/1.1 has it otherwise' };
    }
    // `idempotency: optional` has another meaning over HTTP/2.
    if (idempotencyKey === null && !isOwnAnswer(first) && second.text.includes('idempotency-key-missing')) {
      return { as: 'left', why: 'needs a key' };
    }
    const received = seenBy('mirror', second.field('x-request-id') ?? '');
    if (second.status === 0) return { as: 'reset', problem: problemOfReset(first, second) };
    if (isOwnAnswer(first) && isOwnAnswer(second) && first.status !== second.status && received === null) {
      return { as: 'otherwise', problem: null, status: second.status };
    }
    return isOwnAnswer(first)
      ? { as: 'refused', problem: problemOfRefusal(first, second, received) }
      : { as: 'allowed', problem: problemOfAllowed(first, second, received) };
  }

  async function compare(sent: Sent, enforced: RawResponse | null): Promise<void> {
    let answer = enforced;
    let found = await look(sent, answer);
    const endMs = performance.now() + patienceMs;
    // A config or a key that came a moment ago reaches two processes at two times.
    while (found.as !== 'left' && found.problem !== null && sent.idempotencyKey === null && performance.now() < endMs) {
      answer = await sendOnce(firstPort, sent.bytes, sent.options).catch(() => null);
      found = await look(sent, answer);
    }
    const row = `${sent.row} ${answer === null ? 'none' : nameOf(answer)}`;
    if (found.as === 'left') left.add(`${row}: ${found.why}`);
    else if (found.problem !== null) throw new Error(`HTTP/2: ${found.problem}: ${row} ${inspect(sent)}`);
    else if (found.as === 'otherwise') otherwise.add(`${row}: ${String(found.status)}`);
    else counts[found.as] += 1;
  }

  const sentOf = (bytes: Buffer, options: SendOptions = {}): Sent => {
    const text = bytes.toString('latin1');
    const [line = ''] = text.split('\r\n', 1);
    const { untilClosed: _closed, ...rest } = options;
    return {
      bytes,
      options: rest,
      idempotencyKey: /^idempotency-key:[ \t]*(.*?)[ \t]*\r$/im.exec(text)?.[1] ?? null,
      row: line.replace(/(?:\?.*)? HTTP\/.*/s, '').slice(0, 60),
    };
  };

  return {
    compare: async (input, options, enforced) => compare(sentOf(requestBytes(firstPort, input), options), enforced),
    compareRaw: async (bytes, options, enforced) => {
      const finals = enforced.filter(({ status }) => status >= 200 || status === 101);
      const sent = sentOf(Buffer.from(bytes), options);
      if (finals.length > 1) left.add(`${sent.row}: several`);
      else await compare(sent, finals[0] ?? null);
    },
    signal: (signal) => {
      if (signal === 'SIGTERM') comparable.end();
      serve.signal(signal);
    },
    status: async () => admin('/status'),
  };
}

/** An answer of HTTP/2; its status is 0, and the code says why, where the stream was reset without one. */
interface SecondAnswer extends Answer {
  readonly code: number;
  readonly names: readonly string[];
}

/** `null` where there is no connection to ask on. */
async function askOnce(port: number, said: ExactRequest, options: SendOptions): Promise<SecondAnswer | null> {
  const client = await connectExact(port, options).catch(() => null);
  if (client === null) return null;
  try {
    return answerOf(await client.ask(said));
  } finally {
    client.close();
  }
}

function answerOf({ status, headers, body, code }: Http2Response): SecondAnswer {
  return {
    status,
    code,
    names: Object.keys(headers).filter((name) => !name.startsWith(':')),
    field: (name) => {
      const value = headers[name];
      return value === undefined ? null : Array.isArray(value) ? value.join(', ') : value;
    },
    text: body.toString(),
  };
}

function problemOfReset(first: RawResponse, { code }: SecondAnswer): string | null {
  if (isOwnAnswer(first) && resets[first.status]?.includes(code) === true) return null;
  return `reset with ${String(code)} instead of ${nameOf(first)}`;
}

function problemOfRefusal(first: RawResponse, second: SecondAnswer, received: Seen | null): string | null {
  if (received !== null && seenBy('own', first.field('x-request-id') ?? '') === null) return 'was forwarded';
  const [one, other] = [first, second].map(
    ({ status, text }) => `${String(status)} ${text.replace(/"record":"[^"]*"/, '')}`,
  );
  return one === other ? problemOfFields(first, second) : `answered ${String(other)}`;
}

/** What the upstream gets of it is the same, and so is the answer. */
function problemOfAllowed(first: RawResponse, second: SecondAnswer, received: Seen | null): string | null {
  const isReplayed = first.field('idempotent-replayed') !== null;
  if (isReplayed !== (second.field('idempotent-replayed') !== null)) return 'was replayed, or not, as over HTTP/1.1';
  const seen = seenBy('own', first.field('x-request-id') ?? '');
  if (seen === null || isReplayed) return isOwnAnswer(second) ? `was refused (${String(second.status)})` : null;
  if (received === null) return `an allowed request did not reach the upstream (${String(second.status)})`;
  const [one, other] = [seen, received].map((each) => inspect(allOf(each), { maxArrayLength: null }));
  if (one !== other) return `the upstream got ${String(other)} instead of ${String(one)}`;
  const [theirs, here] = [echoed(first.text), echoed(second.text)];
  if (!seen.isAlike && (theirs === null || here === null)) return null;
  if (second.status !== first.status) return `answered ${String(second.status)}`;
  if ((theirs ?? first.text) !== (here ?? second.text)) return `answered ${second.text}`;
  return problemOfFields(first, second);
}

/** Method, target, body and fields, but those whose values are new each time or that frame the body of HTTP/1.1. */
function allOf({ method, target, body, rawHeaders }: Seen): readonly string[] {
  const fields: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? '';
    if (changing.has(name) || ['connection', 'via'].includes(name)) continue;
    fields.push(name, rawHeaders[i + 1] ?? '');
  }
  return [method, target, body.toString('latin1'), ...fields];
}

/** What the echo of a receiver says but the fields, which are compared where they came; `null` for anything else. */
function echoed(text: string): string | null {
  const parts = /^\{"method":(".*"),"target":(".*"),"rawHeaders":\[.*\],"body":(".*")\}$/s.exec(text)?.slice(1);
  return parts === undefined ? null : parts.join(' ');
}

function problemOfFields(first: RawResponse, second: SecondAnswer): string | null {
  const names = new Set([...first.fields.map(([name]) => name.toLowerCase()), ...second.names]);
  const isEcho = echoed(first.text) !== null;
  for (const name of names) {
    if (ownFields.has(name) || (isEcho && name === 'content-length') || first.field('transfer-encoding') !== null) {
      continue;
    }
    if (first.field(name) !== second.field(name)) {
      return `answered ${name}: ${String(second.field(name))} instead of ${String(first.field(name))}`;
    }
  }
  return null;
}

if (mirrorKind === 'http2') {
  process.once('exit', () =>
    process.stdout.write(
      `# http2-mirror ${JSON.stringify({ ...counts, otherwise: [...otherwise].sort(), left: [...left].sort() })}\n`,
    ),
  );
}
