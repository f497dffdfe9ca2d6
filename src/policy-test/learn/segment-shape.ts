/** What a segment of a path looks like: a word that names something, or a value of which there are many. */

/** `word` may stand in a route as it is; every other shape is a value. `odd` values have to be written by hand. */
export type SegmentShape = 'word' | 'number' | 'uuid' | 'date' | 'hex' | 'opaque' | 'prefixed' | 'text' | 'odd';

/** Longer than this and without a separator, a word is no name. */
const maxWordRun = 24;
const maxWordLength = 64;

/** From this length on letters mixed with several digits are an identifier. */
const minOpaqueLength = 10;

const wordForm = /^[A-Za-z_~.][A-Za-z0-9._~-]*$/;
const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const hexForm = /^(?=.*[0-9])[0-9a-f]{8,}$/i;
const prefixedForm = /^[A-Za-z]{1,12}[-_][0-9]{2,20}$/;
const dateForm = /^[0-9]{4}-[0-9]{2}(?:-[0-9]{2})?$/;

/** Tells the shape of a decoded segment that is not empty. */
export function shapeOf(text: string): SegmentShape {
  if (/^[0-9]+$/.test(text)) return 'number';
  if (uuidForm.test(text)) return 'uuid';
  if (dateForm.test(text)) return 'date';
  if (hexForm.test(text)) return 'hex';
  if (prefixedForm.test(text)) return 'prefixed';
  if (text.includes(':')) return colonShape(text);
  if (isOpaque(text)) return 'opaque';
  return wordForm.test(text) && text.length <= maxWordLength ? 'word' : 'text';
}

/** `orders:export` names something. `17:cancel` is an operation on a value, which no parameter tells from another. */
function colonShape(text: string): SegmentShape {
  const parts = text.split(':');
  return parts.every((part) => wordForm.test(part) && shapeOf(part) === 'word') && text.length <= maxWordLength
    ? 'word'
    : 'odd';
}

/** Whether some part between separators is long and has no word's form: base64, ULIDs, keys such as `cus_9s6XKzkN`. */
function isOpaque(text: string): boolean {
  return text.split(/[-_.~=]/).some((part) => {
    if (part.length > maxWordRun) return true;
    const digits = part.replace(/[^0-9]/g, '').length;
    return part.length >= minOpaqueLength && digits >= 2 && !/^[A-Za-z]+[0-9]+$/.test(part);
  });
}

/** A small number that always is the same one may be a name, as a version is. */
export function mayBeName(shape: SegmentShape, text: string): boolean {
  return shape === 'number' && text.length <= 4;
}

/** FNV-1a: tells values apart without keeping them. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
}
