/** How much is remembered: names are the callers' to choose. */
export interface MemoryLimits {
  readonly maxNames: number;
  /** Characters of a name; longer ones are worked out each time. */
  readonly maxLength: number;
  /** Whether names are parts of longer texts, which would stay in memory with them. */
  readonly areParts?: boolean;
}

/**
 * Keeps what was worked out for a name: almost every request brings the same few. Forgets all of them where they would
 * be too many.
 */
export function memoize<T>(
  compute: (name: string) => T,
  { maxNames, maxLength, areParts = false }: MemoryLimits,
): (name: string) => T {
  const known = new Map<string, T>();
  return (name) => {
    const kept = known.get(name);
    if (kept !== undefined) return kept;
    const value = compute(name);
    if (name.length <= maxLength) {
      if (known.size >= maxNames) known.clear();
      // Only copying by bytes makes a text of its own of a part.
      known.set(areParts ? Buffer.from(name, 'utf8').toString('utf8') : name, value);
    }
    return value;
  };
}
