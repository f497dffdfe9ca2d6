/** Which last characters leave the unused bits zero, by the length modulo 4; one left over encodes nothing. */
const lastCharacters: readonly (string | null)[] = [null, '', 'AQgw', 'AEIMQUYcgkosw048'];

const alphabet = /^[A-Za-z0-9_-]+$/;

/**
 * Tells whether a non-empty text is base64url in its only canonical spelling: no padding, no white space, unused bits
 * zero (RFC 4648 §3.5, §5; RFC 7515 §2). That is what re-encoding the decoded bytes gives back. Lenient decoders take
 * several spellings of one token, so that a token that was refused or used up comes back as another.
 */
export function isCanonicalBase64Url(text: string): boolean {
  if (!alphabet.test(text)) return false;
  const allowed = lastCharacters[text.length % 4];
  return typeof allowed !== 'string' || allowed.includes(text.slice(-1));
}
