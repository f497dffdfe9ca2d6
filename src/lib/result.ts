/** Either a value or the reason why there is none. Refusals are values here, never exceptions. */
export type Result<T, E> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: E };

/** Wraps a value as a success. */
export function accept<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

/** Wraps a refusal. */
export function refuse<E>(error: E): { readonly ok: false; readonly error: E } {
  return { ok: false, error };
}
