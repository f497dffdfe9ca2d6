/** What a caller would have us remove, by Connection (RFC 9110 §7.6.1), of what we set or judge. */
export const ownFields: readonly string[] = [
  'X-Auth-Subject',
  'X-Auth-Token-Id',
  'Authorization',
  'Idempotency-Key',
  'Idempotency-Record',
  'Content-Type',
  'Content-Length',
  'Host',
  'Transfer-Encoding',
  'X-Forwarded-For',
  'X-Forwarded-Prefix',
  'Forwarded',
  'Via',
  'X-Request-Id',
  'traceparent',
  'tracestate',
  'Expect',
  'Proxy-Status',
  'X-Auth-Permissions',
  'X-Auth-Kind',
  'X-Auth-Issuer',
];

/** None is a token, or a list of tokens. */
export const malformedOptions: readonly string[] = [
  'a b',
  'close; x',
  '"close"',
  'close\u00a0',
  'X:1',
  'close,(',
  '\u00e9',
];
