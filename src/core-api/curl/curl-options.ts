/** What each option of curl means for a call of the Core that takes its address and headers from a curl config file. */

/**
 * How an option is treated. `ignored` ones change what curl prints, or what a call never does; the others change the
 * call.
 */
export type CurlOption =
  | { readonly kind: 'url' | 'header' | 'user-agent' | 'cacert' | 'seconds' | 'proto'; readonly name: string }
  /** Takes no value and changes nothing here, whether it is set or unset with `no-`. */
  | { readonly kind: 'ignored'; readonly name: string }
  /** Takes a value and changes nothing here. */
  | { readonly kind: 'ignored-value'; readonly name: string }
  /** Changes nothing here as long as it has one of these values. */
  | { readonly kind: 'fixed'; readonly name: string; readonly values: readonly string[]; readonly why: string }
  /** Curl would obey it, and the call would be another one. */
  | { readonly kind: 'refused'; readonly name: string; readonly why: string };

const shortNames: Readonly<Record<string, string>> = {
  A: 'user-agent',
  B: 'use-ascii',
  C: 'continue-at',
  D: 'dump-header',
  E: 'cert',
  F: 'form',
  G: 'get',
  H: 'header',
  I: 'head',
  J: 'remote-header-name',
  K: 'config',
  L: 'location',
  M: 'manual',
  N: 'no-buffer',
  O: 'remote-name',
  P: 'ftp-port',
  Q: 'quote',
  R: 'remote-time',
  S: 'show-error',
  T: 'upload-file',
  U: 'proxy-user',
  V: 'version',
  X: 'request',
  Y: 'speed-limit',
  Z: 'parallel',
  a: 'append',
  b: 'cookie',
  c: 'cookie-jar',
  d: 'data',
  e: 'referer',
  f: 'fail',
  g: 'globoff',
  h: 'help',
  i: 'include',
  j: 'junk-session-cookies',
  k: 'insecure',
  l: 'list-only',
  m: 'max-time',
  n: 'netrc',
  o: 'output',
  p: 'proxytunnel',
  q: 'disable',
  r: 'range',
  s: 'silent',
  t: 'telnet-option',
  u: 'user',
  v: 'verbose',
  w: 'write-out',
  x: 'proxy',
  y: 'speed-time',
  z: 'time-cond',
  '#': 'progress-bar',
  '0': 'http1.0',
  '1': 'tlsv1',
  '2': 'sslv2',
  '3': 'sslv3',
  '4': 'ipv4',
  '6': 'ipv6',
  ':': 'next',
};

/**
 * What they switch is curl's printing, or what is so here in any case: errors fail, TLS is 1.2 or later, nothing is
 * repeated.
 */
const ignored = words(
  'silent show-error fail fail-with-body fail-early progress-bar progress-meter buffer globoff disable http1.1 tcp-nodelay keepalive ' +
    'styled-output tlsv1.0 tlsv1.1 tlsv1.2 tlsv1 retry-all-errors retry-connrefused ssl-reqd disallow-username-in-url compressed',
);
const ignoredWithValue = words('retry retry-delay retry-max-time expect100-timeout keepalive-time noproxy');

/** Unset they are as if they were not there. */
const refusedUnlessUnset = words('insecure location location-trusted verbose include');

const body = 'the body comes from standard input';
const fromStdin = { values: ['@-'], why: body };
const fixed: ReadonlyMap<string, { readonly values: readonly string[]; readonly why: string }> = new Map([
  ['request', { values: ['POST'], why: 'the method belongs to the call' }],
  ['data', fromStdin],
  ['data-ascii', fromStdin],
  ['data-binary', fromStdin],
  ['json', fromStdin],
]);

const otherRoute = 'the call goes to the address of the URL and nowhere else';
const shown = 'curl would show the headers, and the key with them';
const elsewhere = 'the answer goes where the command says';
const credential = 'the headers are the only credential';
const insecure = 'certificates are always verified';
/** Why the options that operators really try are refused. */
const reasons: ReadonlyMap<string, string> = new Map([
  ...explained(
    otherRoute,
    'proxy preproxy proxy1.0 socks4 socks4a socks5 socks5-hostname proxytunnel connect-to resolve doh-url interface unix-socket ' +
      'abstract-unix-socket haproxy-protocol dns-servers',
  ),
  ...explained(insecure, 'insecure doh-insecure proxy-insecure ssl-allow-beast'),
  ...explained(shown, 'verbose trace trace-ascii trace-config include dump-header libcurl'),
  ...explained(elsewhere, 'output remote-name remote-header-name remote-name-all output-dir write-out stderr'),
  ...explained(
    credential,
    'user oauth2-bearer netrc netrc-file netrc-optional cookie aws-sigv4 digest ntlm negotiate anyauth cert key pass',
  ),
  ...explained(body, 'data-raw data-urlencode form form-string upload-file get head url-query'),
  ...explained(
    'redirects are never followed: the key would go where the answer says',
    'location location-trusted max-redirs',
  ),
  ...explained('the whole call has to stand in this file', 'config next variable'),
]);

/** Options of curl that would change the call, and that nobody needs for one of the Core. */
const others = words(
  'alt-svc append basic ca-native capath cert-status cert-type ciphers compressed-ssh continue-at cookie-jar create-dirs ' +
    'create-file-mode crlf crlfile curves delegation disable-eprt disable-epsv dns-interface dns-ipv4-addr dns-ipv6-addr doh-cert-status ech egd-file engine ' +
    'etag-compare etag-save false-start form-escape ftp-account ftp-alternative-to-user ftp-create-dirs ftp-method ftp-pasv ftp-port ftp-pret ' +
    'ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-ccc-mode ftp-ssl-control happy-eyeballs-timeout-ms help hostpubmd5 hostpubsha256 hsts http0.9 http1.0 http2 ' +
    'http2-prior-knowledge http3 http3-only ignore-content-length ip-tos ipfs-gateway ipv4 ipv6 junk-session-cookies keepalive-cnt key-type krb ' +
    'limit-rate list-only local-port login-options mail-auth mail-from mail-rcpt mail-rcpt-allowfails manual max-filesize metalink mptcp no-alpn ' +
    'no-clobber no-npn no-sessionid ntlm-wb parallel parallel-immediate parallel-max path-as-is pinnedpubkey post301 post302 post303 ' +
    'proto-default proto-redir proxy-anyauth proxy-basic proxy-ca-native proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers ' +
    'proxy-crlfile proxy-digest proxy-header proxy-http2 proxy-key proxy-key-type proxy-negotiate proxy-ntlm proxy-pass proxy-pinnedpubkey ' +
    'proxy-service-name proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tls13-ciphers proxy-tlsauthtype proxy-tlspassword proxy-tlsuser ' +
    'proxy-tlsv1 proxy-user pubkey quote random-file range rate raw referer remote-time remove-on-error request-target sasl-authzid sasl-ir ' +
    'service-name skip-existing socks5-basic socks5-gssapi socks5-gssapi-nec socks5-gssapi-service speed-limit speed-time ssl ssl-auto-client-cert ' +
    'ssl-no-revoke ssl-revoke-best-effort sslv2 sslv3 suppress-connect-headers tcp-fastopen telnet-option tftp-blksize tftp-no-options time-cond tls-max ' +
    'tls13-ciphers tlsauthtype tlspassword tlsuser tlsv1.3 tr-encoding trace-ids trace-time use-ascii version vlan-priority xattr',
);

const used: ReadonlyMap<string, CurlOption> = new Map<string, CurlOption>([
  ['url', { kind: 'url', name: 'url' }],
  ['header', { kind: 'header', name: 'header' }],
  ['user-agent', { kind: 'user-agent', name: 'user-agent' }],
  ['cacert', { kind: 'cacert', name: 'cacert' }],
  ['proto', { kind: 'proto', name: 'proto' }],
  ['connect-timeout', { kind: 'seconds', name: 'connect-timeout' }],
  ['max-time', { kind: 'seconds', name: 'max-time' }],
]);

/** Options that may stand in the file, for messages. */
export const supportedOptions =
  'url, header, cacert, user-agent, proto, connect-timeout, max-time; ' +
  'and what changes nothing, such as silent, show-error and fail';

/** Every name that is known, to find the one that was meant. */
export const knownNames: readonly string[] = [
  ...used.keys(),
  ...ignored,
  ...ignoredWithValue,
  ...fixed.keys(),
  ...reasons.keys(),
  ...others,
];

/** The long name of a one-letter option. */
export function longName(letter: string): string | null {
  return shortNames[letter] ?? null;
}

/**
 * Finds an option by its long name, whole and in lower case, as every release of curl reads it; `null` where curl has
 * none of it.
 */
export function findCurlOption(name: string): CurlOption | null {
  const known = used.get(name);
  if (known !== undefined) return known;
  const positive = name.startsWith('no-') ? name.slice(3) : name;
  if (ignored.has(positive)) return { kind: 'ignored', name };
  if (positive !== name && refusedUnlessUnset.has(positive)) return { kind: 'ignored', name };
  if (ignoredWithValue.has(name)) return { kind: 'ignored-value', name };
  const onlyValue = fixed.get(name);
  if (onlyValue !== undefined) return { kind: 'fixed', name, ...onlyValue };
  const why = reasons.get(positive);
  if (why !== undefined) return { kind: 'refused', name, why };
  return others.has(name) || others.has(positive) ? { kind: 'refused', name, why: 'it would change the call' } : null;
}

function words(list: string): ReadonlySet<string> {
  return new Set(list.split(' '));
}

function explained(why: string, names: string): (readonly [string, string])[] {
  return names.split(' ').map((name) => [name, why]);
}
