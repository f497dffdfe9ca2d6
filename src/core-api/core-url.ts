import { accept, refuse, type Result } from '../lib/result.js';
import { isIPv4, isIP } from 'node:net';
import { createAddressTest, isLoopback, plainAddress } from '../lib/ip-ranges.js';

/** Calls of the Core that operators write down with their whole address, so that `curl -K` works. */
const knownCalls = [
  '/recipe/user/passwordhash/import',
  '/recipe/signinup/code/consume',
  '/recipe/signinup/code',
  '/recipe/signinup',
  '/recipe/signin',
  '/recipe/user',
  '/recipe/jwt',
  '/apiversion',
  '/hello',
];

/** Segments that need no decoding, so that they are read in one way only. */
const plainPath = /^(?:\/[A-Za-z0-9._~-]+)*\/?$/;

/**
 * Reads where the Core is: an http or https URL, perhaps with the path of one of its calls, which is cut off; what is
 * before that stays, and there is no slash at its end. Refused, in words, with anything that curl would send besides.
 */
export function readCoreUrl(text: string): Result<string, string> {
  if (!/^https?:\/\/[^/]/.test(text)) return refuse('is no URL that begins with http:// or https://');
  if (!URL.canParse(text) || /[\s\\]/.test(text)) return refuse('is no URL');
  const url = new URL(text);
  if (/^https?:\/\/[^/?#]*@/.test(text)) {
    return refuse('holds a user or a password; the Core takes its key in the api-key header');
  }
  if (/[?#]/.test(text)) return refuse('has a query or a fragment');
  const path = text.replace(/^https?:\/\/[^/]*/, '');
  if (!plainPath.test(path) || path.split('/').some((segment) => segment === '.' || segment === '..')) {
    return refuse('has a path with other characters than A-Z a-z 0-9 . _ ~ - or with dot segments');
  }
  const whole = path.replace(/\/$/, '');
  const call = knownCalls.find((known) => whole.endsWith(known)) ?? '';
  return accept(`${url.origin}${whole.slice(0, whole.length - call.length)}`);
}

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

/** What an operator allows beyond the safe cases. */
export interface CoreAddressRules {
  /** Lets the API key travel in the clear to another machine. */
  readonly allowHttp: boolean;
  /** Lets the Core be on the public internet. */
  readonly allowPublic: boolean;
}

/** RFC 1918, RFC 6598 (shared by carriers and clouds), RFC 4193, and RFC 4291 §2.5.6 for one link. */
const isPrivate = createAddressTest([
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
  'fe80::/10',
]);

const publicAddress = 'is a public address; the Core belongs on a private network';
const keyInTheClear = 'is another machine, which http would send the key in the clear';

/**
 * Tells whether the Core may be called at this IP address over this protocol. Whoever reaches the Core can mint any
 * identity, so it belongs on loopback or a private network, and its API key never travels to another machine in the
 * clear. A refusal is in words that follow the name of the address.
 */
export function judgeCoreAddress(
  protocol: 'http:' | 'https:',
  address: string,
  rules: CoreAddressRules,
): Result<null, string> {
  const plain = plainAddress(address);
  if (isIP(plain) === 0) return refuse('is no IP address');
  if (isLoopback(plain)) return accept(null);
  if (!isPrivate(plain) && !rules.allowPublic) {
    return refuse(`${publicAddress} (--allow-public-core, in programs allowPublicCore, overrides)`);
  }
  if (protocol === 'http:' && !rules.allowHttp) {
    return refuse(`${keyInTheClear} (--allow-http, in programs allowHttp, overrides)`);
  }
  return accept(null);
}
