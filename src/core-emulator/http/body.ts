/** The members of a JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** Why a call was refused, in the Core's words. */
export interface Refused {
  readonly refused: string;
}

const invalid = Symbol('invalid');

/** Reads one field, or says that it is not what it should be. */
export type Reader<T> = (value: unknown) => T | typeof invalid;

type Shape = Readonly<Record<string, Reader<unknown>>>;

/** What a shape reads. */
type Read<S extends Shape> = { readonly [Name in keyof S]: Exclude<ReturnType<S[Name]>, typeof invalid> };

/** Text. */
export const string: Reader<string> = (value) => (typeof value === 'string' ? value : invalid);

/** Text of a form. */
export function matching(form: RegExp): Reader<string> {
  return (value) => (typeof value === 'string' && form.test(value) ? value : invalid);
}

/** True or false. */
export const boolean: Reader<boolean> = (value) => (typeof value === 'boolean' ? value : invalid);

/** A JSON object. */
export const object: Reader<Fields> = (value) => (isObject(value) ? value : invalid);

/** A list of text. */
export const strings: Reader<readonly string[]> = (value) =>
  Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : invalid;

/** Whole seconds or milliseconds; what follows the point is cut off, as the Core does it. */
export const whole: Reader<number> = (value) =>
  typeof value === 'number' && Number.isSafeInteger(Math.trunc(value)) ? Math.trunc(value) : invalid;

/** The same, or nothing at all. `null` is not nothing: the Core refuses it. */
export function optional<T>(reader: Reader<T>): Reader<T | undefined> {
  return (value) => (value === undefined ? undefined : reader(value));
}

/** The same, or `null`. */
export function nullable<T>(reader: Reader<T>): Reader<T | null> {
  return (value) => (value === null ? null : reader(value));
}

/** Parses a JSON object; `null` where the bytes are something else. */
export function parseFields(body: Buffer): Fields | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Reads fields in the order of the shape, so that the same mistake gets the same text as from the Core. */
export function readFields<S extends Shape>(fields: Fields | null, shape: S): Read<S> | Refused {
  if (fields === null) return { refused: 'Invalid Json Input' };
  const read: Record<string, unknown> = {};
  for (const [name, reader] of Object.entries(shape)) {
    const value = reader(Object.hasOwn(fields, name) ? fields[name] : undefined);
    if (value === invalid) return { refused: `Field name '${name}' is invalid in JSON input` };
    read[name] = value;
  }
  return read as Read<S>;
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
