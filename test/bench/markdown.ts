/** A table. The first columns hold words, the others numbers. */
export function markdown(head: readonly string[], rows: readonly (readonly string[])[], words: number): string {
  const line = head.map((_cell, index) => (index < words ? '---' : '---:'));
  return [head, line, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
