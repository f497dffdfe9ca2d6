import type { Asked, Returned } from '../../../app/accepting/socket-duplicates.js';

/**
 * What the process does that was started for it: sends each handle it is given back as often as it is told. Nothing
 * keeps it alive but the channel.
 */
export function echoHandles(): void {
  process.on('message', ({ index, count }: Asked, handle: unknown) => {
    const returned: Returned = { index };
    // The types know the documented kinds of handles only.
    for (let sent = 0; sent < count; sent += 1) process.send?.(returned, handle as undefined, { keepOpen: true });
  });
}
