import type { Readable } from 'node:stream';
import { ByteBuffer } from '../inbound/byte-buffer.js';

/** Memory that bodies read whole may take together. */
export interface BufferBudget {
  /** Begins one body of a caller. */
  readonly open: (caller: string) => BufferShare;
  readonly taken: () => number;
}

/** What one body takes of a budget. */
interface BufferShare {
  /** `false` where it would be too much. */
  readonly take: (bytes: number) => boolean;
  /** Gives all of it back. */
  readonly give: () => void;
}

/**
 * Of the budget, what the bodies of one caller may take together. A single body may be larger: its route says how
 * large.
 */
const shareOfCaller = 1 / 4;

/** Keeps the bodies of reserving requests within `maxBytes`: beyond it callers are told to come back. */
export function createBufferBudget(maxBytes: number): BufferBudget {
  const takenBy = new Map<string, number>();
  let taken = 0;
  return {
    open: (caller) => {
      let held = 0;
      return {
        take: (bytes) => {
          const others = (takenBy.get(caller) ?? 0) - held;
          if (taken + bytes > maxBytes || (others > 0 && others + held + bytes > maxBytes * shareOfCaller)) {
            return false;
          }
          add(caller, bytes);
          held += bytes;
          return true;
        },
        give: () => {
          add(caller, -held);
          held = 0;
        },
      };
    },
    taken: () => taken,
  };

  function add(caller: string, bytes: number): void {
    const left = (takenBy.get(caller) ?? 0) + bytes;
    if (left === 0) takenBy.delete(caller);
    else takenBy.set(caller, left);
    taken += bytes;
  }
}

interface WholeBody {
  /** How many bytes were announced, or `null`. */
  readonly expectedBytes: number | null;
  readonly onWhole: (body: Buffer) => void;
  readonly onOverload: () => void;
}

/**
 * Reads a body to its end, within the budget. What breaks it is told by the stream itself.
 *
 * @returns gives back what it holds of the budget; to be called when the body is not needed any more.
 */
export function readWhole(
  stream: Readable,
  share: BufferShare,
  { expectedBytes, onWhole, onOverload }: WholeBody,
): () => void {
  const bytes = new ByteBuffer(expectedBytes);
  let held = 0;
  stream.on('data', (chunk: Buffer) => {
    const willHold = bytes.heldWith(chunk.length);
    if (!share.take(willHold - held)) {
      stream.destroy();
      onOverload();
      return;
    }
    held = willHold;
    bytes.append(chunk);
  });
  // The buffer is emptied: the stream lives as long as the request, and must not keep the body.
  stream.on('end', () => onWhole(bytes.take()));
  return share.give;
}
