/** The frames of a WebSocket connection, as far as somebody between its ends has to know them (RFC 6455 §5). */

/** How frames of one direction have to look. */
export interface FrameRules {
  /** Frames of a client are masked, those of a server are not (§5.1). */
  readonly masked: boolean;
  /** Whether an extension was agreed on: only then reserved bits have a meaning (§5.2). */
  readonly extended: boolean;
}

/** What some bytes of a direction hold. */
export interface FrameScan {
  /** What may be passed on, in order: whole headers, and as much of the payloads as came. */
  readonly passed: readonly Buffer[];
  /** The Close frame with which it ends; what came after that is left out. */
  readonly close: ClosePayload | null;
  /** What came next is no frame. */
  readonly isMalformed: boolean;
}

interface ClosePayload {
  /** `null` where the frame has none. */
  readonly code: number | null;
}

const closeOpcode = 0x8;
/** Continuation, text, binary; Close, Ping, Pong. */
const opcodes: ReadonlySet<number> = new Set([0x0, 0x1, 0x2, closeOpcode, 0x9, 0xa]);
const firstControlOpcode = 0x8;

const finBit = 0x80;
const reservedBits = 0x70;
const opcodeBits = 0x0f;
const maskBit = 0x80;
const lengthBits = 0x7f;

/** Seven bits of length that say: it stands in the next two, or eight, bytes. */
const twoByteLength = 126;
const eightByteLength = 127;
const maskBytes = 4;
const longestHeader = 2 + 8 + maskBytes;

/** The upper half of the longest length that is a number here, some 9 petabytes; the lower half may be anything. */
const maxUpperLength = 0x1f_ffff;

/**
 * Follows the frames of one direction as they come, in pieces of any size. Headers are judged before any byte of them
 * is passed on, so that there is always a place where a frame of ours may stand. Payloads are counted and not kept.
 */
export class FrameReader {
  private readonly rules: FrameRules;
  private readonly header = Buffer.alloc(longestHeader);
  /** Bytes of a header that came so far. */
  private headerBytes = 0;
  /** Bytes of the payload that are to come. */
  private payloadBytes = 0;
  /** Whether a message has begun and not ended. */
  private isInMessage = false;
  /** The first bytes of the payload of a Close frame, while that comes. */
  private closeStart: number[] | null = null;

  constructor(rules: FrameRules) {
    this.rules = rules;
  }

  /** Bytes that are missing to the end of the frame that is being passed on; 0 between frames. */
  missing(): number {
    return this.payloadBytes;
  }

  read(chunk: Buffer): FrameScan {
    const earlier: Buffer[] = [];
    let at = 0;
    let end = 0;
    const scan = (close: ClosePayload | null, isMalformed: boolean): FrameScan => ({
      passed: end === 0 ? earlier : [...earlier, chunk.subarray(0, end)],
      close,
      isMalformed,
    });
    while (at < chunk.length) {
      if (this.payloadBytes === 0) {
        const held = this.headerBytes;
        at = this.takeHeader(chunk, at);
        if (this.headerBytes < this.headerLength()) break;
        if (!this.begin()) return scan(null, true);
        if (held > 0) earlier.push(Buffer.from(this.header.subarray(0, held)));
      } else at = this.takePayload(chunk, at);
      end = at;
      if (this.payloadBytes === 0 && this.closeStart !== null) {
        return scan({ code: this.closeCode(this.closeStart) }, false);
      }
    }
    return scan(null, false);
  }

  private takeHeader(chunk: Buffer, from: number): number {
    let at = from;
    while (at < chunk.length && this.headerBytes < this.headerLength()) {
      this.header[this.headerBytes++] = chunk[at++] ?? 0;
    }
    return at;
  }

  private takePayload(chunk: Buffer, from: number): number {
    const to = Math.min(chunk.length, from + this.payloadBytes);
    for (let i = from; i < to && this.closeStart !== null && this.closeStart.length < 2; i++) {
      this.closeStart.push(chunk[i] ?? 0);
    }
    this.payloadBytes -= to - from;
    return to;
  }

  /** How long the header is, as far as its first bytes tell. */
  private headerLength(): number {
    if (this.headerBytes < 2) return 2;
    const second = this.header[1] ?? 0;
    const length = second & lengthBits;
    const extended = length === twoByteLength ? 2 : length === eightByteLength ? 8 : 0;
    return 2 + extended + ((second & maskBit) === 0 ? 0 : maskBytes);
  }

  /** Begins the frame whose header is whole; `false` where there can be none such. */
  private begin(): boolean {
    const [first = 0, second = 0] = this.header;
    const opcode = first & opcodeBits;
    const isFinal = (first & finBit) !== 0;
    const isControl = opcode >= firstControlOpcode;
    const length = this.payloadLength();
    this.headerBytes = 0;
    if (!opcodes.has(opcode) || length === null) return false;
    if (((second & maskBit) !== 0) !== this.rules.masked) return false;
    if ((first & reservedBits) !== 0 && !this.rules.extended) return false;
    if (isControl) {
      if (!isFinal || length >= twoByteLength) return false;
    } else {
      if ((opcode === 0) !== this.isInMessage) return false;
      this.isInMessage = !isFinal;
    }
    if (opcode === closeOpcode) {
      // A code takes two bytes (§5.5.1).
      if (length === 1) return false;
      this.closeStart = [];
    }
    this.payloadBytes = length;
    return true;
  }

  /** `null` where it is not written in the shortest form (§5.2), or is longer than anything. */
  private payloadLength(): number | null {
    const short = (this.header[1] ?? 0) & lengthBits;
    if (short < twoByteLength) return short;
    if (short === twoByteLength) {
      const length = this.header.readUInt16BE(2);
      return length < twoByteLength ? null : length;
    }
    const [upper, lower] = [this.header.readUInt32BE(2), this.header.readUInt32BE(6)];
    if (upper > maxUpperLength || (upper === 0 && lower <= 0xffff)) return null;
    return upper * 2 ** 32 + lower;
  }

  private closeCode([first, second]: readonly number[]): number | null {
    if (first === undefined || second === undefined) return null;
    // Where the length of a Close frame ends, its mask begins: such lengths take no further bytes.
    const [m0 = 0, m1 = 0] = this.rules.masked ? this.header.subarray(2) : [];
    return ((first ^ m0) << 8) | (second ^ m1);
  }
}

/**
 * A Close frame as a server sends it, or masked with these four bytes as a client does. The reason is at most 123 bytes
 * of ASCII.
 */
export function closeFrame(code: number, reason: string, mask: Buffer | null): Buffer {
  const payload = Buffer.alloc(2 + reason.length);
  payload.writeUInt16BE(code);
  payload.write(reason, 2, 'latin1');
  const header = [finBit | closeOpcode, payload.length | (mask === null ? 0 : maskBit)];
  if (mask === null) return Buffer.concat([Buffer.from(header), payload]);
  return Buffer.concat([Buffer.from(header), mask, payload.map((byte, i) => byte ^ (mask[i % maskBytes] ?? 0))]);
}
