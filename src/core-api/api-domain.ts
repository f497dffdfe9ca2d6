import { isIPv4 } from 'node:net';
import { accept, refuse, type Result } from '../lib/result.js';

/**
 * Normalises an API domain as the backend SDK does, so that `iss` is the one that its tokens have: lower case, scheme
 * and host, no default port, no path. Without a scheme it is https, and http for `localhost` and IPv4 addresses.
 * Refuses, in words, what is no domain, and a user or a query, which the SDK would silently drop.
 */
export function normalizeApiDomain(text: string): Result<string, string> {
  const domain = text.trim().toLowerCase();
  const hasScheme = /^https?:\/\//.test(domain);
  if (!hasScheme && (domain.includes('://') || !(domain.includes('.') || domain.startsWith('localhost')))) {
    return refuse(allowed);
  }
  const whole = hasScheme ? domain : `https://${domain.replace(/^\./, '')}`;
  if (!URL.canParse(whole) || /[^\x21-\x7e]|[\\@?#]/.test(whole)) return refuse(allowed);
  const { protocol, hostname, host } = new URL(whole);
  if (hasScheme) return accept(`${protocol}//${host}`);
  return accept(`${hostname.startsWith('localhost') || isIPv4(hostname) ? 'http' : 'https'}://${host}`);
}

const allowed = 'the API domain, such as https://api.example.com, without user, query and fragment';
