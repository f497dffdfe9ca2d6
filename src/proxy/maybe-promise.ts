/** Values that are here already, or on their way: a promise would cost every request a turn of the event loop. */

/** Returns what `next` makes of a value: at once where the value is here. */
export function thenSync<T, U>(value: T | Promise<T>, next: (value: T) => U | Promise<U>): U | Promise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/**
 * Hands a value to `next`: at once where it is here.
 *
 * @param onError told of what fails later; what fails at once is thrown.
 */
export function takeSettled<T>(
  value: T | Promise<T>,
  next: (value: T) => void,
  onError: (error: unknown) => void,
): void {
  if (value instanceof Promise) value.then(next).catch(onError);
  else next(value);
}
