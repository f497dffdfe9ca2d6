/** Escapes every character of a path's segments but unreserved ones, and leaves encoded slashes as they are. */
export function reEncoded(segments: readonly string[]): string {
  return segments.map((segment) => segment.split(/(%2f)/i).map(encodePart).join('')).join('/');
}

function encodePart(part: string): string {
  if (/^%2f$/i.test(part)) return '%2F';
  return encodeURIComponent(part).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
