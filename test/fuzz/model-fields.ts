/** docs/contract.md 3.3: what is left of the caller's fields. Written from its words, name by name. */
import type { Policy } from './model-policy.js';

export type Field = readonly [name: string, value: string];

export type ReadFields =
  | { readonly status: number }
  | {
      readonly status: null;
      /** What goes on as it came. */
      readonly passed: readonly Field[];
      readonly host: string;
      readonly authorization: string | null;
      readonly contentLength: number | null;
      readonly chunked: boolean;
      /** Protocols that are asked for, but `h2c`. */
      readonly protocols: readonly string[];
      readonly connectionUpgrades: boolean;
      readonly requestId: string | null;
      readonly traceparent: string | null;
      readonly tracestate: string | null;
      /** Whether the caller takes trailers of the answer. */
      readonly takesTrailers: boolean;
      /** Values of `DPoP`. */
      readonly proofs: readonly string[];
      /** What earlier hops say. */
      readonly earlier: Readonly<Record<'via' | 'for' | 'proto' | 'host', string | null>>;
    };

/** Fields that we judge, each of which may come once. */
const once = ['host', 'authorization', 'content-type', 'content-length', 'idempotency-key', 'transfer-encoding'];
/** Fields that we read and send on in our own words, or not at all. */
const read = [
  'connection',
  'expect',
  'upgrade',
  'via',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  'x-request-id',
  'traceparent',
  'tracestate',
  'dpop',
];
/** RFC 9110 §7.6.1 and kin: for one connection. */
const hopByHop = [
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'proxy-authorization',
  'proxy-authenticate',
  'proxy-authentication-info',
  'http2-settings',
];
/**
 * What nobody but us says: the assertion's name and those of docs/idempotency.md "What the upstream can add", and
 * overrides of method, URL, host and address.
 */
const ours = [
  'x-auth-subject',
  'x-auth-issuer',
  'x-auth-permissions',
  'x-auth-token-id',
  'x-auth-kind',
  'x-auth-assertion',
  'idempotency-record',
  'idempotency-fence',
  'idempotency-outcome',
  'idempotent-replayed',
  'proxy-status',
  'x-method-override',
  'method-override',
  'http-method-override',
  'x-http-path-override',
  'x-http-host-override',
  'x-http-destinationurl',
  'x-override-url',
  'x-script-name',
  'script-name',
  'path-info',
  'x-path-info',
  'path-translated',
  'translate',
  'x-matched-path',
  'x-now-route-matches',
  'x-invoke-path',
  'x-invoke-query',
  'x-invoke-status',
  'x-invoke-error',
  'x-invoke-output',
  'x-request-uri',
  'x-replaced-path',
  'x-proxy-url',
  'destination',
  'x-host',
  'x-scheme',
  'x-url-scheme',
  'front-end-https',
  'ssl-offloaded',
  'proxy',
  'x-sendfile-type',
  'x-accel-mapping',
  // Where the caller is.
  'x-client-ip',
  'true-client-ip',
  'x-true-client-ip',
  'true-ip',
  'x-true-ip',
  'client-ip',
  'real-ip',
  'x-cluster-client-ip',
  'cluster-client-ip',
  'remote-addr',
  'remote-host',
  'remote-ip',
  'x-originating-ip',
  'x-origin-ip',
  'x-source-ip',
  'x-peer-ip',
  'x-host-ip',
  'x-proxyuser-ip',
  'x-coming-from',
  'coming-from',
  'x-client-address',
  'x-client-host',
  'cf-ipcountry',
  'cf-visitor',
  'cf-worker',
  'cloudfront-forwarded-proto',
  'fastly-ssl',
  'fastly-ff',
  'fastly-temp-xff',
  'x-azure-clientip',
  'x-azure-socketip',
  'x-nf-client-connection-ip',
  'incap-client-ip',
  'x-sucuri-clientip',
  'x-sucuri-country',
  'cdn-src-ip',
  'cdn-real-ip',
  'ali-cdn-real-ip',
  'do-connecting-ip',
  'z-forwarded-for',
  'x-gclb-client-ip',
  'x-cdn-src-ip',
  // Who the caller is, and by which certificate.
  'remote-user',
  'remote-name',
  'remote-email',
  'remote-group',
  'remote-groups',
  'remote-ident',
  'auth-user',
  'logon-user',
  'x-proxy-user',
  'x-userinfo',
  'x-anonymous-consumer',
  'x-credential-identifier',
  'x-credential-username',
  'sm-user',
  'sm-userdn',
  'sm-universalid',
  'sm-serversessionid',
  'iv-user',
  'iv-user-l',
  'iv-groups',
  'iv-creds',
  'oam-remote-user',
  'osso-user-dn',
  'osso-user-guid',
  'eppn',
  'x-goog-iap-jwt-assertion',
  'x-endpoint-api-userinfo',
  'x-apigateway-api-userinfo',
  'x-jwt-payload',
  'l5d-client-id',
  'dapr-caller-app-id',
  'dapr-caller-namespace',
  'x-arr-ssl',
  'x-arr-clientcert',
  'x-client-verify',
  'x-client-dn',
  'x-client-s-dn',
  'x-client-subject-dn',
];
/** Families of them, by how their names begin without punctuation: `X-Forwarded-*`, `X-Envoy-*` and kin. */
const ourFamilies = [
  'forwarded',
  'xforward',
  'xoriginal',
  'xrewrite',
  'xhttpmethod',
  'xenvoy',
  'xskipper',
  'xmiddleware',
  'xrealip',
  'cfconnecting',
  'cfpseudo',
  'cfaccess',
  'cloudfrontviewer',
  'fastlyclient',
  'flyclient',
  'flyforwarded',
  'xappengine',
  'xcloudtasks',
  'xcloudscheduler',
  'xvercelforwarded',
  'xvercelproxied',
  'xvercelip',
  'wlproxy',
  'proxyclient',
  'xremote',
  'xwebauth',
  'xauthrequest',
  'xauthenticated',
  'xauthentik',
  'xconsumer',
  'xpomerium',
  'xvouch',
  'xmsclientprincipal',
  'xmstoken',
  'xgoogauthenticateduser',
  'xamznoidc',
  'xamznmtls',
  'tailscale',
  'oidc',
  'mellon',
  'shib',
  'impersonate',
  'clientcert',
  'xclientcert',
  'sslclient',
  'sslserver',
  'xssl',
  'xmtls',
  'xtlsclient',
];
/** Options of Connection that name no field to remove. */
const ownOptions = ['close', 'keep-alive', 'te', 'upgrade', 'http2-settings'];

const token = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/** What two readers may take for one name: without case and without what is no letter or digit. */
function alike(name: string): string {
  return Array.from(name.toLowerCase())
    .filter((character) => /[a-z0-9]/.test(character))
    .join('');
}

/** Reads the header section; `status` is what it is refused with. */
export function readFieldsSlowly(version: string, fields: readonly Field[], policy: Policy): ReadFields {
  const bad: ReadFields = { status: 400 };
  if (version !== '1.1' && !(version === '1.0' && policy.http10 === 'allow')) return bad;
  const setByUs = [...ours, ...Object.values(policy.identity)].map(alike);
  const judged = [...once, ...read];
  const reserved = [...setByUs, ...[...judged, ...hopByHop].map(alike)];
  const isReserved = (name: string): boolean =>
    reserved.includes(alike(name)) || ourFamilies.some((family) => alike(name).startsWith(family));
  const kept: Field[] = [];
  const values = new Map<string, string[]>();
  for (const [name, value] of fields) {
    const isText = Array.from(value).every(
      (character) => character === '\t' || (character >= ' ' && character !== '\x7f' && character <= '\xff'),
    );
    if (!token.test(name) || !isText) return bad;
    const lower = name.toLowerCase();
    if (setByUs.includes(alike(name)) || hopByHop.includes(lower)) continue;
    if (judged.includes(lower)) {
      values.set(lower, [...(values.get(lower) ?? []), value]);
      if (lower === 'content-type' || lower === 'idempotency-key') kept.push([name, value]);
      continue;
    }
    if (isReserved(name)) continue;
    if (name.includes('_') && policy.underscores !== 'allow') {
      if (policy.underscores === 'refuse') return bad;
      continue;
    }
    kept.push([name, value]);
  }
  if (once.some((name) => (values.get(name)?.length ?? 0) > 1)) return bad;
  const only = (name: string): string | null => values.get(name)?.[0] ?? null;
  const joined = (name: string): string | null => values.get(name)?.join(', ') ?? null;

  const host = only('host');
  if (host === null || !isHost(host)) return bad;
  const [length, coding] = [only('content-length'), only('transfer-encoding')];
  if (coding !== null && (coding.toLowerCase() !== 'chunked' || length !== null || version === '1.0')) return bad;
  if (length !== null && (!/^[0-9]{1,16}$/.test(length) || Number(length) > Number.MAX_SAFE_INTEGER)) return bad;

  const options = elements(joined('connection') ?? '');
  const named = options.filter((option) => !ownOptions.includes(option));
  for (const name of named) {
    if (!token.test(name)) return bad;
    const isHop = hopByHop.includes(name);
    if (!isHop && isReserved(name)) return bad;
  }
  const expect = joined('expect');
  if (expect !== null && expect.toLowerCase() !== '100-continue') return { status: 417 };

  const [requestId, parent] = [joined('x-request-id'), joined('traceparent')];
  const traceparent = parent !== null && isTraceparent(parent) ? parent : null;
  return {
    status: null,
    passed: kept.filter(([name]) => !named.includes(name.toLowerCase())),
    host,
    authorization: only('authorization'),
    contentLength: length === null ? null : Number(length),
    chunked: coding !== null,
    protocols: elements(joined('upgrade') ?? '').filter((protocol) => protocol !== 'h2c'),
    connectionUpgrades: options.includes('upgrade'),
    requestId: requestId !== null && /^[A-Za-z0-9._-]{1,128}$/.test(requestId) ? requestId : null,
    traceparent,
    tracestate: traceparent === null ? null : joined('tracestate'),
    takesTrailers: fields.some(([name, value]) => name.toLowerCase() === 'te' && elements(value).includes('trailers')),
    proofs: values.get('dpop') ?? [],
    earlier: {
      via: joined('via'),
      for: joined('x-forwarded-for'),
      proto: joined('x-forwarded-proto'),
      host: joined('x-forwarded-host'),
    },
  };
}

/** docs/http.md: what goes on of earlier hops that are trusted, with our own word at its end, or in its place. */
export function hopFields(
  { earlier, host }: Pick<Extract<ReadFields, { status: null }>, 'earlier' | 'host'>,
  trusted: boolean,
  own: { readonly address: string; readonly via: string },
): readonly Field[] {
  const after = (text: string | null, last: string): string =>
    trusted && text !== null && /^[\t -~]+$/.test(text) ? `${text}, ${last}` : last;
  const all = (text: string | null, isElement: (element: string) => boolean, otherwise: string): string =>
    trusted && text?.split(',').every((part) => isElement(part.replace(/^[ \t]+|[ \t]+$/g, ''))) === true
      ? text
      : otherwise;
  return [
    ['X-Forwarded-For', after(earlier.for, own.address)],
    ['X-Forwarded-Proto', all(earlier.proto, (name) => ['http', 'https'].includes(name), 'http')],
    ['X-Forwarded-Host', all(earlier.host, isHost, host)],
    ['Via', after(earlier.via, own.via)],
  ];
}

function elements(list: string): string[] {
  return list
    .split(',')
    .map((text) =>
      text
        .replace(/^[ \t]+/, '')
        .replace(/[ \t]+$/, '')
        .toLowerCase(),
    )
    .filter((text) => text !== '');
}

/** `uri-host [":" port]` without what some reader splits at. */
function isHost(text: string): boolean {
  const [, name, address, port] = /^(?:([A-Za-z0-9._~-]+)|\[([0-9a-fA-F:.]+)\])(?::([0-9]{1,5}))?$/.exec(text) ?? [];
  if (name === undefined && address === undefined) return false;
  if (port !== undefined && Number(port) > 65_535) return false;
  return address === undefined || URL.canParse(`http://[${address}]/`);
}

/** W3C Trace Context. */
function isTraceparent(text: string): boolean {
  const [version = '', trace = '', parent = '', flags = '', ...more] = text.split('-');
  const isHex = (part: string, length: number): boolean => part.length === length && /^[0-9a-f]+$/.test(part);
  if (!isHex(version, 2) || version === 'ff' || !isHex(trace, 32) || !isHex(parent, 16) || !isHex(flags, 2)) {
    return false;
  }
  if (/^0+$/.test(trace) || /^0+$/.test(parent)) return false;
  return (
    more.length === 0 ||
    (version !== '00' && Array.from(more.join('-')).every((character) => character > ' ' && character <= '~'))
  );
}
