/** Credentials that are none, and service tokens that do not hold. */
import { base64url, signToken, type Claims } from '../../support/tokens.js';
import { key, none, nowS, type Row, service, session } from './explained-policy.js';

/** A token of the issuer `idp`. */
const idp = (claims: Claims = {}, header: Claims = {}): string =>
  service({ iss: 'https://idp.example.com', ...claims }, { kid: 'idp-1', ...header });

const svid = 'spiffe://shop.example/checkout';

/** With a key id that `spire` accepts as well: of what it does not ask for, or has as it should be, nothing is said. */
const beside: readonly Row[] = [
  {
    reason: 'issuer_mismatch',
    name: 'a subject that another issuer takes',
    token: service({ iss: 'https://x.example', aud: 'x', sub: svid }, { kid: 'd-shared' }),
    says: [/^iss is "https:\/\/x\.example"; core asks for "https:\/\/api\.example\.com"$/, none],
  },
  {
    reason: 'audience_mismatch',
    name: 'of one issuer of two',
    token: service({ aud: ['orders'] }, { kid: 'd-shared' }),
    says: [/^aud is \["orders"\]; core asks for "orders"$/, none],
  },
  {
    reason: 'source_mismatch',
    name: 'of one issuer of two',
    token: service({ source: undefined, sub: svid }, { kid: 'd-shared' }),
    says: [/^source is missing; core asks for "microservice"$/, none],
  },
  {
    reason: 'token_type_mismatch',
    name: 'of one issuer of two',
    token: service({ token_type: 5 }, { kid: 'd-shared' }),
    says: [/^token_type is 5; core asks for "service"$/, none],
  },
];

export const refusedServiceTokens: readonly Row[] = [
  {
    reason: 'credential_missing',
    token: null,
    says: [/there is no Authorization; accepted: Authorization: Bearer TOKEN$/],
  },
  {
    reason: 'credential_missing',
    path: '/both',
    token: null,
    says: [/accepted: Authorization: Bearer TOKEN, or the cookie of a session$/],
  },
  {
    reason: 'credential_malformed',
    token: null,
    headers: [['Authorization', 'Basic c2VjcmV0OnBhc3M=']],
    says: [/Authorization: its scheme is Basic; accepted: Authorization: Bearer TOKEN, one blank/],
  },
  {
    reason: 'credential_malformed',
    token: null,
    headers: [['Authorization', 'Bearer  a']],
    says: [/it has more than one blank; /],
  },
  {
    reason: 'credential_malformed',
    token: null,
    headers: [['Authorization', 'Bearer a,b']],
    says: [/its token has 3 characters, or some that no token has; /],
  },
  {
    reason: 'credential_malformed',
    token: null,
    headers: [['Authorization', 'topsecrettoken']],
    says: [/it is one word, and no scheme with a token; /],
  },
  {
    reason: 'credential_malformed',
    token: null,
    headers: [['Authorization', `${'topsecret'.repeat(4)} x`]],
    says: [/it begins with no scheme; /],
  },
  {
    reason: 'credential_ambiguous',
    path: '/me',
    headers: [['Cookie', `sAccessToken=${session()}`]],
    says: [/^Cookie, Authorization; accepted: Authorization or one/],
  },
  { reason: 'credential_kind_refused', path: '/me', says: [/it is a service token; the route takes sessions alone/] },

  {
    reason: 'token_malformed',
    name: 'typ',
    token: service({}, { typ: 'at+jwt' }),
    says: [/^typ is "at\+jwt"; accepted: "JWT", or none$/],
  },
  {
    reason: 'token_malformed',
    name: 'members',
    token: service({}, { x5t: 'abc', cty: 'json' }),
    says: [/^its header has "x5t", "cty"; accepted: alg, kid, typ and no other$/],
  },
  {
    reason: 'token_malformed',
    name: 'both',
    token: service({}, { typ: 5, jku: 'x' }),
    says: [/^typ is 5; /, /^its header has "jku"; /],
  },
  {
    reason: 'token_malformed',
    name: 'one part',
    token: 'abc',
    says: [/^it has 1 part; a signed token has three, with dots between$/],
  },
  {
    reason: 'token_malformed',
    name: 'JWE',
    token: 'a.b.c.d.e',
    says: [/^it has 5 parts, as an encrypted one has; a signed token has three/],
  },
  {
    reason: 'token_malformed',
    name: 'padding',
    token: service()
      .replace('.', '=.')
      .replace('=.', '.')
      .replace(/\.[^.]*$/, '.A'),
    says: [/^its signature part is no base64url without padding$/],
  },
  {
    reason: 'token_malformed',
    name: 'no JSON',
    token: `${base64url('{')}.${base64url('{}')}.AAAA`,
    says: [/^its header is no JSON$/],
  },
  {
    reason: 'token_malformed',
    name: 'a member twice',
    token: `${base64url('{"alg":"RS256","alg":"RS256","kid":"d-1"}')}.${base64url('{}')}.AAAA`,
    says: [/^its header has a member twice$/],
  },
  {
    reason: 'token_malformed',
    name: 'claims',
    token: signToken('{"alg":"RS256","kid":"d-1"}', '[]', key.privateKey),
    says: [/^its claims part is JSON, but no object$/],
  },
  { reason: 'algorithm_refused', token: service({}, { alg: 'ES256' }), says: [/^alg is "ES256"; accepted: "RS256"$/] },
  {
    reason: 'algorithm_refused',
    token: service({}, { alg: undefined }),
    says: [/^alg is missing; accepted: "RS256"$/],
  },
  {
    reason: 'key_id_refused',
    token: service({}, { kid: 'my-key' }),
    says: [
      /^core accepts key ids d-\* but not d-old; the token's is my-key$/,
      /^eu accepts key ids eu-\*; the token's is my-key$/,
    ],
  },
  {
    reason: 'key_id_refused',
    token: service({}, { kid: undefined }),
    says: [/^kid is missing; it has to be 1 to 256 visible ASCII characters, such as d-\*$/],
  },
  { reason: 'key_unknown', token: service({}, { kid: 'd-9' }), says: [/^core has no key d-9; it has d-1$/] },
  {
    reason: 'signature_invalid',
    token: service({}, { kid: 'd-other' }),
    says: [/^the key d-other of core did not make the signature: /],
  },
  {
    reason: 'token_expired',
    token: service({ exp: 1_600_000_000, iat: undefined }),
    says: [
      /^it is 20.*; the token says exp 1600000000 \(2020-09-13T12:26:40Z\)$/,
      /^core allows 7200 s of life and 5 s of skew$/,
    ],
  },
  {
    reason: 'token_not_yet_valid',
    token: service({ nbf: nowS + 100 }),
    says: [/the token says iat .*, nbf .*, exp /, /of skew/],
  },
  {
    reason: 'lifetime_too_long',
    token: service({ exp: nowS + 90_000 }),
    says: [/the token says/, /allows 7200 s of life/],
  },
  {
    reason: 'issuer_mismatch',
    token: service({ iss: 'https://api.example.com/' }),
    says: [/^iss is "https:\/\/api\.example\.com\/"; core asks for "https:\/\/api\.example\.com"$/],
  },
  {
    reason: 'issuer_not_accepted',
    path: '/eu',
    says: [/^iss is "https:\/\/api\.example\.com"; the route takes tokens of eu$/],
  },
  {
    reason: 'audience_mismatch',
    token: service({ aud: ['orders'] }),
    says: [/^aud is \["orders"\]; core asks for "orders"$/],
  },
  {
    reason: 'source_mismatch',
    token: service({ source: undefined }),
    says: [/^source is missing; core asks for "microservice"$/],
  },
  {
    reason: 'token_type_mismatch',
    token: service({ token_type: 5 }),
    says: [/^token_type is 5; core asks for "service"$/],
  },
  ...beside,
  {
    reason: 'claim_mismatch',
    token: idp({ tenant: 'other' }),
    says: [/^tenant is "other"; idp asks for "acme"$/, /^plan\.level is missing; idp asks for 1 or 2$/],
  },
  {
    reason: 'claim_mismatch',
    name: 'a service account that its sub does not name',
    token: service(
      { iss: 'https://k8s.example.com', sub: 'system:serviceaccount:shop:api', 'kubernetes.io': { namespace: 'x' } },
      { kid: 'k8s-1' },
    ),
    says: [
      /^sub is "system:serviceaccount:shop:api"; cluster asks for system:serviceaccount:NAMESPACE:NAME, and for the same/,
    ],
  },
  {
    reason: 'token_type_mismatch',
    name: 'an ID token',
    token: idp({ at_hash: 'x' }),
    says: [/^it has at_hash, which only ID tokens have: send the access token$/],
  },
  {
    reason: 'binding_unknown',
    name: 'a token that is bound to nobody knows what',
    token: service({ cnf: { jkt: 'x' } }),
    says: [/^its cnf has to have x5t#S256 or jkt, or both, each a SHA-256 in base64url, and nothing else$/],
  },
  {
    reason: 'binding_missing',
    token: service({ iss: 'https://bound.example.com' }, { kid: 'bound-1' }),
    says: [/^it has no cnf; binding is require for bound: have the issuer bind it$/],
  },
  {
    reason: 'certificate_missing',
    token: service({ cnf: { 'x5t#S256': 'A'.repeat(43) } }),
    says: [/^it is bound to a certificate \(cnf\.x5t#S256\), and its sender shows none$/, /--client-certificate FILE/],
  },
  {
    reason: 'proof_missing',
    token: service({ cnf: { jkt: 'A'.repeat(43) } }),
    says: [/^it is bound to a key \(cnf\.jkt\), and listen\.dpop, which says how proofs are taken, is not set$/],
  },
  {
    reason: 'token_malformed',
    name: 'typ of another profile',
    token: idp({}, { typ: 'JOSE', jku: 'x', x5t: 'y' }),
    says: [/^typ is "JOSE"; accepted: "at\+jwt" or "jwt"$/, /^its header has "jku"; accepted: none of these$/],
  },
  {
    reason: 'token_malformed',
    name: 'a type of SPIFFE',
    token: service({}, { kid: 'spire-1', typ: 'at+jwt' }),
    says: [/^typ is "at\+jwt"; accepted: "jwt" or "jose", or none$/],
  },
  {
    reason: 'algorithm_refused',
    name: 'an algorithm of another key',
    token: idp({}, { alg: 'ES256' }),
    says: [/^alg is "ES256"; the key idp-1 of idp verifies RS256 alone$/],
  },
  {
    reason: 'algorithm_refused',
    name: 'an algorithm that is not among those of the issuer',
    token: idp({}, { alg: 'HS256' }),
    says: [/^alg is "HS256"; accepted: "RS256" or "ES256"$/],
  },
  {
    reason: 'audience_mismatch',
    name: 'a list of strangers',
    token: idp({ aud: ['a', 'b'] }),
    says: [/^aud is \["a","b"\]; idp asks for "orders" or "api"$/],
  },
  {
    reason: 'audience_mismatch',
    name: 'too long a list',
    token: idp({ aud: Array.from({ length: 101 }, () => 'orders') }),
    says: [/; idp asks for "orders" or "api" among at most 100$/],
  },
  {
    reason: 'issuer_mismatch',
    name: 'a workload of another trust domain',
    token: service({ sub: 'spiffe://other.example/api', aud: 'orders' }, { kid: 'spire-1' }),
    says: [/^sub is "spiffe:\/\/other\.example\/api"; spire asks for the SPIFFE ID of a workload in shop\.example$/],
  },
  {
    reason: 'claim_malformed',
    name: 'of an access token',
    token: idp({ tenant: 'acme', plan: { level: 1 }, realm: { roles: 5 }, sub: 7, jti: 8 }, { typ: 'at+jwt' }),
    says: [
      /^jti is 8; it has to be a text of 1 to 256 visible ASCII characters$/,
      /^sub is 7; it has to be a text of 1 to 1024 visible ASCII characters$/,
      /^realm\.roles is 5; it has to be a text with blanks between, or a list of texts, at most 1000$/,
      /^sub is 7; tokens of this kind have to have it \(oauth\)$/,
      /^client_id is missing; tokens of this kind have to have it \(oauth\)$/,
    ],
  },
  {
    reason: 'claim_malformed',
    name: 'exp',
    token: service({ exp: undefined }),
    says: [/^exp is missing; it has to be a whole number: seconds since 1970$/],
  },
  {
    reason: 'claim_malformed',
    name: 'several',
    token: service({ exp: '5', jti: null, permissions: 'orders:read' }),
    says: [
      /^exp is "5"; it has to be a whole number/,
      /^permissions is "orders:read"; it has to be a list of at most 1000 texts/,
      /^jti is null; it has to be a text of 1 to 256/,
    ],
  },
  {
    reason: 'claim_malformed',
    name: 'an item',
    token: service({ permissions: ['a', 7] }),
    says: [/^permissions\[1\] is 7; it has to be a list/],
  },
  {
    reason: 'session_claim_present',
    token: service({ sessionHandle: 'h-secret', stt: 0 }),
    says: [/^it has sessionHandle and stt, which only tokens of user sessions have$/],
  },
];
