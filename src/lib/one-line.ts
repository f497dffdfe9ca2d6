/**
 * JSON escapes the controls below U+0020 only. DEL, the C1 controls, U+2028, U+2029 and the marks that reorder text
 * break or disguise lines in terminals and log viewers (CWE-117).
 */
const unsafe = /[\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const everyUnsafe = new RegExp(unsafe, 'g');

/** Escapes those in a line of JSON. Outside strings it has only ASCII, so an escape is right wherever one stands. */
export function oneLine(json: string): string {
  return unsafe.test(json) ? json.replace(everyUnsafe, escape) : json;
}

function escape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
