/** A line of a file without its end, or `null` where it is longer than allowed. */
export interface TextLine {
  readonly line: number;
  readonly bytes: Buffer | null;
  /** Whether its end was there. */
  readonly isEnded: boolean;
  /** Where the next line begins, in bytes from the start of the file. */
  readonly nextAt: number;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** Splits a stream of bytes into lines, holding one line at most: CR LF and LF end one. */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  maxBytes: number,
): AsyncGenerator<TextLine, void, undefined> {
  let parts: Buffer[] = [];
  let held = 0;
  let line = 1;
  let at = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      keep(chunk.subarray(from, end));
      yield { line, bytes: take(), isEnded: true, nextAt: at + end + 1 };
      line += 1;
      from = end + 1;
    }
    keep(chunk.subarray(from));
    at += chunk.length;
  }
  if (held > 0) yield { line, bytes: take(), isEnded: false, nextAt: at };

  function keep(part: Buffer): void {
    held += part.length;
    if (held <= maxBytes && part.length > 0) parts.push(part);
    else if (held > maxBytes) parts = [];
  }

  function take(): Buffer | null {
    const bytes = held > maxBytes ? null : Buffer.concat(parts);
    parts = [];
    held = 0;
    return bytes?.at(-1) === carriageReturn ? bytes.subarray(0, -1) : bytes;
  }
}
