import { accept, refuse, type Result } from '../lib/result.js';

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
