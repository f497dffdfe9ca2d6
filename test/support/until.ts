type Truthy<T> = Exclude<T, false | null | undefined | 0 | ''>;

/** Asks every 10 ms until the condition is truthy and returns that value; throws, naming `what`, after `limitMs`. */
export async function until<T>(what: string, condition: () => T | Promise<T>, limitMs = 30_000): Promise<Truthy<T>> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const value = await condition();
    if (value) return value as Truthy<T>;
    if (performance.now() > deadline) throw new Error(`not within ${String(limitMs)} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
