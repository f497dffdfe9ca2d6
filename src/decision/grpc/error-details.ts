/**
 * `grpc-status-details-bin` of our refusals: a `google.rpc.Status` that holds one `google.rpc.ErrorInfo`, by which
 * programs tell refusals of one code apart, as they do by `type` in a problem document. They are written by hand: text,
 * bytes and one number are all there is in them.
 */

/** The domain of our reasons (google/rpc/error_details.proto, `ErrorInfo.domain`). */
const domain = 'sallyport';

const errorInfoType = 'type.googleapis.com/google.rpc.ErrorInfo';

const lengthDelimited = 2;

/** What a refusal says to programs. */
interface ErrorDetails {
  /** Number of the code, 1 to 16: one byte. */
  readonly code: number;
  readonly message: string;
  /** The type of the problem document without `urn:sallyport:`. */
  readonly type: string;
  /** Id of a reservation, where the refusal names one. */
  readonly record: string | undefined;
}

/** Encodes the details in base64 without padding, as binary metadata is sent. */
export function encodeErrorDetails({ code, message, type, record }: ErrorDetails): string {
  const metadata = record === undefined ? [] : bytesField(3, [...textField(1, 'record'), ...textField(2, record)]);
  const info = [...textField(1, reasonOf(type)), ...textField(2, domain), ...metadata];
  const any = [...textField(1, errorInfoType), ...bytesField(2, info)];
  const status = [8, code, ...textField(2, message), ...bytesField(3, any)];
  return Buffer.from(status).toString('base64').replaceAll('=', '');
}

/** `ErrorInfo.reason` has the form `[A-Z][A-Z0-9_]+[A-Z0-9]`. */
export function reasonOf(type: string): string {
  return type.toUpperCase().replaceAll('-', '_');
}

function textField(number: number, text: string): readonly number[] {
  return bytesField(number, [...Buffer.from(text)]);
}

function bytesField(number: number, bytes: readonly number[]): readonly number[] {
  return [number * 8 + lengthDelimited, ...varint(bytes.length), ...bytes];
}

/** Seven bits a byte, the lowest first; the highest bit says that more follow. */
function varint(value: number): readonly number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}
