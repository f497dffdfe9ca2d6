/** The fields that Sallyport sets, judges or removes, by name. Every other one belongs to caller and receiver. */

/** Fields of a request that are read here, in lower case. */
const judgedNames = [
  'authorization', 'connection', 'content-length', 'content-type', 'expect', 'host', 'idempotency-key', 'traceparent',
  'tracestate', 'transfer-encoding', 'upgrade', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-request-id',
] as const;

export type JudgedField = (typeof judgedNames)[number];

export const judgedFields: ReadonlyMap<string, JudgedField> = new Map(judgedNames.map(name => [name, name]));

/** Fields for one connection and no further (RFC 9110 §7.6.1), beside those that are judged. */
export const hopByHopFields: ReadonlySet<string> = new Set([
  'http2-settings', 'keep-alive', 'proxy-authenticate', 'proxy-authentication-info', 'proxy-authorization', 'proxy-connection',
  'te', 'trailer',
]);

/** Fields that go on as they came and are read here as well: sessions, the origin of a page, handshakes of WebSockets. */
export const consultedFields: ReadonlySet<string> = new Set(['cookie', 'set-cookie', 'origin', 'anti-csrf', 'front-token', 'rid']);

/** Families of the same, in lower case. */
export const consultedPrefixes: readonly string[] = ['sec-websocket-', 'st-'];

/** Names of the identity headers where the config gives none: never the caller's, whatever the config renames. */
export const defaultIdentityNames: readonly string[] = [
  'X-Auth-Subject', 'X-Auth-Issuer', 'X-Auth-Permissions', 'X-Auth-Token-Id', 'X-Auth-Kind', 'X-Auth-Assertion',
];

/** What we tell the receiver of a reservation, and what tells the caller of it: believed where they come from us. */
export const reservationFields: readonly string[] = [
  'Idempotency-Record', 'Idempotency-Fence', 'Idempotency-Outcome', 'Idempotent-Replayed', 'Proxy-Status',
];

/**
 * Fields by which a proxy in front of us may say where a request came from, and how. Many send some of them unasked; of a caller
 * they would make some receivers take it for somebody else.
 */
export const originFields: readonly string[] = [
  'Forwarded', 'X-Real-IP', 'True-Client-IP', 'X-Client-IP', 'CF-Connecting-IP', 'X-Cluster-Client-IP', 'Client-Cert', 'Client-Cert-Chain',
  'X-Scheme', 'X-Url-Scheme', 'Front-End-Https', 'X-Host',
];

/** Families of the same, by how their look-alike key begins. */
export const originPrefixes: readonly string[] = ['xforwarded', 'xoriginalforwarded', 'xenvoy'];

/** Fields by which a caller makes some receivers act on another method, path, host or file than the policy judged. */
export const overrideFields: readonly string[] = [
  'X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'X-HTTP-Path-Override', 'X-HTTP-Host-Override',
  'X-HTTP-DestinationURL', 'X-Override-URL', 'X-Script-Name', 'X-Request-URI', 'Proxy', 'X-Sendfile-Type', 'X-Accel-Mapping',
];

/** Families of the same. */
export const overridePrefixes: readonly string[] = ['xoriginal', 'xrewrite', 'xskipper', 'xmiddleware'];
