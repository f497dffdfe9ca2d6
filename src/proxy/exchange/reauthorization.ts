/** How long a WebSocket or a gRPC call goes on by one authorization: keys, for one, may change meanwhile. */
export const reauthorizeAfterMs = 30_000;

/** In one turn of the event loop: a millisecond or two, so that nobody has to wait for all of them. */
const reauthorizedAtOnce = 32;

/** Authorizes all that are open again, some in each turn of the event loop; those that end meanwhile are left out. */
export async function reauthorizeInTurns<T>(open: ReadonlySet<T>, reauthorize: (one: T) => void): Promise<void> {
  let done = 0;
  for (const one of [...open]) {
    if (!open.has(one)) continue;
    reauthorize(one);
    done += 1;
    if (done % reauthorizedAtOnce === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}
