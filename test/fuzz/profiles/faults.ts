/** Checks of issuers' tokens and keys, each with the text of the compiled program that takes it out. */

export interface PlantedFault {
  readonly name: string;
  /** The module, as its path ends. */
  readonly file: string;
  /** Stands in it once. */
  readonly from: string;
  readonly to: string;
}

const claims = 'decision/token/profile-claims.js';
const header = 'decision/token/service-header.js';
const jws = 'decision/token/compact-jws.js';
const jwk = 'decision/token/jwk.js';
const times = 'decision/token/service-token.js';
const verify = 'proxy/auth/credentials/service-token.js';

export const plantedFaults: readonly PlantedFault[] = [
  {
    name: 'any typ counts',
    file: header,
    from: 'return type !== absentType && headerTypes.has(type);',
    to: 'return true;',
  },
  {
    name: 'a token without typ counts',
    file: header,
    from: 'return headerTypes.has(absentType);',
    to: 'return true;',
  },
  {
    name: 'typ "absent" stands for none',
    file: header,
    from: 'return type !== absentType && headerTypes.has(type);',
    to: 'return headerTypes.has(type);',
  },
  { name: 'typ is compared by case', file: header, from: 'return typ.toLowerCase()', to: 'return typ' },
  {
    name: 'any member of a header is ignored',
    file: header,
    from: "return profile === 'oauth' ? refusedHeaderMembers.has(name) : !knownHeaderMembers.has(name);",
    to: 'return false;',
  },
  ...['crit', 'jku', 'jwk', 'x5u'].map((name) => ({
    name: `${name} is ignored`,
    file: header,
    from: `'${name}', `,
    to: '',
  })),
  {
    name: 'any kid that is a text counts',
    file: 'decision/token/kid-filter.js',
    from: 'return isVisibleAscii(value, maxKeyIdLength);',
    to: "return typeof value === 'string';",
  },
  {
    name: 'key_ids counts for nothing',
    file: header,
    from: "return acceptsKeyId(rules.keyIds, kid) ? null : 'key_id_refused';",
    to: 'return null;',
  },
  {
    name: 'a key verifies what the header says',
    file: verify,
    from: "if (token.header['alg'] !== key.algorithm)\n        return refuse(denial('algorithm_refused'));\n    const checked = checkSignature(token, key, asker);",
    to: "const checked = checkSignature(token, { ...key, algorithm: token.header['alg'] }, asker);",
  },
  {
    name: 'the header may say another algorithm than the key’s',
    file: verify,
    from: "if (token.header['alg'] !== key.algorithm)",
    to: 'if (false)',
  },
  {
    name: 'no signature is looked at',
    file: verify,
    from: 'if (problem !== null)',
    to: 'if (false)',
  },
  {
    name: 'ECDSA signatures may be DER',
    file: jws,
    from: 'if (signature.length !== (bytes ?? Math.ceil(modulusLength / 8)) || namedCurve !== curve)',
    to: 'if (curve !== undefined && signature.length !== bytes)\n        return { hash, key, signature };\n    if (signature.length !== (bytes ?? Math.ceil(modulusLength / 8)) || namedCurve !== curve)',
  },
  {
    name: 'PSS takes a salt of any length',
    file: jws,
    from: 'saltLength: constants.RSA_PSS_SALTLEN_DIGEST',
    to: 'saltLength: constants.RSA_PSS_SALTLEN_AUTO',
  },
  {
    name: 'PSS signatures may lack their leading zeros',
    file: jws,
    from: 'if (signature.length !== (bytes ?? Math.ceil(modulusLength / 8)) || namedCurve !== curve)',
    to: 'if ((bytes !== undefined && signature.length !== bytes) || namedCurve !== curve)',
  },
  {
    name: 'PS256 is verified as RS256',
    file: jws,
    from: "PS256: { keyType: 'rsa', hash: 'sha256', isPss: true }",
    to: "PS256: { keyType: 'rsa', hash: 'sha256' }",
  },
  {
    name: 'a name may come twice',
    file: 'lib/strict-json.js',
    from: 'if (tally.members !== members)',
    to: 'if (false)',
  },
  {
    name: 'any depth',
    file: 'lib/strict-json.js',
    from: 'const defaultMaxDepth = 16;',
    to: 'const defaultMaxDepth = 99;',
  },
  {
    name: 'a key of a bundle needs no use',
    file: jwk,
    from: "if (use !== rules.use && !(rules.use === 'sig' && use === undefined))",
    to: 'if (use !== rules.use && use !== undefined)',
  },
  {
    name: 'use is not looked at',
    file: jwk,
    from: "if (use !== rules.use && !(rules.use === 'sig' && use === undefined))",
    to: 'if (false)',
  },
  {
    name: 'key_ops is not looked at',
    file: jwk,
    from: "if (operations !== undefined && !(isJsonArray(operations) && operations.includes('verify')))",
    to: 'if (false)',
  },
  {
    name: 'published private keys count',
    file: jwk,
    from: 'privateMembers.some((name) => jwk[name] !== undefined)',
    to: 'false',
  },
  {
    name: 'a key without alg verifies the first that fits',
    file: jwk,
    from: 'if (alg === undefined && first !== undefined && possible.length === 1)',
    to: 'if (alg === undefined && first !== undefined)',
  },
  {
    name: 'alg of a key counts for nothing',
    file: jwk,
    from: 'const named = possible.find((algorithm) => algorithm === alg);',
    to: 'const named = first;',
  },
  { name: 'weak RSA keys count', file: jwk, from: 'const minModulusBits = 2048;', to: 'const minModulusBits = 512;' },
  {
    name: 'a point of low order is a key',
    file: jwk,
    from: 'if (isLowOrderPoint(octets))',
    to: 'if (false)',
  },
  { name: 'RSA keys may have an exponent of 1', file: jwk, from: 'if (exponent <= 2n ||', to: 'if (exponent < 1n ||' },
  {
    name: 'two keys may have one kid',
    file: 'adapters/jwks/key-set.js',
    from: 'return refuse(`two different keys have the kid ${keyId}`);',
    to: 'continue;',
  },
  {
    name: 'iss is not looked at',
    file: claims,
    from: "if (expectedIssuer !== null && payload['iss'] !== expectedIssuer)",
    to: 'if (false)',
  },
  {
    name: 'aud is not looked at',
    file: claims,
    from: "if (!namesAudience(payload['aud'], audiences))",
    to: 'if (false)',
  },
  {
    name: 'a list of audiences may hold anything',
    file: claims,
    from: "return aud.every((name) => typeof name === 'string') && aud.some((name) => audiences.has(name));",
    to: 'return aud.some((name) => audiences.has(name));',
  },
  {
    name: 'a list of audiences has to hold ours alone',
    file: claims,
    from: 'aud.some((name) => audiences.has(name))',
    to: 'aud.every((name) => audiences.has(name))',
  },
  {
    name: 'a list of audiences has no end',
    file: claims,
    from: 'const maxAudiences = 100;',
    to: 'const maxAudiences = 1e9;',
  },
  {
    name: 'sessions count',
    file: claims,
    from: 'if (sessionClaims.some((name) => payload[name] !== undefined))',
    to: 'if (false)',
  },
  {
    name: 'ID tokens count',
    file: claims,
    from: "if (profile === 'oauth' && idTokenClaims.some((name) => payload[name] !== undefined))",
    to: 'if (false)',
  },
  {
    name: 'tokens that are bound to a key count',
    file: 'decision/binding/confirmation.js',
    from: "if (binding === 'none')",
    to: 'if (true)',
  },
  { name: 'claims.require counts for nothing', file: claims, from: 'return unmet ?', to: 'return false ?' },
  {
    name: 'claims.require converts',
    file: claims,
    from: 'values.some((value) => value === valueAt(payload, path))',
    to: 'values.some((value) => [value, String(value), Number(value)].includes(valueAt(payload, path)))',
  },
  { name: 'client_id may be missing', file: claims, from: "['sub', 'client_id']", to: "['sub']" },
  {
    name: 'sub may be missing beside another subject',
    file: claims,
    from: "['sub', 'client_id']",
    to: "['client_id']",
  },
  { name: 'jti may be missing', file: claims, from: "...['iat', 'jti']", to: "...['iat']" },
  { name: 'iat may be missing', file: claims, from: "...['iat', 'jti']", to: "...['jti']" },
  {
    name: 'a service account’s token needs no iat',
    file: claims,
    from: "payload['iat'] === undefined ? ['iat'] : []",
    to: '[]',
  },
  {
    name: 'kubernetes.io and sub may differ',
    file: claims,
    from: "if (boundNamespace !== namespace || !isJsonObject(account) || account['name'] !== name)",
    to: 'if (!isJsonObject(account))',
  },
  {
    name: 'namespaces of any length',
    file: claims,
    from: 'const maxNamespaceLength = 63;',
    to: 'const maxNamespaceLength = 999;',
  },
  {
    name: 'any trust domain',
    file: claims,
    from: "if (profile === 'spiffe' && !isInTrustDomain(payload['sub'], trustDomain))",
    to: 'if (false)',
  },
  {
    name: 'a trust domain that begins so',
    file: claims,
    from: "const start = `spiffe://${trustDomain ?? ''}/`;",
    to: "const start = `spiffe://${trustDomain ?? ''}`;",
  },
  {
    name: 'dots in the path of a SPIFFE ID',
    file: claims,
    from: " && segment !== '.' && segment !== '..'",
    to: '',
  },
  {
    name: 'a permission that is no text',
    file: claims,
    from: 'return texts.length === named.length ?',
    to: 'return true ?',
  },
  { name: 'exp is not looked at', file: times, from: 'if (nowMs >= exp * 1000 + skewMs)', to: 'if (false)' },
  {
    name: 'nbf is not looked at',
    file: times,
    from: 'if (nbf !== undefined && nbf * 1000 > nowMs + skewMs)',
    to: 'if (false)',
  },
  {
    name: 'iat may be to come',
    file: times,
    from: 'if (iat !== undefined && iat * 1000 > nowMs + skewMs)',
    to: 'if (false)',
  },
  {
    name: 'a life of any length from now on',
    file: times,
    from: 'if (exp * 1000 - nowMs > capMs + skewMs)',
    to: 'if (false)',
  },
  {
    name: 'a life of any length since iat',
    file: times,
    from: 'if (iat !== undefined && exp - iat > rules.maxLifetimeS)',
    to: 'if (false)',
  },
  {
    name: 'fractions of seconds',
    file: times,
    from: 'return Number.isSafeInteger(value);',
    to: 'return Number.isFinite(value);',
  },
  {
    name: 'a beginning without its slash',
    file: 'decision/route/approval.js',
    from: 'prefixes.some((prefix) => subject.startsWith(prefix))',
    to: 'prefixes.some((prefix) => subject.startsWith(prefix.slice(0, -1)))',
  },
  {
    name: 'an issuer that the token does not name is believed',
    file: verify,
    from: 'return meant.length === 0 ? accepting : meant;',
    to: 'return accepting.slice(0, 1);',
  },
  {
    name: 'keys that are away are unknown',
    file: verify,
    from: "return denial('keys_unavailable');",
    to: "return denial('key_unknown');",
  },
  {
    name: 'a hierarchy of claims is read flat',
    file: claims,
    from: 'for (const name of path) {',
    to: "for (const name of [path.join('.')]) {",
  },
];
