/**
 * The conformance suite in shadow mode: beside the proxy of each world runs a second one, with the same config but `mode:
 * shadow` and a receiver of its own. What the first one answers says what the second one has to do with the same request.
 */
import { inspect } from 'node:util';
import { request, sendRaw, type RawResponse, type RequestInput, type SendOptions } from './raw-client.js';
import { startReceiver, type ReceivedRequest, type Receiver } from './receiver.js';
import type { Scope } from './scope.js';
import { startServe, type LogLine } from './serve-process.js';
import { until } from './until.js';

interface Look {
  readonly as: keyof typeof counts;
  readonly problem: string | null;
}

/** Whether the tests run with it. */
export const isMirrored = process.env['SALLYPORT_SHADOW_MIRROR'] === '1';

export interface ShadowMirror {
  /** Sends to the second proxy what the first one answered so, and fails where shadow mode does anything else than it may. */
  readonly compare: (input: RequestInput, options: SendOptions | undefined, enforced: RawResponse) => Promise<void>;
  readonly compareRaw: (bytes: string | Buffer, options: SendOptions | undefined, enforced: readonly RawResponse[]) => Promise<void>;
}

export interface MirrorSettings {
  readonly configFile: string;
  readonly env: Readonly<Record<string, string>>;
  /** Writes the second proxy's config, with this receiver behind it. */
  readonly write: (receiver: Receiver) => void;
  readonly logOf: (requestId: string) => Promise<LogLine>;
  /** Asks the first proxy again. */
  readonly ask: (input: RequestInput) => Promise<RawResponse>;
}

/** What was compared in this process; told at its end. */
const counts = { passed: 0, refused: 0, allowed: 0 };

/** How long both proxies have to come to the same config, milliseconds. */
const patienceMs = 10_000;

/** These say more of the request than of its caller: shadow mode changes nothing of them. */
const alike: ReadonlySet<number> = new Set([400, 405, 413, 414, 417, 431]);

export async function startMirror(t: Scope, { configFile, env, write, logOf, ask }: MirrorSettings): Promise<ShadowMirror> {
  const receiver = await startReceiver(t);
  write(receiver);
  const serve = startServe(t, configFile, { env });
  const port = await serve.port('proxy');
  const adminPort = await serve.port('admin');
  await until('the proxy in shadow mode is ready', async () => (await request(adminPort, { path: '/readyz' })).status === 200);

  /** What is wrong with the second proxy's answer, and how it was compared; `null` where nothing is to be compared. */
  async function look(input: RequestInput, options: SendOptions | undefined, enforced: RawResponse): Promise<Look | null> {
    const isOurs = isOwnAnswer(enforced);
    const isDenied = isOurs && [401, 403].includes(enforced.status);
    if ((isOurs && !isDenied && !alike.has(enforced.status)) || enforced.field('idempotent-replayed') !== null) return null;
    const isRevoked = isDenied && String((await logOf(enforced.field('x-request-id') ?? ''))['reason']).endsWith('_revoked');
    const shadow = await request(port, input, options);
    const received = receiver.requests.find((one) => one.field('x-request-id')[0] === shadow.field('x-request-id'));
    if (isDenied && !isRevoked) return { as: 'passed', problem: problemOfPass(input, shadow, received) };
    if (isOurs) return { as: 'refused', problem: problemOfRefusal(enforced, shadow, received) };
    return { as: 'allowed', problem: received === undefined && !isOwnAnswer(shadow) ? 'an allowed request did not reach the receiver' : null };
  }

  const compare: ShadowMirror['compare'] = async (input, options, enforced) => {
    if (options?.untilClosed === true) return;
    let found = await look(input, options, enforced);
    const endMs = performance.now() + patienceMs;
    // A config that was written a moment ago reaches two processes at two times.
    while (found !== null && found.problem !== null && performance.now() < endMs) found = await look(input, options, await ask(input));
    if (found === null) return;
    if (found.problem !== null) throw new Error(`shadow mode: ${found.problem}: ${inspect(input)}`);
    counts[found.as] += 1;
  };
  return {
    compare,
    compareRaw: async (bytes, options, [first]) => {
      if (first === undefined || !isOwnAnswer(first) || !alike.has(first.status)) return;
      const [shadow] = await sendRaw(port, bytes, options);
      const problem = shadow === undefined ? 'no answer' : problemOfRefusal(first, shadow, undefined);
      if (problem !== null) throw new Error(`shadow mode: ${problem}: ${inspect(bytes.toString().slice(0, 200))}`);
      counts.refused += 1;
    },
  };
}

function problemOfPass(input: RequestInput, shadow: RawResponse, received: ReceivedRequest | undefined): string | null {
  if (received === undefined || isOwnAnswer(shadow)) return `would be refused, and was not forwarded (${String(shadow.status)})`;
  if (received.target !== input.path) return `forwarded as ${received.target}`;
  const identity = received.rawHeaders.filter((text, index) => index % 2 === 0 && /^x[^a-z]?auth[^a-z]?(subject|issuer|permissions|token|kind|assertion)/i.test(text));
  if (identity.length > 0) return `lent an identity: ${identity.join(' ')}`;
  if (received.field('idempotency-record').length > 0) return 'was reserved';
  const sent = Array.isArray(input.headers) ? input.headers as readonly (readonly [string, string])[] : Object.entries(input.headers ?? {});
  const authorization = sent.filter(([name]) => name.toLowerCase() === 'authorization').map(([, value]) => String(value).trim());
  return inspect(received.field('authorization')) === inspect(authorization) ? null : 'its Authorization is not what came';
}

function problemOfRefusal(enforced: RawResponse, shadow: RawResponse, received: ReceivedRequest | undefined): string | null {
  if (received !== undefined) return 'was forwarded';
  return shadow.status === enforced.status && shadow.text === enforced.text ? null : `answered ${String(shadow.status)} ${shadow.text}`;
}

function isOwnAnswer(response: RawResponse): boolean {
  return response.field('proxy-status')?.startsWith('sallyport;') === true;
}

if (isMirrored) process.once('exit', () => process.stdout.write(`# shadow-mirror ${JSON.stringify(counts)}\n`));
