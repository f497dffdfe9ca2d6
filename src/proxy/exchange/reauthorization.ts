/** How long a WebSocket or a gRPC call goes on by one authorization: keys, for one, may change meanwhile. */
export const reauthorizeAfterMs = 30_000;

/** The part of it after which the first are authorized again: those that began together, as after a reload, spread. */
const leastPart = 0.8;

/** When one of them is authorized again, in milliseconds. */
export function reauthorizeInMs(): number {
  return reauthorizeAfterMs * (leastPart + (1 - leastPart) * Math.random());
}

/** In one turn of the event loop: a millisecond or two, so that nobody has to wait for all of them. */
const reauthorizedAtOnce = 32;

/** Authorizes all that are open again, some in each turn of the event loop; those that end meanwhile are left out. */
export async function reauthorizeInTurns<T>(
  open: Iterable<T> & Pick<ReadonlySet<T>, 'has'>,
  reauthorize: (one: T) => void,
): Promise<void> {
  let done = 0;
  for (const one of [...open]) {
    if (!open.has(one)) continue;
    reauthorize(one);
    done += 1;
    if (done % reauthorizedAtOnce === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}
