import type { Readable } from 'node:stream';

/** Memory that bodies read whole may take together. */
export interface BufferBudget {
  /** `false` where it would be too much. */
  readonly take: (bytes: number) => boolean;
  readonly give: (bytes: number) => void;
  readonly taken: () => number;
}

/** Keeps the bodies of reserving requests within `maxBytes`: beyond it callers are told to come back. */
export function createBufferBudget(maxBytes: number): BufferBudget {
  let taken = 0;
  return {
    take: (bytes) => {
      if (taken + bytes > maxBytes) return false;
      taken += bytes;
      return true;
    },
    give: (bytes) => {
      taken -= bytes;
    },
    taken: () => taken,
  };
}

export interface WholeBody {
  readonly onWhole: (body: Buffer) => void;
  readonly onOverload: () => void;
}

/**
 * Reads a body to its end, within the budget. What breaks it is told by the stream itself.
 *
 * @returns gives back what it holds of the budget; to be called when the body is not needed any more.
 */
export function readWhole(stream: Readable, budget: BufferBudget, { onWhole, onOverload }: WholeBody): () => void {
  const chunks: Buffer[] = [];
  let held = 0;
  stream.on('data', (chunk: Buffer) => {
    if (!budget.take(chunk.length)) {
      stream.destroy();
      onOverload();
      return;
    }
    held += chunk.length;
    chunks.push(chunk);
  });
  stream.on('end', () => {
    onWhole(Buffer.concat(chunks));
  });
  return () => {
    budget.give(held);
    held = 0;
  };
}
