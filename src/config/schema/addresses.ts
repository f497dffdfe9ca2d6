/** What makes a text an address: without the schema's library, which takes long to load. */

/** What `isOrigin` takes, in words. */
export const originForm = 'http://HOST:PORT, https://HOST:PORT or unix:/PATH, without a path, user or query';

/** Whether a host is every address of the machine. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || canonicalV6(host) === '[::]';
}

/** Reads a URL; `null` where it is none. */
export function readUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}

/** Whether it is an http or https URL without user, password and fragment. */
export function isFetchedUrl(text: string): boolean {
  if (!/^https?:\/\/[\x21-\x7e]+$/.test(text) || text.includes('\\')) return false;
  if (text.includes('#') || /^https?:\/\/[^/?]*@/.test(text)) return false;
  return readUrl(text) !== null;
}

/** Whether it is a scheme, host and port, or a Unix socket. */
export function isOrigin(text: string): boolean {
  // A Unix socket's path has 107 bytes at most (unix(7)).
  if (text.startsWith('unix:')) {
    return /^unix:\/[^\p{Cc}\p{Cs}]+$/u.test(text) && Buffer.byteLength(text.slice(5)) <= 107;
  }
  if (!/^https?:\/\/[^/?#\\@\s]+\/?$/.test(text)) return false;
  const url = readUrl(text);
  return url !== null && url.hostname !== '';
}

/** An IPv6 address as the URL standard writes it: the shortest of its many spellings. */
function canonicalV6(address: string): string {
  return readUrl(`http://[${address}]`)?.hostname ?? '';
}
