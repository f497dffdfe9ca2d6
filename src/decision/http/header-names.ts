/** Names of headers: their grammar, and those that Sallyport sets, judges or removes. */
/** RFC 9110 §5.6.2 `token`. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const notAlphanumeric = /[^0-9a-z]+/g;

/** Tells whether a text may be the name of a header (RFC 9110 §5.1). */
export function isFieldName(text: string): boolean {
  return token.test(text);
}

/**
 * What two names have in common that an upstream may take for one: CGI, WSGI and kin turn case and punctuation of names
 * into the same variable, so that `X_Auth.Subject` arrives as `X-Auth-Subject` does.
 */
export function lookAlikeKey(name: string): string {
  return name.toLowerCase().replace(notAlphanumeric, '');
}

/**
 * What a header says to those behind gRPC-Gateway as well, which takes `Grpc-Metadata-X-Auth-Subject` for
 * `x-auth-subject` (https://grpc-ecosystem.github.io/grpc-gateway/docs/mapping/customizing_your_gateway/); of others
 * the key itself.
 */
export function carriedKey(key: string): string {
  return key.startsWith(carryingPrefix) ? key.slice(carryingPrefix.length) : key;
}

const carryingPrefix = 'grpcmetadata';

/** Whether it is one of these, or carries one. */
export function namesOneOf(keys: ReadonlySet<string>, key: string): boolean {
  return keys.has(key) || keys.has(carriedKey(key));
}

/** Headers of a request that are read here, in lower case. */
const judgedNames = [
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'dpop',
  'expect',
  'host',
  'idempotency-key',
  'traceparent',
  'tracestate',
  'transfer-encoding',
  'upgrade',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-request-id',
] as const;

/** `client-cert` is judged where the config has it read, and else one of `certificatePrefixes`. */
export type JudgedHeader = (typeof judgedNames)[number] | typeof clientCertHeader;

/** RFC 9440 §2.1. */
export const clientCertHeader = 'client-cert';

export const judgedHeaders: ReadonlyMap<string, JudgedHeader> = new Map(
  judgedNames.map((name): [string, JudgedHeader] => [name, name]),
);

/** Headers for one connection and no further (RFC 9110 §7.6.1), beside those that are judged. */
export const hopByHopHeaders: ReadonlySet<string> = new Set([
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
]);

/**
 * Headers that go on as they came and are read here as well: sessions, the origin of a page, handshakes of WebSockets.
 */
export const consultedHeaders: ReadonlySet<string> = new Set([
  'cookie',
  'set-cookie',
  'origin',
  'anti-csrf',
  'front-token',
  'rid',
]);

/** Families of the same, in lower case. */
export const consultedPrefixes: readonly string[] = ['sec-websocket-', 'st-'];

/** Names of the identity headers where the config gives none: never the caller's, whatever the config renames. */
export const defaultIdentityNames: readonly string[] = [
  'X-Auth-Subject',
  'X-Auth-Issuer',
  'X-Auth-Permissions',
  'X-Auth-Token-Id',
  'X-Auth-Kind',
  'X-Auth-Client-Certificate',
  'X-Auth-Assertion',
];

/** What we tell the upstream of a reservation, and what tells the caller of it: believed where they come from us. */
export const reservationHeaders: readonly string[] = [
  'Idempotency-Record',
  'Idempotency-Fence',
  'Idempotency-Outcome',
  'Idempotent-Replayed',
  'Proxy-Status',
];

/**
 * Headers by which a proxy in front of us may say where a request came from, and how. Many send some of them unasked;
 * of a caller they would make some upstreams take it for somebody else.
 */
export const originHeaders: readonly string[] = [
  'X-Client-IP',
  'True-Client-IP',
  'X-True-Client-IP',
  'True-IP',
  'X-True-IP',
  'Client-IP',
  'Real-IP',
  'X-Cluster-Client-IP',
  'Cluster-Client-IP',
  'Remote-Addr',
  'Remote-Host',
  'Remote-IP',
  'X-Originating-IP',
  'X-Origin-IP',
  'X-Source-IP',
  'X-Peer-IP',
  'X-Host-IP',
  'X-ProxyUser-IP',
  'X-Coming-From',
  'Coming-From',
  'X-Client-Address',
  'X-Client-Host',
  // Content delivery networks, clouds and servers, each by its own name.
  'CF-IPCountry',
  'CF-Visitor',
  'CF-Worker',
  'CloudFront-Forwarded-Proto',
  'Fastly-SSL',
  'Fastly-FF',
  'Fastly-Temp-XFF',
  'X-Azure-ClientIP',
  'X-Azure-SocketIP',
  'X-NF-Client-Connection-IP',
  'Incap-Client-IP',
  'X-Sucuri-ClientIP',
  'X-Sucuri-Country',
  'CDN-Src-IP',
  'CDN-Real-IP',
  'Ali-CDN-Real-IP',
  'DO-Connecting-IP',
  'Z-Forwarded-For',
  'X-GCLB-Client-IP',
  'X-Cdn-Src-IP',
  'X-Scheme',
  'X-Url-Scheme',
  'Front-End-Https',
  'X-Host',
  'SSL-Offloaded',
  'X-ARR-SSL',
];

/** Families of the same, by how their look-alike key begins. */
export const originPrefixes: readonly string[] = [
  'forwarded',
  'xforward',
  'xoriginalforwarded',
  'xenvoy',
  'xrealip',
  'cfconnecting',
  'cfpseudo',
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
];

/**
 * Headers by which a proxy in front of some upstreams says who the caller is: an identity header may be given such a
 * name.
 */
export const principalHeaders: readonly string[] = [
  'Remote-User',
  'Remote-Name',
  'Remote-Email',
  'Remote-Group',
  'Remote-Groups',
  'Remote-Ident',
  'Auth-User',
  'Logon-User',
  'X-Forwarded-User',
  'X-Forwarded-Email',
  'X-Forwarded-Groups',
  'X-Forwarded-Preferred-Username',
  'X-Proxy-User',
  'X-Userinfo',
  'X-Anonymous-Consumer',
  'X-Credential-Identifier',
  'X-Credential-Username',
  'SM-User',
  'SM-UserDN',
  'SM-UniversalId',
  'SM-ServerSessionId',
  'IV-User',
  'IV-User-L',
  'IV-Groups',
  'IV-Creds',
  'OAM-Remote-User',
  'Osso-User-DN',
  'Osso-User-Guid',
  'EPPN',
  'X-Goog-IAP-JWT-Assertion',
  // Claims or a peer that a gateway or a mesh has verified.
  'X-Endpoint-API-UserInfo',
  'X-Apigateway-Api-Userinfo',
  'X-Jwt-Payload',
  'L5d-Client-Id',
  'Dapr-Caller-App-Id',
  'Dapr-Caller-Namespace',
];

/** Families of the same. */
export const principalPrefixes: readonly string[] = [
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
  'cfaccess',
  'tailscale',
  'oidc',
  'mellon',
  'shib',
  // What Kubernetes lets some callers be, by whoever they are.
  'impersonate',
];

/** Headers by which a proxy says which certificate the caller showed to it. */
export const certificateHeaders: readonly string[] = [
  'X-ARR-ClientCert',
  'X-Client-Verify',
  'X-Client-DN',
  'X-Client-S-DN',
  'X-Client-Subject-DN',
];

/** Families of the same. */
export const certificatePrefixes: readonly string[] = [
  'clientcert',
  'xclientcert',
  'sslclient',
  'sslserver',
  'xssl',
  'xamznmtls',
  'xmtls',
  'xtlsclient',
];

/** Headers by which a caller makes some upstreams act on another method, path, host or file than the policy judged. */
export const overrideHeaders: readonly string[] = [
  'X-Method-Override',
  'Method-Override',
  'HTTP-Method-Override',
  'X-HTTP-Path-Override',
  'X-HTTP-Host-Override',
  'X-HTTP-DestinationURL',
  'X-Override-URL',
  'X-Script-Name',
  'Script-Name',
  'Path-Info',
  'X-Path-Info',
  'Path-Translated',
  'X-Request-URI',
  'X-Replaced-Path',
  'X-Proxy-URL',
  'Proxy',
  'X-Sendfile-Type',
  'X-Accel-Mapping',
  // IIS answers with the text of a script in the place of what it does.
  'Translate',
  // Next.js has taken the path from these.
  'X-Matched-Path',
  'X-Now-Route-Matches',
  'X-Invoke-Path',
  'X-Invoke-Query',
  'X-Invoke-Status',
  'X-Invoke-Error',
  'X-Invoke-Output',
];

/** Families of the same. */
export const overridePrefixes: readonly string[] = [
  'xoriginal',
  'xrewrite',
  'xskipper',
  'xhttpmethod',
  // Next.js has taken from these what its middleware did.
  'xmiddleware',
];

/** Headers that name a second path by rule (RFC 4918 §10.3). The policy judges one. */
export const secondPathHeaders: readonly string[] = ['Destination'];
