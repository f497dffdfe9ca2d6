import { withoutCase } from '../../lib/text.js';
import { peekHeader } from '../token/compact-jws.js';

/** A header that every reader understands alike names one key, if any; it ends at the first dot to all of them. */
const plainCredential = /^(?:[\w-]+[ \t]+)?([\w-]+\.[\w.+/=-]*)$/;

/**
 * Whether a credential names one of these keys to anybody who may read it. Of a token in its usual form the `kid` alone
 * counts, in any case of its name, for some readers match names without it. Whoever holds a leaked key signs whatever
 * header they like, though: with a name twice, in UTF-16, with characters that some decoders of base64 pass over. What
 * such a header means is the reader's to choose, and where it ends, so that each text of the credential may be the
 * `kid`. A header without one names no key to anybody.
 */
export function namesKey(credential: string, isMeant: (keyId: string | number) => boolean): boolean {
  if (credential.indexOf('.') === credential.lastIndexOf('.')) return false;
  const token = plainCredential.exec(credential)?.[1];
  const header = token === undefined ? null : peekHeader(token, Infinity);
  if (header === null) return namesKeyLaxly(credential, isMeant);
  return Object.entries(header).some(
    ([name, keyId]) =>
      withoutCase(name) === 'kid' && (typeof keyId === 'string' || typeof keyId === 'number') && isMeant(keyId),
  );
}

/** Where in a group of four a header may begin: nobody knows what else a lax reader takes away before it. */
const alignments = [0, 1, 2, 3] as const;

function namesKeyLaxly(credential: string, isMeant: (keyId: string) => boolean): boolean {
  const encoded = credential.replace(/[^\w+/-]+/g, '');
  return alignments.some((at) => hasText(Buffer.from(encoded.slice(at), 'base64'), isMeant));
}

const escape = /\\(?:u([0-9a-f]{4})|(.))/gi;

/** What may stand around a text that has no quotes. */
const around = /[\s"'{}[\],:;=#/\\]+/;

/** Whether a text is among what may be JSON, for readers that take UTF-16, other quotes or none. */
function hasText(bytes: Buffer, isMeant: (text: string) => boolean): boolean {
  const json = bytes
    .toString('utf8')
    .replaceAll('\0', '')
    .replace(escape, (_escape, code: string | undefined, character: string) =>
      code === undefined ? character : String.fromCharCode(Number.parseInt(code, 16)),
    );
  return ['"', "'", around].some((quote) => json.split(quote).some((text) => text !== '' && isMeant(text)));
}
