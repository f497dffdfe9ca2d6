/** Names of this length or more are told apart by three edits. */
const longName = 8;

/** Finds the name that was probably meant: one within three edits, of a short name within a third of its letters. */
export function nearestName(name: string, names: readonly string[]): string | null {
  let best: { readonly name: string; readonly distance: number } | null = null;
  for (const candidate of names) {
    // Longer names than any of ours cannot be near one.
    if (Math.abs(candidate.length - name.length) > 3) continue;
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    const limit = candidate.length >= longName ? 3 : Math.max(1, Math.floor(candidate.length / 3));
    if (distance <= limit && (best === null || distance < best.distance)) best = { name: candidate, distance };
  }
  return best?.name ?? null;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn one text into the other. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = (last[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      let least = Math.min(replaced, (last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1);
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (isSwap) least = Math.min(least, (beforeLast[column - 2] ?? 0) + 1);
      current.push(least);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}
