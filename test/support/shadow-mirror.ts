/**
 * The conformance suite in shadow mode: beside each proxy runs a second one, with the same config but
 * `mode: shadow`, and mirrors of all its servers. What the first one answers says what the second one has to do with
 * the same request.
 */
import { inspect } from 'node:util';
import { request, type RawResponse, type RequestInput, type SendOptions } from './raw-client.js';
import type { Scope } from './scope.js';
import { startServe, type LogLine } from './serve-process.js';
import {
  createComparable,
  isOwnAnswer,
  lastingOf,
  nameOf,
  patienceMs,
  sendOnce,
  valuesOf,
  type LeftOut,
} from './mirror-answers.js';
import { mirrorKind, seenBy, type Seen } from './mirror-servers.js';
import { until } from './until.js';

/** A second proxy beside that of a test. */
export interface Mirror {
  /**
   * Sends to the second proxy what the first one answered so (`null`: not at all), and fails where the second one does
   * anything else than it may.
   */
  readonly compare: (
    input: RequestInput,
    options: SendOptions | undefined,
    enforced: RawResponse | null,
  ) => Promise<void>;
  readonly compareRaw: (
    bytes: string | Buffer,
    options: SendOptions | undefined,
    enforced: readonly RawResponse[],
  ) => Promise<void>;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Whether this is the text that is in force. */
  readonly status: () => Promise<RawResponse>;
}

export interface ShadowMirror extends Mirror {
  readonly port: number;
  readonly logOf: (requestId: string) => Promise<LogLine>;
  readonly metric: (series: string) => Promise<number>;
}

export interface MirrorSettings {
  readonly configFile: string;
  readonly env: Readonly<Record<string, string>>;
  /** Wait for `/readyz` to say 200. */
  readonly ready: boolean;
  readonly logOf: (requestId: string) => Promise<LogLine>;
  /** Asks the first proxy again. */
  readonly port: number;
}

interface Sent {
  readonly method: string;
  readonly target: string;
  readonly authorization: readonly string[];
  readonly idempotencyKey: string | null;
  /** Sends it. */
  readonly to: (port: number) => Promise<RawResponse | null>;
}

type Look =
  | { readonly as: 'passed' | 'refused' | 'allowed' | 'held'; readonly problem: string | null }
  | { readonly as: 'left'; readonly why: LeftOut };

/** What was compared in this process; told at its end. */
const counts = { passed: 0, refused: 0, allowed: 0 };
/** What holds in shadow mode too and shows there alone, and what was not compared: `row: why`. */
const [held, left] = [new Set<string>(), new Set<string>()];

/** The names that the configs of this suite give to fields of the identity, as a lax reader sees them. */
const identityNames: ReadonlySet<string> = new Set([
  'xauthsubject',
  'xauthissuer',
  'xauthpermissions',
  'xauthtokenid',
  'xauthkind',
  'xauthassertion',
  'xcaller',
]);

export async function startMirror(
  t: Scope,
  { configFile, env, ready, logOf, port: firstPort }: MirrorSettings,
): Promise<ShadowMirror> {
  const serve = startServe(t, configFile, { env });
  const port = await serve.port('proxy');
  const adminPort = await serve.port('admin');
  const admin = async (path: string): Promise<RawResponse> => request(adminPort, { path });
  if (ready) await until('the proxy in shadow mode is ready', async () => (await admin('/readyz')).status === 200);
  const lineOf = async (requestId: string): Promise<LogLine> =>
    until(`the line of ${requestId} in shadow mode`, () =>
      serve.logs().findLast((line) => line['request_id'] === requestId),
    );
  const comparable = createComparable();

  async function look(sent: Sent, enforced: RawResponse | null): Promise<Look> {
    const why = comparable.whyNot(sent.idempotencyKey, enforced);
    if (why !== null) return { as: 'left', why };
    const shadow = await sent.to(port).catch(() => null);
    if (enforced === null || shadow === null) {
      return { as: 'refused', problem: enforced === shadow ? null : 'answered, or not, where enforced it is not so' };
    }
    const received = seenBy('mirror', shadow.field('x-request-id') ?? '');
    if (!isOwnAnswer(enforced)) return { as: 'allowed', problem: problemOfAllowed(enforced, shadow, received) };
    const line = await logOf(enforced.field('x-request-id') ?? '');
    const isDenied = [401, 403].includes(enforced.status) && !String(line['reason']).endsWith('_revoked');
    if (!isDenied) return { as: 'refused', problem: problemOfRefusal(enforced, shadow, received) };
    if (isOwnAnswer(shadow) && [400, 413].includes(shadow.status)) {
      return { as: 'held', problem: received === null ? null : 'was forwarded' };
    }
    return {
      as: 'passed',
      problem:
        problemOfPass(sent, shadow, received) ?? problemOfLine(line, await lineOf(shadow.field('x-request-id') ?? '')),
    };
  }

  async function compare(sent: Sent, enforced: RawResponse | null): Promise<void> {
    let answer = enforced;
    let found = await look(sent, answer);
    const endMs = performance.now() + patienceMs;
    // A config or a key that came a moment ago reaches two processes at two times.
    while (found.as !== 'left' && found.problem !== null && sent.idempotencyKey === null && performance.now() < endMs) {
      answer = await sent.to(firstPort).catch(() => null);
      found = await look(sent, answer);
    }
    const row = `${sent.method} ${sent.target.replace(/\?.*/s, '').slice(0, 60)} ${answer === null ? 'none' : nameOf(answer)}`;
    if (found.as === 'left') left.add(`${row}: ${found.why}`);
    else if (found.problem !== null) throw new Error(`shadow mode: ${found.problem}: ${row} ${inspect(sent)}`);
    else if (found.as === 'held') held.add(row);
    else counts[found.as] += 1;
  }

  return {
    port,
    logOf: lineOf,
    metric: async (series) =>
      Number(
        new RegExp(`^${series.replaceAll(/[{}]/g, '\\$&')} (.*)$`, 'm').exec((await admin('/metrics')).text)?.[1] ?? 0,
      ),
    compare: async (input, options, enforced) => {
      const given = Array.isArray(input.headers)
        ? (input.headers as readonly (readonly [string, string])[])
        : Object.entries(input.headers ?? {});
      const values = (wanted: string): string[] =>
        given.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => String(value).trim());
      const { untilClosed: _closed, ...rest } = options ?? {};
      await compare(
        {
          method: input.method ?? 'GET',
          target: input.path,
          authorization: values('authorization'),
          idempotencyKey: values('idempotency-key')[0] ?? null,
          to: async (at) => request(at, input, rest),
        },
        enforced,
      );
    },
    compareRaw: async (bytes, options, enforced) => {
      const head = /^(\S+) (\S+) [^]*?(?:\r\n\r\n|$)/.exec(bytes.toString('latin1'));
      const finals = enforced.filter(({ status }) => status >= 200 || status === 101);
      const [text = '', method = '', target = ''] = head ?? [];
      const authorization = [...text.matchAll(/^authorization:[ \t]*(.*?)[ \t]*\r$/gim)].map(([, value = '']) => value);
      const sent = {
        method,
        target,
        authorization,
        idempotencyKey: null,
        to: async (at: number) => sendOnce(at, bytes, options),
      };
      if (finals.length > 1) left.add(`${method} ${target.slice(0, 60)}: several`);
      else await compare(sent, finals[0] ?? null);
    },
    signal: (signal) => {
      if (signal === 'SIGTERM') comparable.end();
      serve.signal(signal);
    },
    status: async () => admin('/status'),
  };
}

function problemOfPass({ target, authorization }: Sent, shadow: RawResponse, received: Seen | null): string | null {
  if (received === null || isOwnAnswer(shadow)) {
    return `would be refused, and was not forwarded (${String(shadow.status)})`;
  }
  if (received.target !== target) return `forwarded as ${received.target}`;
  const identity = received.rawHeaders.filter(
    (text, index) => index % 2 === 0 && identityNames.has(text.toLowerCase().replace(/[^a-z0-9]/g, '')),
  );
  if (identity.length > 0) return `lent an identity: ${identity.join(' ')}`;
  if (valuesOf(received, 'idempotency-record').length > 0) return 'was reserved';
  return inspect(valuesOf(received, 'authorization')) === inspect(authorization)
    ? null
    : 'its Authorization is not what came';
}

/** The line of what passed says why it would have been refused, and of whom. */
function problemOfLine(enforced: LogLine, shadow: LogLine): string | null {
  if (shadow['decision'] !== 'shadow' || shadow['record'] !== null) {
    return `logged as ${String(shadow['decision'])}, record ${String(shadow['record'])}`;
  }
  const different = ['reason', 'route', 'kind', 'issuer', 'subject', 'key_id', 'path'].find(
    (name) => shadow[name] !== enforced[name],
  );
  return different === undefined
    ? null
    : `logged with ${different} ${String(shadow[different])}, not ${String(enforced[different])}`;
}

function problemOfRefusal(enforced: RawResponse, shadow: RawResponse, received: Seen | null): string | null {
  if (received !== null && seenBy('own', enforced.field('x-request-id') ?? '') === null) return 'was forwarded';
  const [one, other] = [enforced, shadow].map(
    ({ status, text }) => `${String(status)} ${text.replace(/"record":"[^"]*"/, '')}`,
  );
  return one === other ? null : `answered ${String(other)}`;
}

/** What the receiver gets of it is the same, and so is the answer. */
function problemOfAllowed(enforced: RawResponse, shadow: RawResponse, received: Seen | null): string | null {
  const isReplayed = enforced.field('idempotent-replayed') !== null;
  if (isReplayed !== (shadow.field('idempotent-replayed') !== null)) {
    return 'was replayed, or not, where enforced it is not so';
  }
  const seen = seenBy('own', enforced.field('x-request-id') ?? '');
  if (seen === null || isReplayed) return isOwnAnswer(shadow) ? `was refused (${String(shadow.status)})` : null;
  if (received === null) return `an allowed request did not reach the receiver (${String(shadow.status)})`;
  if (seen.isAlike && shadow.status !== enforced.status) return `answered ${String(shadow.status)}`;
  const [one, other] = [seen, received].map((each) => inspect(lastingOf(each), { maxArrayLength: null }));
  return one === other ? null : `the receiver got ${String(other)} instead of ${String(one)}`;
}

if (mirrorKind === 'shadow') {
  process.once('exit', () =>
    process.stdout.write(`# shadow-mirror ${JSON.stringify({ ...counts, held: [...held], left: [...left] })}\n`),
  );
}
