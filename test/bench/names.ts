/** Refuses names that there are not. `what` is what they would be names of. */
export function refuseUnknown(what: string, wanted: readonly string[], known: readonly string[]): void {
  const unknown = wanted.filter((name) => !known.includes(name));
  // With semicolons: some names have commas.
  if (unknown.length > 0) throw new Error(`no such ${what}: ${unknown.join('; ')}; there are ${known.join('; ')}`);
}
