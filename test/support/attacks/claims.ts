/** Claims of service tokens that some reader would believe, and that are not of their type or within their bounds. */

const times: readonly unknown[] = [null, '1', '', true, 1.5, 2 ** 53, 1e300, [1], { value: 1 }];

/** `undefined` is a claim that is missing. */
export const malformedClaims = {
  exp: [undefined, ...times],
  nbf: times,
  iat: times,
  sub: [
    undefined,
    null,
    '',
    5,
    true,
    ['checkout'],
    {},
    { checkout: 1 },
    'a b',
    'check\nout',
    'a\r\nX-Auth-Subject: b',
    'a\0',
    '\u007f',
    'a\u007f',
    'jos\u00e9',
    's'.repeat(1025),
  ],
  permissions: [
    undefined,
    null,
    '',
    'orders:read',
    'orders:read orders:write',
    {},
    { 0: 'orders:read', length: 1 },
    true,
    [1],
    [null],
    [['orders:read']],
    ['orders:read', 5],
    ['a b', null],
  ],
  jti: [null, '', 1, {}, ['x'], false, 'a b', 'a\n', '\0', '\u00e9', 'x'.repeat(257), '\u00e9'.repeat(129)],
} as const satisfies Readonly<Record<string, readonly unknown[]>>;

/** Each of them by itself. */
export const malformedClaimRows: readonly (readonly [claim: keyof typeof malformedClaims, value: unknown])[] = (
  Object.keys(malformedClaims) as (keyof typeof malformedClaims)[]
).flatMap((claim) => malformedClaims[claim].map((value) => [claim, value] as const));

/** What only tokens of user sessions have, whatever it holds. */
export const sessionClaimRows: readonly (readonly [claim: string, value: unknown])[] = [
  'sessionHandle',
  'refreshTokenHash1',
  'stt',
].flatMap((claim) => ['x', '', null, false, 0, [], {}].map((value) => [claim, value] as const));
