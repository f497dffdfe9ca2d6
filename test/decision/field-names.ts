/** Spellings that a receiver may take for the same field: other case, other punctuation, doubled or none. */
export function lookAlikes(name: string): readonly string[] {
  const parts = name.split('-');
  const separators = ['_', '.', '!', '#', '$', '%', '&', '\'', '*', '+', '^', '`', '|', '~', '--', '__', '-_', ''];
  const others = separators.map(separator => parts.join(separator));
  return [...others, `_${name}`, `${name}_`, `-${name}`, `${name}-`, name.replaceAll('-', '_').toUpperCase(), name.replace(/(.)$/, '_$1')]
    .filter(spelling => spelling.toLowerCase() !== name.toLowerCase());
}

/** The same name in other cases. */
export function cases(name: string): readonly string[] {
  const alternating = Array.from(name, (character, i) => (i % 2 === 0 ? character.toLowerCase() : character.toUpperCase())).join('');
  return [name, name.toLowerCase(), name.toUpperCase(), alternating];
}
