/** What both kinds of mirror say of an answer: whether it can be compared with another proxy's, and by what. */
import { connectRaw, type RawResponse, type SendOptions } from './raw-client.js';
import { areAllAlike, type Seen } from './mirror-servers.js';

/** Why an answer is not compared: `test/conformance/shadow-suite.ts` says what that means, and where it may be so. */
export type LeftOut = 'ended' | 'under way' | 'its receiver' | 'several' | 'needs a key';

/** How long both proxies have to come to the same config and keys, milliseconds. */
export const patienceMs = 10_000;

/** Fields whose values are new for each request or name the proxy. */
export const changing: ReadonlySet<string> = new Set([
  'x-request-id',
  'traceparent',
  'host',
  'x-forwarded-host',
  'x-auth-assertion',
  'idempotency-fence',
]);

const underWay: ReadonlySet<string> = new Set([
  'overloaded',
  'shutting-down',
  'idempotency-in-progress',
  'too-many-pending',
  'too-many-in-flight',
  'rate-limited',
]);
const ofReceiver: ReadonlySet<string> = new Set(['upstream-failed', 'upstream-timeout', 'idempotency-outcome-unknown']);

/** What is read of an answer, of whichever protocol. */
export type Answer = Pick<RawResponse, 'status' | 'field' | 'text'>;

/** Tells which answers cannot be compared, from the order in which they came. */
export interface Comparable {
  readonly whyNot: (idempotencyKey: string | null, enforced: RawResponse | null) => LeftOut | null;
  /** The process was told to end. */
  readonly end: () => void;
}

export function createComparable(): Comparable {
  /** Keys that came through here, and those of which the two proxies know different things. */
  const [known, parted] = [new Set<string>(), new Set<string>()];
  let isEnded = false;
  return {
    whyNot: (key, enforced) => {
      if (isEnded || enforced === null) return isEnded ? 'ended' : null;
      // The first request with the key is not answered yet, or did not come through here.
      const isParted = key !== null && (parted.has(key) || (!known.has(key) && hasRecord(enforced)));
      const why = isParted ? 'under way' : reasonIn(enforced);
      if (key !== null) (why === null ? known : parted).add(key);
      return why;
    },
    end: () => {
      isEnded = true;
    },
  };
}

/** The first answer that is final, or a switch; `null` where the connection ends without one. */
export async function sendOnce(
  port: number,
  bytes: string | Buffer,
  options: SendOptions = {},
): Promise<RawResponse | null> {
  const connection = await connectRaw(port, options);
  try {
    connection.write(bytes);
    if (options.finish === true) connection.socket.end();
    for (;;) {
      const response = await connection.readResponse({ bodyless: bytes.toString('latin1').startsWith('HEAD ') });
      if (response === null || response.status >= 200 || response.status === 101) return response;
      // Where enforced it was refused before that: now the body is due that a caller would send.
      if (response.status === 100) {
        connection.write('x'.repeat(Number(/^content-length: *(\d+)/im.exec(bytes.toString('latin1'))?.[1] ?? 0)));
      }
    }
  } finally {
    connection.end();
  }
}

/** Whether it is one that only an earlier request with its key leads to. */
function hasRecord(enforced: RawResponse): boolean {
  const isReused = isOwnAnswer(enforced) && [409, 422].includes(enforced.status);
  return enforced.field('idempotent-replayed') !== null || isReused;
}

function reasonIn(enforced: RawResponse): LeftOut | null {
  if (!isOwnAnswer(enforced)) return null;
  const type = typeOf(enforced);
  if (underWay.has(type)) return 'under way';
  return ofReceiver.has(type) && !areAllAlike() ? 'its receiver' : null;
}

export function lastingOf({ target, rawHeaders }: Seen): readonly string[] {
  return [
    target,
    ...rawHeaders.filter(
      (text, index) => !changing.has((index % 2 === 0 ? text : (rawHeaders[index - 1] ?? '')).toLowerCase()),
    ),
  ];
}

export function valuesOf({ rawHeaders }: Seen, name: string): readonly string[] {
  return rawHeaders.filter((_value, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

export function nameOf(response: Answer): string {
  return isOwnAnswer(response) ? `${String(response.status)} ${typeOf(response)}` : String(response.status);
}

/** The last part of the problem's type. */
export function typeOf({ text }: Answer): string {
  return /"type":"urn:sallyport:([a-z-]+)"/.exec(text)?.[1] ?? '';
}

export function isOwnAnswer(response: Answer): boolean {
  return response.field('proxy-status')?.startsWith('sallyport;') === true;
}
