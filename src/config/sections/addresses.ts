/** What makes a text an address: without the schema's library, which takes long to load. */
import { isIP } from 'node:net';

/** What `isOrigin` takes, in words. */
export const originForm = 'http://HOST:PORT, https://HOST:PORT or unix:/PATH, without a path, user or query';

/** Whether a host is this machine alone. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  if (isIP(name) === 4) return name.startsWith('127.');
  if (isIP(name) === 6) return isLoopbackV6(name);
  return name === 'localhost';
}

/** Whether a host is every address of the machine. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || canonicalV6(host) === '[::]';
}

/** Reads a URL; `null` where it is none. */
export function readUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}

/** Whether it is an IP address, or a block of them in CIDR notation. */
export function isAddressBlock(text: string): boolean {
  const [, address = '', bits] = /^([^/%]+)(?:\/(0|[1-9][0-9]{0,2}))?$/.exec(text) ?? [];
  const version = isIP(address);
  if (version === 0) return false;
  return bits === undefined || Number(bits) <= (version === 4 ? 32 : 128);
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

function isLoopbackV6(address: string): boolean {
  const canonical = canonicalV6(address);
  // `::ffff:127.0.0.1` is written `::ffff:7f00:1`.
  return canonical === '[::1]' || /^\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\]$/.test(canonical);
}

/** An IPv6 address as the URL standard writes it: the shortest of its many spellings. */
function canonicalV6(address: string): string {
  return readUrl(`http://[${address}]`)?.hostname ?? '';
}
