/** Texts as the contract has them, character by character. */

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Base64url. Each byte string has one spelling: bits that stand for nothing are 0. */
export function decodePart(part: string): Buffer | null {
  if (part === '' || part.length % 4 === 1) return null;
  let bits = '';
  for (const letter of part) {
    const value = letters.indexOf(letter);
    if (value < 0) return null;
    bits += value.toString(2).padStart(6, '0');
  }
  const whole = bits.length - (bits.length % 8);
  if (bits.slice(whole).includes('1')) return null;
  return Buffer.from(
    Array.from({ length: whole / 8 }, (_, index) => Number.parseInt(bits.slice(8 * index, 8 * index + 8), 2)),
  );
}

/** Visible ASCII, and not nothing. */
export function isVisible(text: string, maxLength: number): boolean {
  return (
    text !== '' &&
    text.length <= maxLength &&
    Array.from(text).every((character) => character > ' ' && character <= '~')
  );
}
