/** Whether a proof is for the target of a request: `htu` of RFC 9449 §4.2. Pure. */

/** Scheme, host with its port, and path, without user, query and fragment. */
const targetUri = /^(https?):\/\/([^/?#@\\\s]+)(\/[^?#\\\s]*)?$/i;

const escaped = /%[0-9a-f]{2}/gi;

/** RFC 3986 §2.3. */
const unreserved = /^[A-Za-z0-9._~-]$/;

const standardPorts: Readonly<Record<string, string>> = { http: ':80', https: ':443' };

/**
 * Tells whether a URI is one of the origins and this path: compared as RFC 3986 §6.2.2 and §6.2.3 have it, which is all
 * that two honest spellings differ in. A URI with a query or a fragment is none: a proof has neither (RFC 9449 §4.2).
 *
 * @param path what precedes the query in the request target, as it was judged; without dot segments.
 * @param origins as `URL.origin` writes them.
 */
export function namesTarget(uri: string, path: string, origins: ReadonlySet<string>): boolean {
  const [, scheme = '', authority = '', named = '/'] = targetUri.exec(uri) ?? [];
  return origins.has(originOf(scheme.toLowerCase(), authority.toLowerCase())) && isSamePath(named, path);
}

function originOf(scheme: string, authority: string): string {
  const port = standardPorts[scheme] ?? '';
  return `${scheme}://${port !== '' && authority.endsWith(port) ? authority.slice(0, -port.length) : authority}`;
}

function isSamePath(a: string, b: string): boolean {
  return a === b || normalized(a) === normalized(b);
}

/** RFC 3986 §6.2.2.1, §6.2.2.2. */
function normalized(path: string): string {
  return path.replace(escaped, (octet) => {
    const character = String.fromCharCode(Number.parseInt(octet.slice(1), 16));
    return unreserved.test(character) ? character : octet.toUpperCase();
  });
}
